"""The rooms as a Gymnasium environment, for agents other than the tabular one."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from irrl.tasks.skills.map import ACTIONS, map_text, read_map

_WALL, _FREE, _START, _AGENT = (60, 60, 60), (240, 240, 240), (255, 214, 90), (0, 114, 178)


class FourRooms(gym.Env[Any, Any]):
    """Walk in rooms; the last cell of an episode stands for its trajectory.

    ## Action Space
    `Discrete(5)`: noop, up, down, left, right. A blocked move stays where it is.

    ## Observation Space
    `Discrete(cells)`: the number of the agent's cell, counted row by row from the top left.

    ## Rewards
    Always 0. The reward is internal: give the last transition
    `irrl.reward(name)(log_probs, code)`, with the log-probabilities of your discriminator for the
    final cell.

    ## Starting State
    The cell marked `S` on the map, else the first free cell.

    ## Episode End
    Terminated after `horizon` steps: the end is part of the task, so do not bootstrap from it.

    ## Arguments
    `map`: `large` (104 cells), `small` (24 cells), the path of a text file, or the text itself.
    `horizon`: steps in an episode, 20 if not given.

    Example:
        >>> env = FourRooms(map="small", horizon=8)
        >>> cell, info = env.reset(seed=0)
        >>> env.observation_space, env.action_space
        (Discrete(24), Discrete(5))
    """

    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 8}  # noqa: RUF012

    def __init__(
        self, map: str = "large", horizon: int = 20, render_mode: str | None = None
    ) -> None:
        if horizon < 1:
            raise ValueError(f"horizon must be at least 1, got {horizon}")
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"render_mode must be ansi or rgb_array, got {render_mode!r}")
        self.room_map = read_map(map_text(map))
        self.horizon = horizon
        self.render_mode = render_mode
        self.action_space = spaces.Discrete(len(ACTIONS))
        self.observation_space = spaces.Discrete(len(self.room_map.cells))
        self._cell = self.room_map.start
        self._steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Back to the start."""
        super().reset(seed=seed)
        self._cell = self.room_map.start
        self._steps = 0
        return self._cell, self._info()

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Go to the next cell, if it is free."""
        if not self.action_space.contains(action):
            raise ValueError(f"action must be one of 0..{len(ACTIONS) - 1}, got {action!r}")
        self._cell = int(self.room_map.next_cell[self._cell * len(ACTIONS) + int(action)])
        self._steps += 1
        return self._cell, 0.0, self._steps >= self.horizon, False, self._info()

    def render(self) -> Any:
        """The rooms as text or as a small picture, and where the agent is."""
        row, column = self.room_map.cells[self._cell]
        if self.render_mode == "ansi":
            lines = [list(line) for line in self.room_map.rows]
            lines[row][column] = "@"
            return "\n".join("".join(line) for line in lines)
        if self.render_mode == "rgb_array":
            marks = np.array([list(line) for line in self.room_map.rows])
            image = np.where((marks == "#")[..., None], _WALL, _FREE).astype(np.uint8)
            image[self.room_map.cells[self.room_map.start]] = _START
            image[row, column] = _AGENT
            return image.repeat(16, axis=0).repeat(16, axis=1)
        return None

    def _info(self) -> dict[str, Any]:
        row, column = self.room_map.cells[self._cell]
        return {"row": row, "column": column}
