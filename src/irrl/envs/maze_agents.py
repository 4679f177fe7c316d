"""Agents in a maze, one or many: where they are, how they move, what they observe."""

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from irrl.envs.maze_kernel import advance
from irrl.envs.maze_map import SIDE, MazeMap, read_maze
from irrl.errors import UserError

PIXELS = 24  # of a square
PATH = "maze_path"  # in infos
_WALL, _FREE, _START, _AGENT = (60, 60, 60), (240, 240, 240), (255, 214, 90), (0, 114, 178)


class Agents:
    """So many agents in copies of one maze, each at its own step of its own episode.

    Args:
        count: how many.
        map: as `irrl.envs.maze_map.read_maze` takes it.
        horizon: steps in an episode.
        step: how far an action of 1 goes.
        random_start: anywhere in the square of the start, or in its middle.
        show_time: whether the share of the episode that is over is observed, too.
        repeat: steps that each action is taken for.
    """

    def __init__(
        self,
        count: int,
        map: str,
        horizon: int,
        step: float,
        random_start: bool,
        show_time: bool,
        repeat: int,
    ) -> None:
        self.maze: MazeMap = read_maze(map)
        for name, value in (("horizon", horizon), ("repeat", repeat)):
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if not whole or value < 1:
                raise UserError(f"{name} must be a whole number, at least 1, got {value!r}")
        if horizon % repeat:
            raise UserError(f"repeat must divide the horizon, {horizon}, got {repeat}")
        longest = max(self.maze.width, self.maze.height)
        if isinstance(step, bool) or not isinstance(step, int | float) or not 0 < step <= longest:
            raise UserError(
                f"step must lie between 0 and the size of the maze, {longest:g}, got {step!r}"
            )
        self.count, self.horizon, self.step = count, int(horizon), float(step)
        self.repeat = int(repeat)
        self.path = np.zeros((count, self.repeat, 2), np.float32)  # of the last action
        self.random_start, self.show_time = random_start, show_time
        self.scale = 2.0 / np.array([self.maze.width, self.maze.height])
        self.places = np.tile(self.maze.start_at(), (count, 1))
        self.squares = np.full(count, self.maze.start, np.int64)
        self.steps = np.zeros(count, np.int64)
        self.action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
        low = [-1.0, -1.0, 0.0] if show_time else [-1.0, -1.0]
        self.observation_space = spaces.Box(np.array(low, np.float32), 1.0, dtype=np.float32)

    def begin(self, which: NDArray[np.bool_], chance: np.random.Generator) -> None:
        """Back to the start with those of a mask."""
        self.steps[which] = 0
        self.squares[which] = self.maze.start
        if self.random_start:
            left, right, bottom, top = self.maze.boxes[self.maze.start]
            count = int(which.sum())
            self.places[which] = chance.uniform((left, bottom), (right, top), (count, 2))
        else:
            self.places[which] = self.maze.start_at()

    def move(self, actions: Any) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Take an action with all: what they observe, and whose episode is over."""
        actions = np.ascontiguousarray(actions, np.float32)
        if actions.shape != self.places.shape:
            raise UserError(f"actions must have shape {self.places.shape}, got {actions.shape}")
        seen = np.empty((self.count, 2 + self.show_time), np.float32)
        self.path = np.empty((self.count, self.repeat, 2), np.float32)
        for step in range(self.repeat):
            lost = advance(
                self.places, self.squares, actions, self.step, self.maze.boxes,
                self.maze.neighbours, self.scale, seen,
            )  # fmt: skip
            if lost >= 0:
                raise UserError(f"action of agent {lost} is not a number: {actions[lost].tolist()}")
            self.path[:, step] = seen[:, :2]
        self.steps += self.repeat
        if self.show_time:
            seen[:, 2] = self.steps / self.horizon
        return seen, self.steps >= self.horizon

    def told(self) -> dict[str, NDArray[np.float32]]:
        """What infos say of the last action: places after each step, where it had several."""
        return {PATH: self.path} if self.repeat > 1 else {}

    def observe(self) -> NDArray[np.float32]:
        """What all observe now, shape ``(n, 2)``, or ``(n, 3)`` with the time."""
        seen = np.empty((self.count, 2 + self.show_time), np.float32)
        seen[:, :2] = self.places * self.scale - 1.0
        if self.show_time:
            seen[:, 2] = self.steps / self.horizon
        return seen

    def picture(self, number: int) -> NDArray[np.uint8]:
        """The maze with one agent, 24 pixels to a square."""
        picture = picture_of(self.maze)
        across, up = self.places[number] * PIXELS / SIDE
        rows, columns = np.ogrid[: len(picture), : picture.shape[1]]
        top = len(picture) - 3  # the line of the lower wall
        near = (columns - 1 - across) ** 2 + (top + 1 - rows - up) ** 2
        picture[near <= 16] = _AGENT
        return picture


def picture_of(maze: MazeMap) -> NDArray[np.uint8]:
    """A maze with nobody in it; walls are three pixels thick."""
    height, width = maze.rows * PIXELS, maze.columns * PIXELS
    picture = np.full((height + 3, width + 3, 3), _FREE, np.uint8)
    for square in [maze.start, *np.flatnonzero(maze.solid)]:
        row, column = divmod(int(square), maze.columns)
        bottom, left = height - row * PIXELS, column * PIXELS
        colour = _WALL if maze.solid[square] else _START
        picture[bottom - PIXELS : bottom + 3, left : left + PIXELS + 3] = colour
    for (x0, y0), (x1, y1) in np.rint(maze.walls * PIXELS / SIDE).astype(int):
        picture[height - y1 : height - y0 + 3, x0 : x1 + 3] = _WALL
    return picture
