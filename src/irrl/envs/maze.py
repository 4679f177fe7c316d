"""A continuous maze in two dimensions."""

from typing import Any

import gymnasium
import numpy as np

from irrl.envs.maze_agents import Agents
from irrl.errors import UserError

HORIZON, STEP = 200, 1.0
EVERYBODY = np.ones(1, bool)


class Maze(gymnasium.Env):
    """Go about in a continuous maze.

    Squares of side 5 with walls between them, as a text draws them; ten by ten squares are the
    50 x 50 of UPSIDE. Many at once: `irrl.envs.maze_vector.MazeVector`, which
    `gymnasium.make_vec` makes of the same id.

    ## Action Space
    `Box(-1, 1, (2,))`: how far to go, right and up, times `step`. A wall stops what goes across it
    and lets the rest slide along it. Walls reach a 128th of a square's side into the squares
    beside them, so that no place is on both sides of a wall.

    ## Observation Space
    `Box(-1, 1, (2,))`: the position, scaled by the size of the maze; with `show_time` a third
    number, the share of the episode that is over.

    ## Rewards
    Always 0. The reward is internal.

    ## Starting State
    The middle of the square marked `S`, of the one at the bottom left if none is; with
    `random_start` anywhere in it.

    ## Episode End
    Truncated after `horizon` steps.

    ## Arguments
    `map`: `bottleneck`, `u-maze`, the path of a text file, or the text itself.
    `horizon`: steps in an episode, 200 if not given.
    `step`: how far an action of 1 goes, 1 if not given.
    `random_start`, `show_time`: see above; both are off.
    `repeat`: steps that each action is taken for, 1 if not given; divides the horizon. If there
    are several, `info["maze_path"]` has the places after each, shape `(repeat, 2)`.

    Example:
        >>> env = Maze(map="u-maze", show_time=True)
        >>> before, info = env.reset(seed=0)
        >>> after, *_ = env.step(np.array([1.0, 0.0]))
        >>> bool(after[0] > before[0]), float(after[2])
        (True, 0.004999999888241291)
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012

    def __init__(
        self,
        map: str = "bottleneck",
        horizon: int = HORIZON,
        step: float = STEP,
        random_start: bool = False,
        show_time: bool = False,
        repeat: int = 1,
        render_mode: str | None = None,
    ) -> None:
        require_render_mode(render_mode)
        self.agents = Agents(1, map, horizon, step, random_start, show_time, repeat)
        self.maze_map, self.render_mode = self.agents.maze, render_mode
        self.action_space = self.agents.action_space
        self.observation_space = self.agents.observation_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Back to the start."""
        super().reset(seed=seed)
        self.agents.begin(EVERYBODY, self.np_random)
        return self.agents.observe()[0], {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Go."""
        seen, over = self.agents.move(np.asarray(action)[None])
        info = {name: array[0] for name, array in self.agents.told().items()}
        return seen[0], 0.0, False, bool(over[0]), info

    def render(self) -> Any:
        """A picture of the maze and the agent, 24 pixels to a square."""
        return None if self.render_mode is None else self.agents.picture(0)


def require_render_mode(mode: str | None) -> None:
    """Raise for a mode that mazes do not have."""
    if mode not in (None, "rgb_array"):
        raise UserError(f"render_mode must be rgb_array, got {mode!r}")
