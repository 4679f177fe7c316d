"""The internal reward model: a discriminator that is still learning, and what it pays a policy.

The loop, the same in every task:

    trajectory = rollout(policy, label)                 # label y ~ p(y)
    reward     = shape(log q(y | trajectory), log p(y)) # never carries a gradient
    policy        <- trajectory, reward
    discriminator <- trajectory, label

A `RewardModel` is the second and the fourth line. It knows episodes, not agents: `Collector` takes
in what parallel environments show and gives back what to pay; `irrl.adapters` connects it to agents.
"""

import json
import math
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from gymnasium import spaces
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_safetensors
from torch import Tensor

from irrl.diagnostics import discriminator_health
from irrl.ensembles import disagreement, log_mean_exp
from irrl.errors import UserError
from irrl.nn.models import Arrays
from irrl.reward_model.discriminator import Discriminator, Make, frozen
from irrl.reward_model.payment import payments_of_episode
from irrl.reward_model.settings import Settings
from irrl.reward_model.spaces import Part, Parts, from_json, parts_of, to_json, to_parts
from irrl.reward_model.store import Batch, EpisodeStore
from irrl.rewards import reward as find_reward
from irrl.runs.files import write_atomic

LOOKED_AT = 256  # episodes by which health is measured
SURE = 5.0  # standard errors above chance, for first observations to tell the label


