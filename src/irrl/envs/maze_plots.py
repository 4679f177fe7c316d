"""Pictures of mazes and of the paths in them."""

from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike

from irrl.envs.maze_map import SIDE, MazeMap
from irrl.errors import UserError


def plot_paths(
    maze: MazeMap,
    paths: Sequence[ArrayLike],
    codes: Sequence[int] | None = None,
    title: str | None = None,
) -> Figure:
    """All skills' paths in their maze, coloured by skill, with a dot where each ends.

    Args:
        maze: as `irrl.envs.maze_map.read_maze` reads it.
        paths: shape ``(time, 2 or more)`` each, as agents observe them.
        codes: the skill of each path; if not given, each is a skill of its own.
        title: above the picture.

    Returns:
        The figure.

    Example:
        >>> from irrl.envs.maze_map import read_maze
        >>> path = [[-0.9, -0.9], [-0.9, 0.5]]
        >>> figure = plot_paths(read_maze("u-maze"), [path], title="one skill")
        >>> figure.axes[0].get_title()
        'one skill'
    """
    figure = Figure(figsize=(4.0, 4.0 * maze.height / maze.width), layout="constrained")
    axes = figure.subplots()
    plot_paths_on(axes, maze, paths, codes)
    if title:
        axes.set_title(title, fontsize=9)
    return figure


def plot_paths_on(
    axes: Axes, maze: MazeMap, paths: Sequence[ArrayLike], codes: Sequence[int] | None = None
) -> None:
    """As `plot_paths`, on axes of a larger picture."""
    skills = list(range(len(paths)) if codes is None else codes)
    if len(skills) != len(paths):
        raise UserError(f"{len(paths)} paths need as many codes, got {len(skills)}")
    names = sorted(set(skills))
    wheel = matplotlib.colormaps["turbo"](np.linspace(0.03, 0.97, max(len(names), 1)))
    colours = [wheel[names.index(skill)] for skill in skills]
    places = [maze.places(np.asarray(path)) for path in paths]
    axes.add_collection(LineCollection(places, colors=colours, linewidths=0.8, alpha=0.7))
    if places:
        ends = np.stack([path[-1] for path in places])
        shades = np.stack(colours)
        axes.scatter(
            ends[:, 0], ends[:, 1], c=shades, s=14, edgecolors="black", linewidths=0.4, zorder=3
        )
    for square in np.flatnonzero(maze.solid):
        row, column = divmod(int(square), maze.columns)
        corner = (column * SIDE, row * SIDE)
        axes.add_patch(Rectangle(corner, SIDE, SIDE, facecolor="0.8", edgecolor="0.8"))
    axes.add_collection(LineCollection(list(maze.walls), colors="black", linewidths=1.6, zorder=4))
    axes.plot(*maze.start_at(), "*", color="black", markersize=7, markeredgewidth=0.0, zorder=5)
    margin = 0.01 * max(maze.width, maze.height)
    axes.set_xlim(-margin, maze.width + margin)
    axes.set_ylim(-margin, maze.height + margin)
    axes.set_aspect("equal")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
