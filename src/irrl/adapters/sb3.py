"""Stable-Baselines3: a wrapper that pays, and a callback that learns.

    env = Rewarded(vec_env, irrl.RewardModel(space, labels=10))
    PPO("MlpPolicy", env).learn(100_000, callback=env.learner())

Rewards are paid in ``step_wait``, before advantages are computed. The discriminator learns between
two rollouts, after the policy did. `irrl.adapters.sb3_replay` has what agents with a replay buffer
need besides. ``agent.save`` saves the agent alone: ``env.model.save`` saves the reward model.
"""

import math
import time
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper, VecNormalize

from irrl.adapters.common import (
    See,
    default_see,
    find_predict,
    labels_of_infos,
    require_plain_action,
    rest_of,
    row_of,
    with_rows,
)
from irrl.errors import UserError
from irrl.reward_model import Collector, RewardModel
from irrl.reward_model.spaces import Parts, to_parts

__all__ = ["Learner", "Rewarded"]

OBSERVED = ("raw", "inputs", "belief")


class Judged(NamedTuple):
    """What the last step of all environments led to, for a replay buffer."""

    observations: Parts  # at the end of an episode its last one
    labels: np.ndarray  # -1, or NaN of numbers, where none was told yet
    began: np.ndarray  # whether the step was the first of its episode


class Rewarded(VecEnvWrapper):
    """Environments that pay what a reward model finds, in place of rewards of their own.

    Where episodes are paid at the end, an end is a termination: a time limit is no reason to expect
    more. What episodes earn is in ``info["episode"]``, as a monitor has it; what they
    earned of the environment's own rewards is in ``info["environment_episode"]``.

    Args:
        venv: the environments. A `VecNormalize` goes around this wrapper, never inside it.
        model: the reward model.
        label: where ``info`` has the label; a path such as ``"prediction.target"``.
        see: what of observations is judged, as a function of them, with a leading axis for the
            environments; for those of `irrl.envs.Skills` all but the code, else all.
        observe: what the policy sees: ``"raw"`` observations, or ``"inputs"``, as the default
            discriminator reads them, normalised and as one vector, with all that is not judged;
            ``"belief"`` adds what the discriminator believes: probabilities of classes, or means
            and log standard deviations of numbers, in those of the prior.
        training: whether the reward model is to learn from these episodes; False for evaluation.

    Example:
        >>> import gymnasium, irrl
        >>> from stable_baselines3 import PPO
        >>> from stable_baselines3.common.env_util import make_vec_env
        >>> make = lambda: irrl.envs.Skills(gymnasium.make("irrl/PointMass-v0"), codes=4)
        >>> model = irrl.RewardModel(make().observation_space["observation"], 4, mode="skills")
        >>> env = Rewarded(make_vec_env(make, n_envs=2, seed=0), model)
        >>> agent = PPO("MultiInputPolicy", env, n_steps=50, batch_size=50, n_epochs=1, seed=0)
        >>> _ = agent.learn(100, callback=env.learner())
        >>> model.episodes
        4
    """

    def __init__(
        self,
        venv: VecEnv,
        model: RewardModel,
        label: str = "label",
        see: See | None = None,
        observe: str = "raw",
        training: bool = True,
    ) -> None:
        if observe not in OBSERVED:
            raise UserError(f"observe must be one of {', '.join(OBSERVED)}, got {observe!r}")
        require_plain_action(venv.action_space)
        self.model, self.label, self.observe = model, label, observe
        self.base = base_of(venv)
        space = venv.observation_space
        self.see = see or default_see(space, model)
        if observe != "raw":
            self.rest = rest_of(space, model) if see is None else _require_dictionary(space)
            space = self._inputs_space(space)
        super().__init__(venv, space)
        self.predict = find_predict(venv)
        track = self.predict is not None or observe == "belief"
        self.collector = Collector(model, venv.num_envs, track, training)
        self._last: Any = None
        self._labels = self._began = np.zeros(0, int)
        self._earned, self._own = np.zeros(venv.num_envs), np.zeros(venv.num_envs)
        self._taken = np.zeros(venv.num_envs, np.int64)
        self._started = time.perf_counter()

    def learner(self, health_every: int = 10) -> "Learner":
        """The callback by which the reward model learns: give it to ``agent.learn``."""
        return Learner(self.model, health_every)

    @property
    def judged(self) -> Judged:
        """What the reward model judges of the step just taken."""
        seen = to_parts(self.model.parts, self.see(self._last), (self.num_envs,))
        return Judged(seen, self._labels, self._began)

    # --- a vector environment ---

    def reset(self) -> Any:
        """Begin episodes in all environments."""
        observations = self.venv.reset()
        self._begin(observations, np.ones(self.num_envs, bool))
        self._earned[:] = self._own[:] = self._taken[:] = 0
        return self.observed(observations)

    def step_async(self, actions: np.ndarray) -> None:
        """Act, and tell environments that ask for predictions what is believed."""
        if self.predict is not None:
            self.predict(self.collector.predictions)
        self.venv.step_async(actions)

    def step_wait(self) -> Any:
        """Pay for what the actions led to."""
        observations, own, dones, infos = self.venv.step_wait()
        (over,) = np.nonzero(dones)
        self._last = with_rows(observations, over, _ends(infos, over))
        told = labels_of_infos(infos, self.label)
        rewards = self.collector.step(self.see(self._last), dones, told)
        if self.collector.pay == "environment":
            rewards = np.array(own, np.float32)
        self._own += own
        self._labels, self._began = self.collector.labels, self._taken == 0
        self._earned += rewards
        self._taken += 1
        if len(over):
            self._account(over, infos)
            self._begin(observations, dones)
        return self.observed(observations), rewards, dones, infos

    def _begin(self, observations: Any, which: np.ndarray) -> None:
        self.reset_infos = self.base.reset_infos  # wrappers between have none of their own
        told = labels_of_infos(self.reset_infos, self.label)
        self.collector.begin(self.see(observations), told, which)

    def _account(self, over: np.ndarray, infos: list[dict[str, Any]]) -> None:
        now = round(time.perf_counter() - self._started, 6)
        shown = self.observed(row_of(self._last, over), over) if self.observe != "raw" else None
        for row, n in enumerate(over):
            info = infos[n]
            length = int(self._taken[n])
            own = {"r": float(self._own[n]), "l": length, "t": now}
            info["environment_episode"] = info.get("episode", own)
            info["episode"] = {"r": float(self._earned[n]), "l": length, "t": now}
            if self.model.settings.ends_are_final:
                info["TimeLimit.truncated"] = False
            if shown is not None:
                info["terminal_observation"] = shown[row]
        self._earned[over] = self._own[over] = self._taken[over] = 0

    # --- what the policy sees ---

    def _inputs_space(self, space: spaces.Space[Any]) -> spaces.Box:
        features = self.model.discriminator.features
        if features.images:
            raise UserError(
                f"observe {self.observe!r} is for vectors and small images; leave large ones "
                "'raw', for a policy with convolutions"
            )
        rest = {name: space[name] for name in self.rest}  # type: ignore[index]
        for name, part in rest.items():
            if not isinstance(part, spaces.Box | spaces.MultiBinary):
                raise UserError(
                    f"observe {self.observe!r} cannot show {name!r}, a {type(part).__name__}"
                )
        size = features.size + sum(math.prod(part.shape) for part in rest.values())
        if self.observe == "belief":
            size += len(self.model.kind.shown(self.model.log_prior()))
        return spaces.Box(-np.inf, np.inf, (size,), np.float32)

    def observed(self, observations: Any, which: Any = slice(None)) -> Any:
        """What the policy sees of observations of some environments, by their places."""
        if self.observe == "raw":
            return observations
        seen = self.see(observations)
        n = len(next(iter(seen.values())) if isinstance(seen, dict) else seen)
        parts = to_parts(self.model.parts, seen, (n,))
        with torch.no_grad():
            judge = self.model.discriminator
            vectors = judge.features(judge.to_tensors(parts))[0].cpu().numpy()
        rest = [np.reshape(observations[name], (n, -1)) for name in self.rest]
        if self.observe == "belief":
            rest.append(self.model.kind.shown(self.collector.beliefs[which]))
        return np.concatenate([vectors, *rest], axis=1, dtype=np.float32) if rest else vectors


