"""Many mazes at once, in a compiled loop."""

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from irrl.envs.maze import HORIZON, STEP, require_render_mode
from irrl.envs.maze_agents import Agents
from irrl.errors import UserError


class MazeVector(VectorEnv):
    """As many agents as wanted, each in a maze of its own, stepped by a compiled loop.

    `gymnasium.make_vec("irrl/Maze-v0", num_envs=1024)` makes it. Everything is as in
    `irrl.envs.maze.Maze`, whose arguments it takes.

    ## Episode End
    Truncated after `horizon` steps, and begun anew in the same step: the last observation is in
    ``info["final_obs"]``, as Gymnasium's own vector environments have it. Episodes can be begun in
    some environments with ``reset(options={"reset_mask": ...})``.

    Example:
        >>> env = MazeVector(num_envs=1000, map="bottleneck")
        >>> observations, info = env.reset(seed=0)
        >>> observations.shape
        (1000, 2)
    """

    metadata = {  # noqa: RUF012
        "render_modes": ["rgb_array"],
        "render_fps": 20,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        map: str = "bottleneck",
        horizon: int = HORIZON,
        step: float = STEP,
        random_start: bool = False,
        show_time: bool = False,
        repeat: int = 1,
        render_mode: str | None = None,
    ) -> None:
        require_render_mode(render_mode)
        whole = isinstance(num_envs, int | np.integer) and not isinstance(num_envs, bool)
        if not whole or num_envs < 1:
            raise UserError(f"num_envs must be a whole number, at least 1, got {num_envs!r}")
        self.num_envs, self.render_mode = int(num_envs), render_mode
        self.agents = Agents(self.num_envs, map, horizon, step, random_start, show_time, repeat)
        self.maze_map = self.agents.maze
        self.single_action_space = self.agents.action_space
        self.single_observation_space = self.agents.observation_space
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Back to the start, in all environments or in those of ``options["reset_mask"]``."""
        super().reset(seed=seed)
        which = np.ones(self.num_envs, bool)
        if options is not None and "reset_mask" in options:
            which = np.asarray(options["reset_mask"])
            if which.shape != (self.num_envs,) or which.dtype != bool:
                raise UserError(
                    f"reset_mask must be {self.num_envs} booleans, got {which.dtype} of shape "
                    f"{which.shape}"
                )
        self.agents.begin(which, self.np_random)
        return self.agents.observe(), {}

    def step(
        self, actions: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Go; where an episode is over, the next one has begun."""
        seen, over = self.agents.move(actions)
        told = self.agents.told()
        info: dict[str, Any] = {**told, **{f"_{name}": np.ones_like(over) for name in told}}
        if over.any():
            final = np.full(self.num_envs, None, object)
            for n in np.nonzero(over)[0]:
                final[n] = seen[n].copy()
            ended = {**told, **{f"_{name}": over.copy() for name in told}}
            info |= {"final_obs": final, "_final_obs": over.copy()}
            info |= {"final_info": ended, "_final_info": over.copy()}
            self.agents.begin(over, self.np_random)
            seen = self.agents.observe()
        return seen, np.zeros(self.num_envs), np.zeros(self.num_envs, bool), over, info

    def render(self) -> tuple[np.ndarray, ...] | None:
        """A picture of each, 24 pixels to a square."""
        if self.render_mode is None:
            return None
        return tuple(self.agents.picture(n) for n in range(self.num_envs))
