"""Stable-Baselines3: a wrapper that pays, and a callback that learns.

    env = Rewarded(vec_env, irrl.RewardModel(space, labels=10))
    PPO("MlpPolicy", env).learn(100_000, callback=env.learner())

Rewards are paid in ``step_wait``, before advantages are computed. The discriminator learns between
two rollouts, after the policy did. `irrl.adapters.sb3_replay` has what agents with a replay buffer
need besides.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper, VecNormalize

from irrl.envs.perceive import look_up
from irrl.envs.skills import OBSERVATION
from irrl.reward_model import Collector, RewardModel
from irrl.reward_model.spaces import Parts, parts_of, to_parts

OBSERVED = ("raw", "inputs")
See = Callable[[Any], Any]


class Rewarded(VecEnvWrapper):
    """Environments that pay what a reward model finds, in place of rewards of their own.

    Where episodes are paid at the end, an end is a termination: a time limit is no reason to expect
    more. What episodes earn is in ``info["episode"]``, as a monitor has it; what a monitor inside
    has counted of the environment's own rewards is in ``info["environment_episode"]``.

    Args:
        venv: the environments. A `VecNormalize` goes around this wrapper, never inside it.
        model: the reward model.
        label: where ``info`` has the label; a path such as ``"prediction.target"``.
        see: what of observations is judged, as a function of them; for environments of
            `irrl.envs.Skills` the observation without the code, else all of it.
        observe: what the policy sees: ``"raw"`` observations, or ``"inputs"``, as the default
            discriminator reads them, normalised and as one vector, with all that is not judged.
    """

    def __init__(
        self,
        venv: VecEnv,
        model: RewardModel,
        label: str = "label",
        see: See | None = None,
        observe: str = "raw",
    ) -> None:
        refuse_normaliser(venv)
        self.model, self.label, self.observe = model, label, observe
        self.see = see or default_see(venv.observation_space, model)
        self.rest = rest_of(venv.observation_space, model) if see is None else []
        self.predict = find_predict(venv)
        self.collector = Collector(model, venv.num_envs, track=self.predict is not None)
        space = venv.observation_space
        super().__init__(venv, self._observed_space(space) if observe == "inputs" else space)
        if observe not in OBSERVED:
            raise ValueError(f"observe must be one of {', '.join(OBSERVED)}, got {observe!r}")
        self.seen: Parts = {}  # what the last step led to, for a replay buffer
        self._earned = np.zeros(venv.num_envs)
        self._taken = np.zeros(venv.num_envs, np.int64)
        self._started = time.perf_counter()

    def learner(self, health_every: int = 10) -> "Learner":
        """The callback by which the reward model learns: give it to ``agent.learn``."""
        return Learner(self.model, health_every)

    # --- a vector environment ---

    def reset(self) -> Any:
        """Begin episodes in all environments."""
        observations = self.venv.reset()
        self._begin(observations, np.ones(self.num_envs, bool))
        self._earned[:] = self._taken[:] = 0
        return self._observed(observations)

    def step_async(self, actions: np.ndarray) -> None:
        """Act, and tell environments that ask for predictions what is believed."""
        if self.predict is not None:
            self.predict(self.collector.log_probs)
        self.venv.step_async(actions)

    def step_wait(self) -> Any:
        """Pay for what the actions led to."""
        observations, _, dones, infos = self.venv.step_wait()
        self.seen = self._last_seen(observations, dones, infos)
        rewards = self.collector.step(self.seen, dones, self._labels(infos))
        self._earned += rewards
        self._taken += 1
        if dones.any():
            self._account(dones, infos)
            self._begin(observations, dones)
        return self._observed(observations), rewards, dones, infos

    # --- labels and observations ---

    def _labels(self, infos: list[dict[str, Any]]) -> list[Any]:
        if "." in self.label:
            return [look_up(info, self.label) for info in infos]
        return [info.get(self.label) for info in infos]

    def _begin(self, observations: Any, which: np.ndarray) -> None:
        self.collector.begin(self.see(observations), self._labels(self.venv.reset_infos), which)

    def _last_seen(self, observations: Any, dones: np.ndarray, infos: list[dict]) -> Parts:
        """What is judged of this step: the end of an episode, not the beginning of the next."""
        parts = to_parts(self.model.parts, self.see(observations), (self.num_envs,))
        if not dones.any():
            return parts
        parts = {name: array.copy() for name, array in parts.items()}
        for n in np.nonzero(dones)[0]:
            if "terminal_observation" not in infos[n]:
                raise ValueError(f"environment {n} ended without a terminal_observation in info")
            last = to_parts(self.model.parts, self.see(infos[n]["terminal_observation"]), ())
            for name, array in last.items():
                parts[name][n] = array
        return parts

    def _account(self, dones: np.ndarray, infos: list[dict[str, Any]]) -> None:
        now = round(time.perf_counter() - self._started, 6)
        for n in np.nonzero(dones)[0]:
            info = infos[n]
            if "episode" in info:
                info["environment_episode"] = info["episode"]
            info["episode"] = {"r": self._earned[n], "l": int(self._taken[n]), "t": now}
            if self.collector.pay != "steps":
                info["TimeLimit.truncated"] = False
            if self.observe == "inputs":
                one = _batched(info["terminal_observation"])
                info["terminal_observation"] = self._observed(one)[0]
        self._earned[dones] = 0
        self._taken[dones] = 0

    # --- what the policy sees ---

    def _observed_space(self, space: spaces.Space[Any]) -> spaces.Box:
        features = self.model.discriminator.features
        if features.images:
            raise ValueError(
                "observe 'inputs' is for vectors and small images; leave large ones 'raw', for a "
                "policy with convolutions"
            )
        if self.see is not None and not isinstance(space, spaces.Dict) and self.rest:
            raise ValueError("observe 'inputs' needs all that is not judged in a dictionary")
        size = features.size + sum(int(np.prod(space[name].shape)) for name in self.rest)
        return spaces.Box(-np.inf, np.inf, (size,), np.float32)

    def _observed(self, observations: Any) -> Any:
        if self.observe != "inputs":
            return observations
        seen = self.see(observations)
        n = len(next(iter(seen.values())) if isinstance(seen, Mapping) else seen)
        parts = to_parts(self.model.parts, seen, (n,))
        with torch.no_grad():
            judge = self.model.discriminator
            vectors = judge.features(judge.to_tensors(parts))[0].cpu().numpy()
        rest = [np.reshape(observations[name], (n, -1)) for name in self.rest]
        return np.concatenate([vectors, *rest], axis=1, dtype=np.float32)


class Learner(BaseCallback):
    """The discriminator learns after each policy update; its loss and health are logged.

    Args:
        model: the reward model.
        health_every: updates between two looks at its health, which cost a little.
    """

    def __init__(self, model: RewardModel, health_every: int = 10) -> None:
        super().__init__()
        self.reward_model, self.health_every = model, health_every

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        self._learn()  # nothing, before the first rollout

    def _on_training_end(self) -> None:
        self._learn()

    def _learn(self) -> None:
        found = self.reward_model.learn()
        if found and self.reward_model.updates % self.health_every == 0:
            found |= self.reward_model.health()
        for name, value in found.items():
            self.logger.record(f"reward_model/{name}", value)


# --- what fits together ---


def refuse_normaliser(venv: VecEnv) -> None:
    """Raise where observations would be normalised before they are judged."""
    while isinstance(venv, VecEnvWrapper):
        if isinstance(venv, VecNormalize):
            raise ValueError(
                "a VecNormalize lies inside: put it around Rewarded, whose reward model keeps "
                "statistics of its own"
            )
        venv = venv.venv


def default_see(space: spaces.Space[Any], model: RewardModel) -> See:
    """All of an observation, or the part that is without the code; raises if neither fits."""
    if parts_of(space) == model.parts:
        return lambda observations: observations
    if isinstance(space, spaces.Dict) and OBSERVATION in space.spaces:
        if parts_of(space[OBSERVATION]) == model.parts:
            return lambda observations: observations[OBSERVATION]
    raise ValueError(
        f"the reward model judges {', '.join(model.parts)}, the environments show {space}: make "
        "it for what they show, or say with `see` what of it is judged"
    )


def rest_of(space: spaces.Space[Any], model: RewardModel) -> list[str]:
    """What of a dictionary is not judged."""
    if not isinstance(space, spaces.Dict) or parts_of(space) == model.parts:
        return []
    return [name for name in space.spaces if name != OBSERVATION]


def find_predict(venv: VecEnv) -> Callable[[np.ndarray], None] | None:
    """What takes predictions, where the environments ask for them."""
    while isinstance(venv, VecEnvWrapper):
        venv = venv.venv
    return getattr(venv, "predict", None)


def _batched(observation: Any) -> Any:
    if isinstance(observation, Mapping):
        return {name: _batched(inner) for name, inner in observation.items()}
    return np.asarray(observation)[None]
