"""How much of a maze is reached."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from irrl.envs.maze_map import MazeMap
from irrl.errors import UserError

BUCKETS = 10
"""To an axis: a hundred in a maze, as in UPSIDE's Table 2."""


def reached(paths: Sequence[ArrayLike], buckets: int = BUCKETS) -> NDArray[np.bool_]:
    """Which buckets of a maze some paths touch, with all their places, the first ones too.

    Args:
        paths: one for each skill, shape ``(time, 2 or more)`` each, as agents observe them: the
            first two numbers are places in [-1, 1].
        buckets: to an axis.

    Returns:
        A mask of shape ``(buckets, buckets)``, ``[row, column]`` from the bottom left.

    Example:
        >>> reached([[(-1.0, -1.0), (0.5, -1.0)]], buckets=2).tolist()
        [[True, True], [False, False]]
    """
    mask = np.zeros((buckets, buckets), bool)
    for number, path in enumerate(paths):
        places = np.asarray(path, np.float64)
        if places.ndim != 2 or places.shape[1] < 2:
            raise UserError(f"path {number} must have shape (time, 2), got {places.shape}")
        places = places[:, :2]
        if not (np.abs(places) <= 1.0).all():  # neither is NaN
            raise UserError(f"path {number} leaves [-1, 1]: give places as they are observed")
        across, up = np.minimum((places + 1.0) / 2.0 * buckets, buckets - 1).astype(int).T
        mask[up, across] = True
    return mask


def coverage(paths: Sequence[ArrayLike], buckets: int = BUCKETS) -> int:
    """How many buckets of a maze some paths touch; of a hundred, if not said otherwise.

    For the metric of skill discovery: one path of the deterministic policy of each skill.

    Args:
        paths: as `reached` takes them.
        buckets: to an axis.

    Returns:
        The number of buckets.

    Example:
        >>> coverage([[(-1.0, -1.0), (-0.9, -1.0)], [(0.95, 1.0)]])
        2
    """
    return int(reached(paths, buckets).sum())


def largest_coverage(maze: MazeMap, buckets: int = BUCKETS) -> int:
    """How many buckets there are to be reached: those that are not solid throughout.

    Args:
        maze: its map.
        buckets: to an axis.

    Returns:
        The number of buckets.

    Example:
        >>> from irrl.envs.maze_map import read_maze
        >>> largest_coverage(read_maze("bottleneck")), largest_coverage(read_maze("u-maze"))
        (100, 72)
    """
    mask = np.zeros((buckets, buckets), bool)
    scale = buckets / np.array([maze.width, maze.width, maze.height, maze.height])
    for left, right, bottom, top in maze.boxes[~maze.solid] * scale:
        mask[int(bottom) : math.ceil(top), int(left) : math.ceil(right)] = True
    return int(mask.sum())
