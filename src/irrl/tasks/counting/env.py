"""The table as a Gymnasium environment, for agents other than the one of this package."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from irrl.tasks.counting.render import Renderer, check_resolution, shrink
from irrl.tasks.counting.scene import GOALS, RESOLUTION, VIEWS, Scene, sample_scene

ROTATE_RIGHT, ROTATE_LEFT, STOP = range(3)
MOVES = 6

Observation = dict[str, Any]


class ObjectCounting(gym.Env[Any, Any]):
    """Walk around a table with cubes until you can tell how many of one kind lie on it.

    Larger cubes hide smaller ones, often one of those to count from where an episode begins.

    ## Action Space
    `Discrete(3)`: 0 rotate_right, 1 rotate_left, 2 stop. A rotation walks 30 degrees around the
    table, facing its middle.

    ## Observation Space
    `Dict`: `image`, bytes of shape (resolution, resolution, 3), what the agent sees; `goal`,
    `Discrete(4)`, what to count: small red, small blue, medium red or medium blue cubes.

    ## Rewards
    Always 0. The reward is internal: give `irrl.reward(name)(log_probs, label)` on the last
    transition, with the log-probabilities that your discriminator gives the 7 counts after all
    observations of the episode.

    ## Starting State
    A new scene in front of the first of 12 viewpoints: at least one large cube, up to 6 others,
    0 to 6 of them to count.

    ## Episode End
    Terminated by stop, or after 6 rotations, on the opposite side at the farthest. The end is
    part of the task, so do not bootstrap from it.

    ## Information
    `view`, 0 to 11, and `moves` so far. In the last step, and only there, `label` and `count`:
    how many cubes there were to count, 0 to 6. Observations never tell.

    ## Arguments
    `resolution`: side of the image, 256 if not given; it must divide 256. Smaller images are
    averaged down.

    Example:
        >>> env = ObjectCounting(resolution=64)
        >>> observation, info = env.reset(seed=0)
        >>> observation["image"].shape, info
        ((64, 64, 3), {'view': 0, 'moves': 0})
        >>> *_, terminated, truncated, info = env.step(2)  # stop
        >>> terminated, 0 <= info["label"] <= 6
        (True, True)
        >>> env.close()
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 2}  # noqa: RUF012

    def __init__(self, resolution: int = RESOLUTION, render_mode: str | None = None) -> None:
        check_resolution(resolution)
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"render_mode must be rgb_array, got {render_mode!r}")
        self.resolution = resolution
        self.render_mode = render_mode
        self.action_space = spaces.Discrete(3)
        image = spaces.Box(0, 255, (resolution, resolution, 3), np.uint8)
        self.observation_space = spaces.Dict({"image": image, "goal": spaces.Discrete(len(GOALS))})
        self._renderer = Renderer()
        self._scene: Scene | None = None
        self._view = self._moves = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """A new scene, from the first viewpoint."""
        super().reset(seed=seed)
        self._scene = sample_scene(self.np_random, self._renderer.visible)
        self._renderer.place(self._scene)
        self._view = self._moves = 0
        return self._observation(), self._info()

    def step(self, action: int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Walk, or stop."""
        if self._scene is None:
            raise gym.error.ResetNeeded("call reset before step")
        if not self.action_space.contains(action):
            raise ValueError(f"action must be one of 0..2, got {action!r}")
        if action != STOP:
            self._view = (self._view + (1 if action == ROTATE_RIGHT else -1)) % VIEWS
            self._moves += 1
        ended = action == STOP or self._moves >= MOVES
        info = self._info()
        if ended:
            info["label"] = info["count"] = self._scene.label
        return self._observation(), 0.0, bool(ended), False, info

    def render(self) -> Any:
        """What the agent sees, at full size."""
        return self._renderer.render(self._view) if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        """Let the renderer go."""
        self._renderer.close()

    def _observation(self) -> Observation:
        assert self._scene is not None
        picture = self._renderer.render(self._view)
        return {"image": shrink(picture, self.resolution), "goal": self._scene.goal}

    def _info(self) -> dict[str, Any]:
        return {"view": self._view, "moves": self._moves}
