"""Episodes of parallel environments as they come in, step by step: collected, judged and paid."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from irrl.ensembles import log_mean_exp
from irrl.reward_model.model import RewardModel
from irrl.reward_model.payment import payments
from irrl.reward_model.spaces import Parts, to_parts
from irrl.reward_model.store import Batch

Take = Callable[[Parts, np.ndarray, np.ndarray], None]

NOT_TOLD = -1
FIRST_CAPACITY = 32  # steps


class Collector:
    """What n environments have shown of their running episodes, and what is paid for it.

    Two calls are all there is. `begin` takes the first observations of episodes; `step` takes what
    one action of each led to, gives the rewards, and hands whole episodes to the reward model. An
    observation belongs to the episode it ends, not to the one that follows: adapters see to that.

    Args:
        model: the reward model; its discriminator may learn at any time between two calls.
        num_envs: how many environments there are.
        track: keep `log_probs` up to date after every step, whatever the model pays for.
        hand_over: give whole episodes to the model, to learn from; False for an evaluation.

    Example:
        >>> import numpy as np
        >>> from gymnasium.spaces import Box
        >>> model = RewardModel(Box(-1.0, 1.0, (2,)), labels=4, mode="skills")
        >>> collector = Collector(model, num_envs=2)
        >>> collector.begin(np.zeros((2, 2), np.float32), labels=[0, 3])
        >>> collector.step(np.ones((2, 2), np.float32), ended=[False, True]).shape
        (2,)
        >>> model.episodes
        1
    """

    def __init__(
        self, model: RewardModel, num_envs: int, track: bool = False, hand_over: bool = True
    ) -> None:
        self.model, self.num_envs = model, num_envs
        self.take: Take = model.add_many if hand_over else _leave  # what whole episodes go to
        self.pay = model.settings.pay
        self.tracked = track or self.pay != "end"
        self._keeps_all = model.settings.judge != "final"
        rows = FIRST_CAPACITY if self._keeps_all else 2
        self._seen: Parts = {
            name: np.zeros((rows, num_envs, *part.shape), part.dtype)
            for name, part in model.parts.items()
        }
        self._lengths = np.zeros(num_envs, np.int64)  # observations so far; 0: no episode
        self._labels = np.full(num_envs, NOT_TOLD)
        self._before = np.zeros(num_envs)  # potential that was paid for
        self._states: list[Any] | None = None
        self._log_probs: Tensor | None = None
        self._read_with = -1  # updates of the model when the states were made
        self._usual_length: int | None = None

    @property
    def log_probs(self) -> np.ndarray:
        """Log-probabilities of the labels, given all of each running episode: ``(n, labels)``."""
        if not self.tracked:
            raise ValueError("this collector keeps no posteriors: make it with track=True")
        if self._log_probs is None:
            return np.tile(self.model.log_prior(), (self.num_envs, 1))
        return np.asarray(log_mean_exp(np, self._log_probs.cpu().numpy()))

    @property
    def labels(self) -> np.ndarray:
        """Labels of the running episodes, -1 where none was told yet."""
        return self._labels.copy()

    # --- the two calls ---

    def begin(self, observations: Any, labels: Any = None, which: Any = None) -> None:
        """Episodes begin. Where one was under way, it is dropped: it has no end.

        Args:
            observations: of all environments, ``(n, ...)``; others than ``which`` are not read.
            labels: of all environments; None for one that is not told yet.
            which: of the environments, as a mask; all if left out.
        """
        begins = self._mask(which)
        if not begins.any():
            return
        parts = to_parts(self.model.parts, _only(observations, begins), (self.num_envs,))
        self._lengths[begins] = 0
        self._labels[begins] = NOT_TOLD
        self._before[begins] = 0.0
        self._write(parts, begins)
        self._tell(labels, begins)
        if self.tracked:
            self._forget(begins)
            self._read(parts, begins)

    def step(
        self, observations: Any, ended: Any, labels: Any = None, which: Any = None
    ) -> np.ndarray:
        """One more action of each environment.

        Args:
            observations: what it led to, ``(n, ...)``; where an episode ends, its last one.
            ended: whether it does, terminated or truncated.
            labels: as they are told, None for one that is not.
            which: environments that took an action, as a mask; all if left out.

        Returns:
            Rewards, float32 of shape ``(n,)``, zero where no action was taken.
        """
        acted = self._mask(which)
        ended = np.asarray(ended, bool) & acted
        if (self._lengths[acted] == 0).any():
            raise ValueError("step before begin: an environment has no episode under way")
        parts = to_parts(self.model.parts, _only(observations, acted), (self.num_envs,))
        self._write(parts, acted)
        self._tell(labels, acted)
        paid = ended if self.pay == "end" else acted
        self._require_told(paid | ended)
        if self.tracked:
            self._read(parts, acted)
        rewards = np.zeros(self.num_envs, np.float32)
        if paid.any():
            potential = np.zeros(self.num_envs)
            potential[paid] = self.model.potential(self._judge(paid), self._labels[paid])
            due = payments(self.pay, potential, self._before, ended)
            rewards[paid] = due[paid]
            self._before[paid] = potential[paid]
        if ended.any():
            self._hand_over(ended)
        return rewards

    # --- what was seen ---

    def _write(self, parts: Parts, rows: np.ndarray) -> None:
        (which,) = np.nonzero(rows)
        longest = int(self._lengths[which].max())
        if longest > self.model.settings.max_episode_steps:
            culprit = which[self._lengths[which].argmax()]
            raise ValueError(
                f"the episode of environment {culprit} has no end after "
                f"{self.model.settings.max_episode_steps:,} steps: give it a time limit, or raise "
                "max_episode_steps"
            )
        at = self._lengths[which]
        if self._keeps_all:
            self._make_room(longest + 1)
        else:
            at = np.minimum(at, 1)
        for name, array in parts.items():
            self._seen[name][at, which] = array[which]
        self._lengths[which] += 1

    def _make_room(self, steps: int) -> None:
        for name, array in self._seen.items():
            if len(array) < steps:
                self._seen[name] = np.concatenate([array, np.zeros_like(array)])

    def _batch(self, rows: np.ndarray) -> Batch:
        (which,) = np.nonzero(rows)
        lengths = self._lengths[which] if self._keeps_all else np.minimum(self._lengths[which], 2)
        steps = int(lengths.max())
        seen = {name: array[:steps, which] for name, array in self._seen.items()}
        return Batch(seen, lengths, self._labels[which])

    def _hand_over(self, ended: np.ndarray) -> None:
        """Whole episodes go to the model; their environments have none until they begin anew."""
        if self.pay == "steps" and not self.model.settings.varying_length:
            self._require_one_length(self._lengths[ended] - 1)
        batch = self._batch(ended)
        inside = np.arange(len(next(iter(batch.observations.values())))) < batch.lengths[:, None]
        flat = {name: np.swapaxes(a, 0, 1)[inside] for name, a in batch.observations.items()}
        self.take(flat, batch.lengths, batch.labels)
        self._lengths[ended] = 0

    def _require_one_length(self, lengths: np.ndarray) -> None:
        for length in map(int, lengths):
            self._usual_length = self._usual_length or length
            if length != self._usual_length:
                raise ValueError(
                    f"pay 'steps' where episodes differ in length ({self._usual_length} and "
                    f"{length} steps) pays for dawdling: take pay 'differences' or 'end', or say "
                    "varying_length=True"
                )

    # --- labels ---

    def _tell(self, labels: Any, rows: np.ndarray) -> None:
        if labels is None:
            return
        told = as_labels(labels)
        if told.shape != (self.num_envs,):
            raise ValueError(f"labels must have shape ({self.num_envs},), got {told.shape}")
        now = rows & (told != NOT_TOLD)
        if not now.any():
            return
        self.model.require_labels(told[now])
        changed = now & (self._labels != NOT_TOLD) & (self._labels != told)
        if changed.any():
            culprit = int(np.nonzero(changed)[0][0])
            raise ValueError(
                f"the label of environment {culprit} changed within an episode, from "
                f"{self._labels[culprit]} to {told[culprit]}"
            )
        self._labels[now] = told[now]

    def _require_told(self, rows: np.ndarray) -> None:
        missing = rows & (self._labels == NOT_TOLD)
        if missing.any():
            culprit = int(np.nonzero(missing)[0][0])
            when = "at the end of its episode" if self.pay == "end" else "with its first step"
            raise ValueError(f"environment {culprit} told no label {when}")

    # --- posteriors ---

    def _judge(self, rows: np.ndarray) -> Tensor:
        """Log-probabilities of the members for the episodes of some environments, now."""
        if self.tracked and self._log_probs is not None:
            return self._log_probs[:, torch.from_numpy(rows).to(self._log_probs.device)]
        return self.model.judge.judge(self._batch(rows))

    def _read(self, parts: Parts, rows: np.ndarray) -> None:
        """Bring the posteriors up to date with one more observation of some environments."""
        judge = self.model.judge
        if self.model.settings.judge != "trajectory":
            with torch.no_grad():
                new = judge(judge.to_tensors({n: a[None] for n, a in parts.items()}))[:, 0]
            self._keep(new, rows)
        elif not judge.reads_steps:
            found = judge.judge(self._batch(rows))
            new = found.new_zeros(len(found), self.num_envs, found.shape[-1])
            new[:, torch.from_numpy(rows)] = found
            self._keep(new, rows)
        elif self._states is None or self._read_with != self.model.updates:
            self._read_anew()
        else:
            self._read_step(parts, rows)

    def _read_step(self, parts: Parts, rows: np.ndarray) -> None:
        new, states = self.model.judge.step(parts, self._states or [])
        self._states = _where(rows, states, self._states)
        self._keep(new, rows)

    def _read_anew(self) -> None:
        """Read all running episodes from their beginnings: the discriminator is another one."""
        self._states = self.model.judge.initial_states(self.num_envs)
        self._log_probs = None
        self._read_with = self.model.updates
        for t in range(int(self._lengths.max())):
            parts = {name: array[t] for name, array in self._seen.items()}
            self._read_step(parts, self._lengths > t)

    def _forget(self, rows: np.ndarray) -> None:
        if self._states is not None:
            blank = self.model.judge.initial_states(self.num_envs)
            self._states = _where(rows, blank, self._states)

    def _keep(self, new: Tensor, rows: np.ndarray) -> None:
        old = new if self._log_probs is None else self._log_probs
        mask = torch.from_numpy(rows).to(new.device)
        self._log_probs = torch.where(mask[None, :, None], new, old)

    def _mask(self, which: Any) -> np.ndarray:
        if which is None:
            return np.ones(self.num_envs, bool)
        mask = np.asarray(which)
        if mask.dtype != bool or mask.shape != (self.num_envs,):
            raise ValueError(f"which must be a mask of shape ({self.num_envs},)")
        return mask


def _leave(observations: Parts, lengths: np.ndarray, labels: np.ndarray) -> None:
    """Let episodes go."""


def _only(observations: Any, rows: np.ndarray) -> Any:
    """Observations; where they are not to be read, and need not be finite, one of the others."""
    if rows.all():
        return observations
    if isinstance(observations, Mapping):
        return {name: _only(inner, rows) for name, inner in observations.items()}
    array = np.array(observations)
    array[~rows] = array[rows.argmax()]
    return array


def as_labels(labels: Any) -> np.ndarray:
    """Labels as whole numbers, `NOT_TOLD` for None."""
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "iu":
        return labels.astype(np.int64, copy=False)
    found = np.full(len(labels), NOT_TOLD)
    for n, label in enumerate(labels):
        if label is None:
            continue
        value = np.asarray(label)
        if value.size != 1 or value.dtype.kind not in "iu":
            raise ValueError(f"label must be a whole number, got {label!r} of environment {n}")
        if value.item() < 0:
            raise ValueError(f"label {value.item()} of environment {n} is out of range")
        found[n] = value.item()
    return found


def _where(rows: np.ndarray, new: Sequence[Any], old: Any) -> list[Any]:
    """States of members, those of some environments replaced; batches are their first axis."""

    def pick(a: Tensor, b: Tensor) -> Tensor:
        mask = torch.from_numpy(rows).to(a.device)
        return torch.where(mask.reshape(-1, *(1 for _ in a.shape[1:])), a, b)

    return list(pytree.tree_map(pick, list(new), list(old)))