class Learner(BaseCallback):
    """The discriminator learns after policy updates; its loss and health are logged.

    It learns as soon as new episodes call for a whole batch: after each rollout where those are
    long, now and then where an agent updates after every few steps.

    Args:
        model: the reward model.
        health_every: updates between two looks at its health, which cost a little.

    Example:
        >>> from gymnasium import spaces
        >>> model = RewardModel(spaces.Box(-1.0, 1.0, (2,)), labels=3)
        >>> callback = Learner(model, health_every=5)  # or env.learner(5)
    """

    def __init__(self, model: RewardModel, health_every: int = 10) -> None:
        super().__init__()
        self.reward_model, self.health_every = model, health_every

    def _on_training_start(self) -> None:
        if isinstance(self.model, OffPolicyAlgorithm) and self.reward_model.oracle is None:
            require_relabelling(self.model)

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        if self.reward_model.batches_due >= 1:
            self._learn()

    def _on_training_end(self) -> None:
        self._learn()

    def _learn(self) -> None:
        found = self.reward_model.learn()
        if found and self.reward_model.updates % self.health_every == 0:
            found |= self.reward_model.health()
        for name, value in found.items():
            self.logger.record(f"reward_model/{name}", value)


# --- what fits together ---


def base_of(venv: VecEnv) -> VecEnv:
    """The innermost vector environment; raises where observations are normalised on the way."""
    while isinstance(venv, VecEnvWrapper):
        if isinstance(venv, VecNormalize):
            raise UserError(
                "a VecNormalize lies inside: put it around Rewarded, whose reward model keeps "
                "statistics of its own"
            )
        venv = venv.venv
    return venv


def require_relabelling(agent: OffPolicyAlgorithm) -> None:
    """Raise where an agent would replay rewards of a discriminator that is no more."""
    name = type(agent).__name__
    if agent.n_steps > 1 or hasattr(agent.replay_buffer, "n_steps"):
        raise UserError(
            f"n_steps={agent.n_steps}: an n-step buffer adds up rewards before they can be "
            "relabelled; take n_steps=1"
        )
    if not getattr(agent.replay_buffer, "relabels", False):
        raise UserError(
            f"rewards in the buffer of {name} go stale while the discriminator learns: make it as "
            f"{name}(policy, env, **irrl.adapters.sb3_replay.replay(env))"
        )


def _require_dictionary(space: spaces.Space[Any]) -> list[str]:
    raise UserError(
        f"observe 'inputs' does not go with `see`, which does not say what else of {space} the "
        "policy is to see"
    )


def _ends(infos: list[dict[str, Any]], over: np.ndarray) -> list[Any]:
    """Last observations of episodes: that of `infos`, since the present one begins the next."""
    for n in over:
        if "terminal_observation" not in infos[n]:
            raise UserError(f"environment {n} ended without a terminal_observation in info")
    return [infos[n]["terminal_observation"] for n in over]
