"""Stable-Baselines3 on preferences: a wrapper that pays, a callback that asks a judge and learns.

    model = irrl.PreferenceModel(step_space(vec_env))
    env = Preferred(vec_env, model)
    agent = PPO("MlpPolicy", env)
    agent.learn(300_000, callback=env.learner(judge=ReturnTeacher(), comparisons=600))

Every step is paid by itself, before advantages are computed. Between two rollouts, after the policy
learned, pairs of segments are shown to the judge, and the model learns from its answers. Until the
first of them nothing is paid. ``agent.save`` saves the agent alone: ``model.save`` the model.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

from irrl.adapters.common import require_plain_action
from irrl.adapters.sb3 import base_of
from irrl.errors import UserError
from irrl.preference_model import PreferenceModel
from irrl.preference_model.comparisons import are_same
from irrl.reward_model.spaces import Parts, parts_of, to_parts

OBSERVATION, ACTION = "observation", "action"
KEPT = 2_000  # newest segments that pairs are drawn from
SHORTEST = 2  # steps of a segment


class Segment(NamedTuple):
    """What a judge is shown: some steps of one episode, one after the other."""

    steps: Parts  # what was seen and what was done then, arrays by part: (T, ...)
    rewards: np.ndarray  # of the environment, which the policy never sees: (T,)


Judge = Callable[[Segment, Segment], float]


def step_space(env: VecEnv) -> spaces.Dict:
    """What a preference model scores: an observation, and the action that was taken then."""
    return spaces.Dict({OBSERVATION: env.observation_space, ACTION: env.action_space})


class ReturnTeacher:
    """The usual synthetic judge: prefers what earned more of the environment's own rewards.

    Args:
        error_rate: share of its answers that are turned round.
        seed: of its errors.

    Example:
        >>> poor, rich = (Segment({}, np.full(3, r)) for r in (0.0, 1.0))
        >>> ReturnTeacher()(poor, rich)
        0.0
    """

    def __init__(self, error_rate: float = 0.0, seed: int = 0) -> None:
        if not 0.0 <= error_rate <= 1.0:
            raise UserError(f"error_rate must be a share between 0 and 1, got {error_rate!r}")
        self.error_rate, self.random = error_rate, np.random.default_rng([seed, 3])

    def __call__(self, first: Segment, second: Segment) -> float:
        """1 where the first is better, 0 where the second is, 0.5 where they earned the same."""
        ahead = float(first.rewards.sum() - second.rewards.sum())
        answer = 0.5 if ahead == 0.0 else float(ahead > 0.0)
        return 1.0 - answer if self.random.random() < self.error_rate else answer


class Preferred(VecEnvWrapper):
    """Environments that pay what a preference model finds, in place of rewards of their own.

    What episodes earn of it is in ``info["episode"]``; a `Monitor` inside has its own say in
    ``info["environment_episode"]``.

    Args:
        venv: the environments. A `VecNormalize` goes around this wrapper, never inside it.
        model: the preference model, for `step_space` of these environments.
        segment: how many steps a judge is shown.
        training: whether segments are kept for a judge; False for evaluation.

    Example:
        >>> from stable_baselines3.common.env_util import make_vec_env
        >>> envs = make_vec_env("Pendulum-v1", n_envs=2, seed=0)
        >>> env = Preferred(envs, PreferenceModel(step_space(envs)), segment=25)
        >>> callback = env.learner(judge=ReturnTeacher(), comparisons=600)
    """

    def __init__(
        self, venv: VecEnv, model: PreferenceModel, segment: int = 25, training: bool = True
    ) -> None:
        require_plain_action(venv.action_space)
        base_of(venv)
        if model.parts != (found := parts_of(step_space(venv))):
            raise UserError(
                f"the preference model scores {', '.join(model.parts)}, these environments show "
                f"{', '.join(found)}: make it for irrl.adapters.sb3_preferences.step_space(env)"
            )
        if not isinstance(segment, int) or segment < SHORTEST:
            raise UserError(f"segment must be {SHORTEST} steps or more, got {segment!r}")
        super().__init__(venv)
        self.model, self.segment, self.training = model, segment, training
        self.segments: list[Segment] = []  # newest last
        self._running: list[tuple[Parts, np.ndarray]] = []  # steps of all environments
        self._lengths = np.zeros(venv.num_envs, np.int64)  # of their running segments
        self._observed: Any = None
        self._actions = np.zeros(0)
        self._earned, self._taken = np.zeros(venv.num_envs), np.zeros(venv.num_envs, np.int64)

    def learner(self, judge: Judge, comparisons: int, **options: Any) -> "Asker":
        """The callback that asks and learns; see `Asker`. Give it to ``agent.learn``."""
        return Asker(self, judge, comparisons, **options)

    def reset(self) -> Any:
        """Begin episodes in all environments."""
        self._observed = self.venv.reset()
        self._earned[:] = self._taken[:] = self._lengths[:] = 0
        return self._observed

    def step_async(self, actions: np.ndarray) -> None:
        """Act."""
        self._actions = np.array(actions)
        self.venv.step_async(actions)

    def step_wait(self) -> Any:
        """Pay for what was done where it was done."""
        model = self.model
        seen = {OBSERVATION: self._observed, ACTION: self._actions}
        steps = to_parts(model.parts, seen, (self.num_envs,))
        observations, own, dones, infos = self.venv.step_wait()
        rewards = np.zeros(self.num_envs, np.float32)
        if model.references is not None:
            rewards = model.rewards(seen).astype(np.float32)
        if self.training:
            self._keep(steps, own, dones)
        self._earned += rewards
        self._taken += 1
        for n in np.flatnonzero(dones):
            if "episode" in infos[n]:
                infos[n]["environment_episode"] = infos[n]["episode"]
            infos[n]["episode"] = {"r": self._earned[n], "l": int(self._taken[n]), "t": 0.0}
            self._earned[n] = self._taken[n] = 0
        self._observed = observations
        return observations, rewards, dones, infos

    def _keep(self, steps: Parts, own: np.ndarray, dones: np.ndarray) -> None:
        """Cut segments off where an episode ends, and where they are as long as is wanted."""
        self._running = [*self._running[1 - self.segment :], (steps, own)]
        self._lengths += 1
        for n in np.flatnonzero(dones | (self._lengths == self.segment)).tolist():
            if self._lengths[n] >= SHORTEST:
                self.segments.append(_cut(self._running[-self._lengths[n] :], n))
            self._lengths[n] = 0
        del self.segments[:-KEPT]


def _cut(running: list[tuple[Parts, np.ndarray]], n: int) -> Segment:
    """What one environment did."""
    names = running[0][0]
    return Segment(
        {name: np.stack([steps[name][n] for steps, _ in running]) for name in names},
        np.array([own[n] for _, own in running]),
    )


class Asker(BaseCallback):
    """Shows pairs of segments to a judge after policy updates, and lets the model learn.

    Of all comparisons, the square root of the share of training that is done is asked for by then:
    half of them in the first quarter, when the model knows least. Pairs are drawn among the newest
    segments, those of the last rollout and of some before.

    Args:
        env: the environments, in `Preferred`.
        judge: says which of two segments is better: 1 the first, 0 the second, 0.5 neither.
        comparisons: how many it may be asked for in all.
        newest: segments that pairs are drawn from.
        health_every: updates between two looks at the health of the model.
    """

    def __init__(
        self,
        env: Preferred,
        judge: Judge,
        comparisons: int,
        newest: int = 500,
        health_every: int = 10,
    ) -> None:
        super().__init__()
        if not isinstance(comparisons, int) or comparisons < 1:
            raise UserError(f"comparisons must be a whole number, at least 1, got {comparisons!r}")
        self.env, self.judge, self.comparisons = env, judge, comparisons
        self.newest, self.health_every = newest, health_every

    def _on_training_start(self) -> None:
        if isinstance(self.model, OffPolicyAlgorithm):
            raise UserError(
                f"rewards in the buffer of {type(self.model).__name__} go stale while the model "
                "learns, and are not relabelled for preferences: take an agent without one, such "
                "as PPO"
            )

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        if self.num_timesteps:
            self.ask()

    def ask(self) -> None:
        """Ask for the comparisons that are due, and learn from them."""
        model, segments = self.env.model, self.env.segments[-self.newest :]
        done = min(1.0, self.num_timesteps / self.model._total_timesteps)
        due = round(self.comparisons * done**0.5) - model.comparisons
        if due <= 0 or len(segments) < 2:
            return
        random = np.random.default_rng([model.settings.seed, 4, model.comparisons])
        for _ in range(due):
            first, second = (segments[i] for i in random.choice(len(segments), 2, replace=False))
            if not are_same(first.steps, second.steps):
                model.add(first.steps, second.steps, self.judge(first, second))
        found = model.learn()
        if model.updates % self.health_every == 0:
            found |= model.health()
        for name, value in found.items():
            self.logger.record(f"preference_model/{name}", value)
