"""Stable-Baselines3's agents with a replay buffer: rewards are made anew whenever it samples.

    env = Rewarded(vec_env, model)
    agent = DQN("MultiInputPolicy", env, **replay(env))
    agent.learn(100_000, callback=env.learner())

A buffer keeps transitions, so the judge is ``"state"`` or ``"final"``. With ``agent.save`` goes
neither the buffer nor the reward model: ``DQN.load(path, env=env, **replay(env))``.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

from irrl.adapters.sb3 import Rewarded
from irrl.errors import UserError
from irrl.reward_model.payment import payments
from irrl.reward_model.spaces import Parts

__all__ = ["replay"]


def replay(env: VecEnv) -> dict[str, Any]:
    """What an agent with a replay buffer is to be made with: its buffer's class and arguments.

    Args:
        env: the environments as the agent has them, `Rewarded` among their wrappers.

    Returns:
        Arguments of the agent, by name.

    Example:
        >>> import gymnasium, irrl
        >>> from stable_baselines3.common.env_util import make_vec_env
        >>> make = lambda: irrl.envs.Skills(gymnasium.make("irrl/PointMass-v0"), codes=4)
        >>> model = irrl.RewardModel(make().observation_space["observation"], 4, mode="skills")
        >>> env = Rewarded(make_vec_env(make, n_envs=1), model)
        >>> options = replay(env)  # SAC("MultiInputPolicy", env, **options)
        >>> options["replay_buffer_class"].__name__
        'DictRelabellingBuffer'
    """
    has_names = isinstance(env.observation_space, spaces.Dict)
    return {
        "replay_buffer_class": DictRelabellingBuffer if has_names else RelabellingBuffer,
        "replay_buffer_kwargs": {"link": Link(find_rewarded(env))},
    }


def find_rewarded(env: VecEnv) -> Rewarded:
    """The wrapper that pays; raises if there is none, or none a buffer can relabel for."""
    layer = env
    while not isinstance(layer, Rewarded):
        if not isinstance(layer, VecEnvWrapper):
            raise UserError("replay needs environments in irrl.adapters.sb3.Rewarded")
        layer = layer.venv
    if layer.model.settings.judge == "trajectory":
        raise UserError(
            "a replay buffer holds transitions, not trajectories: make the reward model with "
            "judge='state' or 'final'"
        )
    if layer.model.kind.moves:
        raise UserError("labels that move do not go with a replay buffer: take ppo or another")
    return layer


class Link:
    """The way from a buffer to its environments. A copy leads there too; one from a file nowhere.

    So an agent can be copied and saved, and its reward model stays one.
    """

    def __init__(self, env: Rewarded | None = None) -> None:
        self.env = env

    def __deepcopy__(self, memo: Any) -> "Link":
        return self

    def __reduce__(self) -> Any:
        return Link, ()

    def follow(self) -> Rewarded:
        """The environments."""
        if self.env is None:
            raise UserError(
                "this replay buffer comes from a file, without a reward model: load the agent with "
                "**irrl.adapters.sb3_replay.replay(env), or set replay_buffer.link.env"
            )
        return self.env


class RelabellingBuffer(ReplayBuffer):
    """Transitions, with what the reward model judges of them; pays what it finds them worth now."""

    relabels = True

    def __init__(self, *args: Any, link: Link, **options: Any) -> None:
        if options.pop("n_steps", 1) != 1 or options.pop("gamma", None) is not None:
            raise UserError("an n-step buffer adds up rewards before they can be relabelled")
        if options.get("optimize_memory_usage"):
            raise UserError("optimize_memory_usage does not go with relabelling: leave it off")
        super().__init__(*args, **options)
        self.link = link
        self.labels = np.zeros((0, self.n_envs))  # made with the first transition
        self.began = np.zeros((self.buffer_size, self.n_envs), bool)
        self.judged: Parts = {}  # so too
        if link.env is not None:
            self._make_judged()

    def _make_judged(self) -> None:
        # The last row keeps what the oldest transition came from, which is no longer in the ring.
        rows = (self.buffer_size + 1, self.n_envs)
        model = self.link.follow().model
        parts = model.parts
        self.labels = model.kind.nothing(self.buffer_size, self.n_envs)
        self.judged = {n: np.zeros((*rows, *p.shape), p.dtype) for n, p in parts.items()}

    def add(self, *transition: Any) -> None:
        """Keep a transition of each environment, the one that was taken last."""
        seen = self.link.follow().judged
        if not self.judged:
            self._make_judged()
        pos = self.pos
        for name, array in self.judged.items():
            if self.full:
                array[-1] = array[pos]
            array[pos] = seen.observations[name]
        self.labels[pos], self.began[pos] = seen.labels, seen.began
        super().add(*transition)

    def _get_samples(self, batch_inds: np.ndarray, env: Any = None) -> Any:
        # Which environments will be drawn: known beforehand, for rewards to be there in time.
        state = np.random.get_state()
        chosen = np.random.randint(0, high=self.n_envs, size=(len(batch_inds),))
        np.random.set_state(state)
        self.rewards[batch_inds, chosen] = self.relabelled(batch_inds, chosen)
        return super()._get_samples(batch_inds, env)

    # --- rewards ---

    def relabelled(self, rows: np.ndarray, envs: np.ndarray) -> np.ndarray:
        """What transitions, by their places in the buffer, are paid by the discriminator of now."""
        pay = self.link.follow().model.settings.pay
        if pay == "environment":
            return self.rewards[rows, envs]
        ended, began = self.dones[rows, envs] > 0, self.began[rows, envs]
        paid = ended if pay == "end" else np.ones(len(rows), bool)
        after = self._potential(rows, rows, envs, paid)
        before = np.zeros(len(rows))
        if pay == "differences":
            oldest = self.pos if self.full else 0
            before = self._potential(
                np.where(rows == oldest, self.buffer_size, rows - 1), rows, envs, ~began
            )
        return payments(pay, after, before, ended)

    @torch.no_grad()
    def _potential(
        self, places: np.ndarray, rows: np.ndarray, envs: np.ndarray, which: np.ndarray
    ) -> np.ndarray:
        """Rewards of what lies at some places, by labels of transitions; zero but at `which`."""
        found = np.zeros(len(rows))
        if which.any():
            model = self.link.follow().model
            seen = {n: a[places[which], envs[which]] for n, a in self.judged.items()}
            tensors = model.judge.to_tensors({n: a[None] for n, a in seen.items()})
            labels = self.labels[rows[which], envs[which]]
            found[which] = model.potential(model.judge(tensors)[:, 0], labels, seen)
        return found

    # --- to and from a checkpoint ---

    def to_arrays(self) -> dict[str, np.ndarray]:
        """All transitions, as arrays by name: the buffer's own, to be written before it goes on."""
        place = np.array([self.pos, self.full, self.buffer_size, self.n_envs])
        return {"place": place, **{name: a[rows] for name, a, rows in self._arrays(self.size())}}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Become what `to_arrays` gave; raises if that is of another buffer."""
        if not self.judged:
            self._make_judged()
        if arrays["place"].shape != (4,) or arrays["place"].dtype != np.int64:
            raise UserError("a stored buffer is damaged: it does not know its place")
        pos, full, size, n_envs = map(int, arrays["place"])
        if not 0 <= pos < size or full not in (0, 1):
            raise UserError("a stored buffer is damaged: its place is outside of it")
        if (size, n_envs) != (self.buffer_size, self.n_envs):
            raise UserError(
                f"a stored buffer of {size} transitions of {n_envs} environments does not fit one "
                f"of {self.buffer_size} of {self.n_envs}"
            )
        found = list(self._arrays(size if full else pos))
        for name, array, rows in found:
            like = array[rows]
            if name not in arrays:
                raise UserError(f"a stored buffer is damaged: {name!r} is missing")
            if arrays[name].shape != like.shape or arrays[name].dtype != like.dtype:
                raise UserError(f"a stored buffer is of other spaces: {name!r} does not fit")
            if name != "labels" and not np.isfinite(arrays[name]).all():
                raise UserError(f"a stored buffer is damaged: {name!r} must be finite")
        kind = self.link.follow().model.kind
        labels = arrays["labels"].reshape(-1, *arrays["labels"].shape[2:])
        kind.accept(labels[kind.is_told(labels)])
        for name, array, rows in found:
            array[rows] = arrays[name]
        self.pos, self.full = pos, bool(full)

    def _arrays(self, size: int) -> Iterator[tuple[str, np.ndarray, slice]]:
        """All arrays by name, with the rows that are in use."""
        used = slice(0, size)
        for name in ("observations", "next_observations"):
            whole: Any = getattr(self, name)
            named = isinstance(whole, dict)
            for key, array in whole.items() if named else [("", whole)]:
                yield f"{name}.{key}" if named else name, array, used
        for name in ("actions", "rewards", "dones", "timeouts", "labels", "began"):
            yield name, getattr(self, name), used
        for name, array in self.judged.items():
            yield f"judged.{name}", array, used
            yield f"origin.{name}", array, slice(self.buffer_size, None)


class DictRelabellingBuffer(RelabellingBuffer, DictReplayBuffer):
    """The same for observations with names."""
