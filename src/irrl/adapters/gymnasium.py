"""Gymnasium vector environments that pay what a reward model finds: for a loop of one's own.

    env = Rewarded(gymnasium.make_vec(...), irrl.RewardModel(space, labels=10))
    observations, rewards, terminated, truncated, info = env.step(actions)
    ...                 # the policy learns
    env.learn()         # then the discriminator

The wrapper pays and remembers; when each of the two learns is the loop's to say.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper

from irrl.adapters.common import (
    See,
    default_see,
    find_predict,
    labels_of_info,
    last_of_info,
    with_rows,
)
from irrl.errors import UserError
from irrl.reward_model import Collector, RewardModel
from irrl.reward_model.labels import choose_rows

__all__ = ["Rewarded"]

RESET_STEP = "reset_step"


class Rewarded(VectorWrapper):
    """Environments that pay what a reward model finds, in place of rewards of their own.

    Where episodes are paid at the end, an end is a termination: a time limit is no reason to expect
    more. Environments that reset with the next step take a step that belongs to no episode: it is
    paid nothing, and marked in ``info["reset_step"]`` for a learner to leave out. Statistics of
    episodes, such as Gymnasium's `RecordEpisodeStatistics`, go around this wrapper.

    Args:
        env: the environments, of any autoreset mode.
        model: the reward model.
        label: where ``info`` has the label; a path such as ``"prediction.target"``.
        see: what of observations is judged, as a function of them, with a leading axis for the
            environments; for those of `irrl.envs.Skills` all but the code, else all.
        training: whether the reward model is to learn from these episodes; False for evaluation.

    Example:
        >>> import gymnasium, irrl
        >>> skills = irrl.envs.SkillsVector(gymnasium.make_vec("irrl/Maze-v0", num_envs=4), codes=2)
        >>> space = skills.single_observation_space["observation"]
        >>> env = Rewarded(skills, irrl.RewardModel(space, labels=2, mode="skills"))
        >>> observations, info = env.reset(seed=0)
        >>> observations, rewards, *_ = env.step(np.zeros((4, 2)))
        >>> rewards.tolist()  # paid at the end of an episode
        [0.0, 0.0, 0.0, 0.0]
    """

    def __init__(
        self,
        env: VectorEnv,
        model: RewardModel,
        label: str = "label",
        see: See | None = None,
        training: bool = True,
    ) -> None:
        super().__init__(env)
        self.model, self.label = model, label
        self.see = see or default_see(env.single_observation_space, model)
        self.predict: Callable[[np.ndarray], None] | None = find_predict(env)
        self.collector = Collector(model, env.num_envs, self.predict is not None, training)
        self.mode = AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
        self._over = np.zeros(env.num_envs, bool)  # an episode has ended, and none began

    def learn(self) -> dict[str, float]:
        """The discriminator learns from new and stored episodes; says how it went."""
        return self.model.learn()

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin episodes: in all environments, or in those of ``options["reset_mask"]``."""
        begun = np.ones(self.num_envs, bool)
        if options is not None and "reset_mask" in options:
            begun = np.array(options["reset_mask"], bool)
            options = dict(options)  # from which Gymnasium takes the mask away
        observations, info = self.env.reset(seed=seed, options=options)
        self._begin(observations, info, begun)
        return observations, info

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Act, and pay for what the actions led to."""
        if self.mode != AutoresetMode.NEXT_STEP and self._over.any():
            raise UserError(
                f"the episode of environment {self._over.argmax()} is over: reset it, with "
                'options={"reset_mask": ...} where others go on'
            )
        if self.predict is not None:
            self.predict(self.collector.predictions)
        observations, own, terminated, truncated, info = self.env.step(actions)
        ended = np.logical_or(terminated, truncated)
        if self.mode == AutoresetMode.SAME_STEP:
            rewards = self._pay_before_reset(observations, ended, info)
        else:
            rewards = self._pay(observations, ended, info)
        if self.collector.pay == "environment":
            rewards = np.array(own, np.float32)
        if self.model.settings.ends_are_final:
            terminated, truncated = ended, np.zeros_like(ended)
        return observations, rewards, terminated, truncated, info

    def _told(self, info: dict[str, Any]) -> np.ndarray:
        return labels_of_info(info, self.label, self.num_envs, self.model.kind)

    def _pay(self, observations: Any, ended: np.ndarray, info: dict[str, Any]) -> np.ndarray:
        """Where an episode was over, this step was a reset."""
        resets = self._over.copy()
        rewards = np.zeros(self.num_envs, np.float32)
        if not resets.all():
            told = self._told(info)
            rewards = self.collector.step(self.see(observations), ended, told, ~resets)
        self._begin(observations, info, resets)
        self._over |= ended
        info[RESET_STEP] = resets
        return rewards

    def _pay_before_reset(self, observations: Any, ended: np.ndarray, info: dict) -> np.ndarray:
        """Where an episode ended, the observation is already the first one of the next."""
        last, told = observations, self._told(info)
        if ended.any():
            (which,) = np.nonzero(ended)
            last = with_rows(observations, which, last_of_info(info, which))
            final = self._told(info.get("final_info", {}))
            told = choose_rows(ended, final, told)
        rewards = self.collector.step(self.see(last), ended, told)
        self._begin(observations, info, ended)
        info[RESET_STEP] = np.zeros(self.num_envs, bool)
        return rewards

    def _begin(self, observations: Any, info: dict[str, Any], which: np.ndarray) -> None:
        if which.any():
            told = self._told(info)
            self.collector.begin(self.see(observations), told, which)
            self._over[which] = False
