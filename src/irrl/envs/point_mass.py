"""A point mass in the plane: the smallest environment in which skills can be told apart."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from irrl.errors import UserError

FRICTION, FORCE = 0.8, 0.05


class PointMass(gymnasium.Env):
    """Push a point mass about in a square.

    ## Action Space
    `Box(-1, 1, (2,))`: the force.

    ## Observation Space
    `Box(-1, 1, (5,))`: position, velocity, and the share of the episode that is over.

    ## Rewards
    Always 0. The reward is internal.

    ## Starting State
    At rest in the middle.

    ## Episode End
    Truncated after `horizon` steps.

    ## Arguments
    `horizon`: steps in an episode, 25 if not given.

    Example:
        >>> env = PointMass(horizon=2)
        >>> observation, info = env.reset(seed=0)
        >>> observation, reward, terminated, truncated, info = env.step(np.array([1.0, 0.0]))
        >>> observation.round(2).tolist(), reward, truncated
        ([0.05000000074505806, 0.0, 0.05000000074505806, 0.0, 0.5], 0.0, False)
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 8}  # noqa: RUF012

    def __init__(self, horizon: int = 25, render_mode: str | None = None) -> None:
        if horizon < 1:
            raise UserError(f"horizon must be at least 1, got {horizon}")
        self.horizon, self.render_mode = horizon, render_mode
        self.action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.observation_space = spaces.Box(-1.0, 1.0, (5,), np.float32)
        self._position, self._velocity, self._steps = np.zeros(2), np.zeros(2), 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Back to the middle."""
        super().reset(seed=seed)
        self._position, self._velocity, self._steps = np.zeros(2), np.zeros(2), 0
        return self._observe(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Push."""
        self._velocity = FRICTION * self._velocity + FORCE * np.clip(action, -1.0, 1.0)
        self._position = np.clip(self._position + self._velocity, -1.0, 1.0)
        self._steps += 1
        return self._observe(), 0.0, False, self._steps >= self.horizon, {}

    def render(self) -> Any:
        """A picture of 64 x 64 pixels."""
        if self.render_mode != "rgb_array":
            return None
        picture = np.full((64, 64, 3), 240, np.uint8)
        column, row = np.rint(31.5 + 30 * self._position * [1, -1]).astype(int)
        picture[max(row - 2, 0) : row + 3, max(column - 2, 0) : column + 3] = (0, 114, 178)
        return picture

    def _observe(self) -> np.ndarray:
        share = self._steps / self.horizon
        return np.array([*self._position, *self._velocity, share], np.float32)
