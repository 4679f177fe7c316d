"""What an agent did is known to it: the last action as a part of what vector environments show."""

from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space

from irrl.envs.skills import OBSERVATION
from irrl.errors import UserError

LAST_ACTION = "last_action"


class LastAction(VectorWrapper):
    """Shows the last action beside each observation, zero where an episode begins.

    Where an agent moves and its label is where it stands, a discriminator needs it to carry over
    what it knew. It must not be shown where actions would give the label away, as those of skills.

    Args:
        env: vector environments whose actions are vectors, and which reset with the next step or
            when they are told to.

    Example:
        >>> import gymnasium, irrl.envs
        >>> env = LastAction(gymnasium.make_vec("irrl/PointMass-v0", num_envs=2))
        >>> observations, info = env.reset(seed=0)
        >>> {name: array.shape for name, array in observations.items()}
        {'observation': (2, 5), 'last_action': (2, 2)}
    """

    def __init__(self, env: VectorEnv) -> None:
        super().__init__(env)
        action, shown = env.single_action_space, env.single_observation_space
        if not isinstance(action, spaces.Box):
            raise UserError(f"only actions that are vectors can be shown, not {action}")
        if env.metadata.get("autoreset_mode") == AutoresetMode.SAME_STEP:
            raise UserError(
                "the last action cannot be shown where environments reset in the same step"
            )
        self.named = isinstance(shown, spaces.Dict)
        parts = dict(shown.spaces) if isinstance(shown, spaces.Dict) else {OBSERVATION: shown}
        if LAST_ACTION in parts:
            raise UserError(f"these environments show {LAST_ACTION!r} already")
        low, high = action.low, action.high
        parts[LAST_ACTION] = spaces.Box(np.minimum(low, 0), np.maximum(high, 0), dtype=np.float32)
        self.single_observation_space = spaces.Dict(parts)
        self.observation_space = batch_space(self.single_observation_space, env.num_envs)
        self._taken = np.zeros((env.num_envs, *action.shape), np.float32)
        self._over = np.zeros(env.num_envs, bool)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin episodes, all or those of ``options["reset_mask"]``."""
        begun = np.array((options or {}).get("reset_mask", np.ones(self.num_envs)), bool)
        observations, info = self.env.reset(seed=seed, options=options)
        self._taken[begun], self._over[begun] = 0.0, False
        return self._shown(observations), info

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Act; where an episode was over, this is a reset."""
        observations, rewards, terminated, truncated, info = self.env.step(actions)
        self._taken = np.array(actions, np.float32)
        self._taken[self._over] = 0.0
        self._over = np.logical_or(terminated, truncated)
        return self._shown(observations), rewards, terminated, truncated, info

    def _shown(self, observations: Any) -> dict[str, Any]:
        parts = dict(observations) if self.named else {OBSERVATION: observations}
        return {**parts, LAST_ACTION: self._taken.copy()}