class RewardModel:
    """Discriminator and reward function: learns q(y | trajectory), and pays for it.

    Args:
        observation_space: of what it judges (Gymnasium): vectors, images, categories, dictionaries.
        labels: how many there are.
        discriminator: one of your own: a `torch.nn.Module` that maps observations ``(T, B, ...)``
            to logits or log-probabilities ``(T, B, labels)``, or a function that makes one.
        oracle: another reward model, whose frozen discriminator pays in place of the learned one.
        **settings: see `Settings`.

    Example:
        >>> import numpy as np
        >>> from gymnasium.spaces import Box
        >>> model = RewardModel(Box(-1.0, 1.0, (2,)), labels=4, mode="skills")
        >>> episode = np.zeros((26, 2), np.float32)   # of 25 actions
        >>> model.rewards(episode, label=3).shape
        (25,)
        >>> model.add(episode, label=3)
        >>> sorted(model.learn())
        ['discriminator_batches', 'discriminator_loss']
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any] | Mapping[str, Part],
        labels: int,
        discriminator: Make = None,
        oracle: "RewardModel | None" = None,
        **settings: Any,
    ) -> None:
        if isinstance(labels, bool) or not isinstance(labels, int) or labels < 2:
            raise ValueError(f"labels must be a whole number, at least 2, got {labels!r}")
        is_space = isinstance(observation_space, spaces.Space)
        self.parts = dict(parts_of(observation_space) if is_space else observation_space)
        self.labels = labels
        self.settings = Settings.from_json(settings)
        if not isinstance(self.settings.prior, str) and len(self.settings.prior) != labels:
            raise ValueError(
                f"prior must have a probability for each of {labels} labels, got "
                f"{len(self.settings.prior)}"
            )
        self.discriminator = Discriminator(self.parts, labels, self.settings, discriminator)
        self.oracle = None if oracle is None else self._accept_oracle(oracle)
        self.reward_fn = self.settings.reward_fn(validate=False)
        self.store = EpisodeStore(self.parts, self.settings.store or 1)
        self.held_out = EpisodeStore(self.parts, LOOKED_AT)
        self.label_counts = np.zeros(labels, np.int64)
        self.updates = 0
        self._new_episodes = self._new_states = 0
        self._told_of_leak = False

    def _accept_oracle(self, oracle: "RewardModel") -> Discriminator:
        self.require_like(oracle.parts, oracle.labels, "the oracle")
        if oracle.settings.judge != self.settings.judge:
            raise ValueError(
                f"the oracle judges {oracle.settings.judge!r}, this model {self.settings.judge!r}"
            )
        return frozen(oracle.discriminator)

    def require_like(self, parts: Mapping[str, Part], labels: int, whose: str) -> None:
        """Raise unless something is for the same observations and labels."""
        if dict(parts) != self.parts:
            raise ValueError(
                f"{whose} is of another observation space: {_said(parts)}, expected "
                f"{_said(self.parts)}"
            )
        if labels != self.labels:
            raise ValueError(f"{whose} has {labels} labels, expected {self.labels}")

    # --- the prior and the reward ---

    @property
    def episodes(self) -> int:
        """Episodes seen so far."""
        return int(self.label_counts.sum())

    @property
    def judge(self) -> Discriminator:
        """The discriminator that pays: the oracle where there is one."""
        return self.discriminator if self.oracle is None else self.oracle

    def log_prior(self) -> np.ndarray:
        """Shape ``(labels,)``; a count has one added, so that no label has probability zero."""
        if self.settings.prior == "uniform":
            return np.full(self.labels, -math.log(self.labels), np.float32)
        if self.settings.prior == "counted":
            counts = self.label_counts + 1.0
            return np.log(counts / counts.sum()).astype(np.float32)
        return np.log(np.asarray(self.settings.prior)).astype(np.float32)

    def potential(self, log_probs: Tensor, labels: np.ndarray) -> np.ndarray:
        """Rewards of posteriors, log-probabilities ``(N, ..., K)`` of the members: ``(...)``."""
        if self.episodes < self.settings.warm_up:
            return np.zeros(labels.shape)
        rewards = self.reward_fn(
            log_probs, torch.from_numpy(labels), torch.from_numpy(self.log_prior()), ensemble=True
        )
        if self.settings.bonus:
            rewards = rewards + self.settings.bonus * disagreement(log_probs, validate=False)
        found = rewards.cpu().numpy().astype(float)
        if not np.isfinite(found).all():
            raise UserError("the discriminator diverged: lower its learning_rate and start anew")
        return found

    @torch.no_grad()
    def rewards(self, observations: Any, label: int) -> np.ndarray:
        """What each action of a whole episode is paid.

        Args:
            observations: of the episode, the first and the last included: ``(T + 1, ...)``, or a
                dictionary of such arrays.
            label: of the episode.

        Returns:
            Payments of the T actions.
        """
        parts, length = self._episode(observations)
        self.require_labels(np.array([label]))
        stacked = {name: array[:, None] for name, array in parts.items()}
        log_probs = self.judge(self.judge.to_tensors(stacked))[:, :, 0]
        potentials = self.potential(log_probs, np.full(length, label))
        return payments_of_episode(self.settings.pay, potentials)

    def log_probs(self, observations: Any) -> np.ndarray:
        """Log-probabilities of the labels after each observation of an episode: ``(T, labels)``."""
        parts, _ = self._episode(observations)
        stacked = {name: array[:, None] for name, array in parts.items()}
        with torch.no_grad():
            found = self.judge(self.judge.to_tensors(stacked))[:, :, 0].cpu().numpy()
        return np.asarray(log_mean_exp(np, found))

    def _episode(self, observations: Any) -> tuple[Parts, int]:
        first = next(iter(observations.values())) if isinstance(observations, Mapping) else None
        length = len(observations if first is None else first)
        return to_parts(self.parts, observations, (length,)), length

    def require_labels(self, labels: np.ndarray) -> None:
        """Raise unless labels are whole numbers in range."""
        if labels.dtype.kind not in "iu":
            raise ValueError(f"label must be a whole number, got {labels.ravel()[0]!r}")
        wrong = labels[(labels < 0) | (labels >= self.labels)]
        if wrong.size:
            raise ValueError(f"label {wrong.ravel()[0]} is out of range: 0..{self.labels - 1}")

    # --- learning ---

    def add(self, observations: Any, label: int) -> None:
        """Take in a whole episode, with its first and its last observation."""
        parts, length = self._episode(observations)
        self.add_many(parts, np.array([length]), np.array([label]))

    def add_many(self, observations: Parts, lengths: np.ndarray, labels: np.ndarray) -> None:
        """Take in episodes that lie one after the other in arrays by part."""
        self.require_labels(labels)
        if self.settings.judge == "final":  # the first one is kept to see whether it tells
            ends = np.cumsum(lengths)
            rows = np.stack([ends - lengths, ends - 1], axis=1).ravel()
            observations = {name: array[rows] for name, array in observations.items()}
            lengths = np.full(len(labels), 2)
        judged = slice(1, None, 2) if self.settings.judge == "final" else slice(None)
        normaliser = self.discriminator.features.normaliser
        normaliser.add({name: array[judged] for name, array in observations.items()})
        random = np.random.default_rng([self.settings.seed, 1, self.episodes])
        held_out = random.random(len(labels)) < self.settings.held_out
        for store, chosen in ((self.store, ~held_out), (self.held_out, held_out)):
            if chosen.any():
                rows = np.repeat(chosen, lengths)
                kept = {name: array[rows] for name, array in observations.items()}
                store.add(kept, lengths[chosen], labels[chosen])
        self.label_counts += np.bincount(labels, minlength=self.labels)
        self._new_episodes += len(labels)
        self._new_states += int(lengths.sum())

    def learn(self) -> dict[str, float]:
        """Learn from stored episodes, as many batches as the new ones call for; say how it went."""
        if not self._new_episodes or not len(self.store):
            return {}
        self.discriminator.features.normaliser.settle()
        settings, by_state = self.settings, self.settings.judge == "state"
        new = self._new_states if by_state else self._new_episodes
        batches = math.ceil(new * (settings.samples_per_episode or 1) / settings.batch_size)
        random = np.random.default_rng([settings.seed, 2, self.updates])
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(random.integers(2**31)))  # for a module that uses chance
            self.discriminator.train()
            losses = [self.discriminator.learn(self._sample(random)) for _ in range(batches)]
            self.discriminator.eval()
        if not np.isfinite(losses).all():
            raise UserError("the discriminator diverged: lower its learning_rate and start anew")
        self._new_episodes = self._new_states = 0
        self.updates += 1
        return {
            "discriminator_loss": float(np.mean(losses)),
            "discriminator_batches": float(batches),
        }

    def _sample(self, random: np.random.Generator) -> Batch:
        size = self.settings.batch_size
        if self.settings.judge == "state":
            return self.store.states(random.integers(self.store.steps, size=size))
        return self.store.episodes(random.integers(len(self.store), size=size))

    # --- health ---

    def health(self) -> dict[str, float]:
        """How the discriminator is doing on episodes that it never learned from.

        Beside the numbers of `irrl.diagnostics.discriminator_health`: ``n_skills`` (Eq. 9),
        accuracy on episodes it did learn from, by which overfitting shows, and accuracy on first
        observations, which is above chance where observations give the label away.
        """
        store = self.held_out if len(self.held_out) else self.store
        if not len(store):
            return {}
        newest = store.episodes(_newest(store, LOOKED_AT))
        log_probs = self._mixture(newest)
        found = self.health_of(log_probs, newest.labels)
        first = self._mixture(newest._replace(lengths=np.ones_like(newest.lengths)))
        told = float((first.argmax(axis=1) == newest.labels).mean())
        self._warn_of_leak(told, len(newest.labels))
        learned = self._as_old_as_held_out()
        accuracy = float((self._mixture(learned).argmax(axis=1) == learned.labels).mean())
        return {
            **found,
            "train_discriminator_accuracy_percent": 100.0 * accuracy,
            "first_observation_accuracy_percent": 100.0 * told,
        }

    def _as_old_as_held_out(self) -> Batch:
        """Episodes that were learned from, of the same time as those held out."""
        share = self.settings.held_out or 1.0
        recent = _newest(self.store, math.ceil(LOOKED_AT * (1.0 - share) / share) or LOOKED_AT)
        return self.store.episodes(recent[:: math.ceil(len(recent) / LOOKED_AT) or 1])

    def health_of(self, log_probs: np.ndarray, labels: np.ndarray) -> dict[str, float]:
        """Health by given posteriors, log-probabilities ``(n, labels)``; n_skills among it."""
        reward_fn = self.reward_fn
        if reward_fn.needs_ensemble:  # what it pays for the mixture, without the bonus
            reward_fn = find_reward("clipped-log", validate=False)
        log_prior = self.log_prior()
        log_q = log_probs[np.arange(len(labels)), labels]
        bits = float((log_q - log_prior[labels]).mean()) / math.log(2.0)
        health = discriminator_health(log_probs, labels, reward_fn, log_prior)
        return {"n_skills": 2.0**bits, **health}

    def _mixture(self, batch: Batch) -> np.ndarray:
        return np.asarray(log_mean_exp(np, self.discriminator.judge(batch).cpu().numpy()))

    def _warn_of_leak(self, told: float, n: int) -> None:
        chance = float(np.exp(self.log_prior()).max())
        above = (told - chance) / math.sqrt(chance * (1.0 - chance) / n)
        if above > SURE and not self._told_of_leak:
            self._told_of_leak = True
            warnings.warn(
                f"first observations already tell the label in {100 * told:.0f} % of episodes "
                f"({100 * chance:.0f} % by chance): does the observation give it away?",
                stacklevel=3,
            )

    # --- to and from files ---

    def to_checkpoint(self, store: bool = True) -> tuple[Arrays, dict[str, Any]]:
        """All it needs to go on, as arrays and JSON; without the stored episodes it can only pay."""
        arrays = {"label_counts": self.label_counts, **self.discriminator.to_arrays(store)}
        if store:
            arrays |= {f"store.{n}": a for n, a in self.store.to_arrays().items()}
            arrays |= {f"held_out.{n}": a for n, a in self.held_out.to_arrays().items()}
        if self.oracle is not None:
            arrays |= {f"oracle.{n}": a for n, a in self.oracle.to_arrays(False).items()}
        return arrays, {
            "parts": to_json(self.parts),
            "labels": self.labels,
            "settings": self.settings.to_json(),
            "counts": [self.updates, self._new_episodes, self._new_states],
            "has_store": store,
        }

    def restore(self, arrays: Arrays, state: Mapping[str, Any]) -> None:
        """Become what a checkpoint holds; raises if it is of other observations or labels."""
        try:
            parts, labels = from_json(state["parts"]), state["labels"]
            counts, has_store = tuple(map(int, state["counts"])), bool(state["has_store"])
            self.require_like(parts, labels, "the saved reward model")
            self.discriminator.restore(arrays, optimiser=has_store)
            if has_store:
                self.store.restore(_below("store.", arrays))
                self.held_out.restore(_below("held_out.", arrays))
            self.label_counts = np.array(arrays["label_counts"], np.int64)
            if self.oracle is not None:
                self.oracle.restore(_below("oracle.", arrays), optimiser=False)
        except (KeyError, TypeError) as error:
            raise ValueError(f"the saved reward model is damaged: {error} is missing") from None
        self.updates, self._new_episodes, self._new_states = counts

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` takes: arrays and JSON of `to_checkpoint`."""
        arrays, state = self.to_checkpoint()
        return {"arrays": arrays, "state": state}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Become what `state_dict` gave."""
        self.restore(saved["arrays"], saved["state"])

    def save(self, path: str | Path, store: bool = True) -> None:
        """Write one file (safetensors, with JSON in its header); it holds no code."""
        arrays, state = self.to_checkpoint(store)
        contiguous = {name: np.ascontiguousarray(a) for name, a in arrays.items()}
        write_atomic(Path(path), to_safetensors(contiguous, {"irrl": json.dumps(state)}))

    @classmethod
    def load(cls, path: str | Path, discriminator: Make = None, oracle: Self | None = None) -> Self:
        """A reward model from a file; one of your own discriminators must be given again."""
        try:
            with safe_open(path, "numpy") as file:
                state = json.loads(file.metadata()["irrl"])
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is not a saved reward model: {error}") from None
        model = cls(
            from_json(state["parts"]), state["labels"], discriminator, oracle, **state["settings"]
        )
        model.restore(arrays, state)
        return model


def _newest(store: EpisodeStore, count: int) -> np.ndarray:
    return np.arange(max(0, len(store) - count), len(store))


def _below(prefix: str, arrays: Mapping[str, Any]) -> dict[str, Any]:
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}


def _said(parts: Mapping[str, Part]) -> str:
    return ", ".join(f"{name} {part.shape}" for name, part in parts.items())
