"""Where skills go: the greedy walk of every code through the rooms."""

from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib.animation import FuncAnimation
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from irrl.runs.run import Run
from irrl.tasks.contract import Played
from irrl.tasks.skills.kernels import greedy_moves
from irrl.tasks.skills.map import RoomMap, read_map
from irrl.tasks.skills.tables import bonus_weights, restored_tables

PANEL = (3.3, 3.6)  # in inches
SPREAD = 0.32  # of a cell: codes that share one stand beside each other
LAST_FRAMES = 8  # in which the end stays


def play(runs: Sequence[Run], episodes: int, seed: int) -> Played:
    """All codes of each run, acting greedily: ``episodes`` changes nothing.

    ``seed`` decides where in a cell a code is drawn.
    """
    walks = [greedy_walks(run) for run in runs]
    return Played(plot_sheet(runs, walks, seed), animate(runs, walks, seed), frames_per_second=6)


def greedy_walks(run: Run) -> np.ndarray:
    """Cells that each code of the last checkpoint walks through: (codes, horizon + 1)."""
    config, checkpoint = run.config, run.last_checkpoint()
    room_map = read_map(config.map)
    tables = restored_tables(config, room_map, checkpoint.arrays)
    greedy = greedy_moves(tables.q, bonus_weights(config))
    walks = np.empty((config.codes, config.horizon + 1), dtype=np.int64)
    walks[:, 0] = room_map.start
    for step in range(config.horizon):
        walks[:, step + 1] = room_map.next_cell[greedy[np.arange(config.codes), walks[:, step]]]
    return walks


def plot_sheet(runs: Sequence[Run], walks: Sequence[np.ndarray], seed: int) -> Figure:
    """A panel for each run: walls, walks coloured by code, ends as dots."""
    figure = Figure(figsize=(PANEL[0] * len(runs), PANEL[1]), layout="constrained")
    panels = figure.subplots(1, len(runs), squeeze=False)[0]
    for axes, run, of_run in zip(panels, runs, walks, strict=True):
        plot_walks(axes, run, of_run, seed)
    return figure


def plot_walks(
    axes: Axes, run: Run, walks: np.ndarray, seed: int, steps: int | None = None
) -> None:
    room_map = read_map(run.config.map)
    axes.imshow(walls(room_map), cmap="Greys", vmin=0, vmax=2)
    axes.set(xticks=[], yticks=[])
    shift = np.random.default_rng(seed).uniform(-SPREAD, SPREAD, (len(walks), 1, 2))
    cells = walks if steps is None else walks[:, : steps + 1]
    paths = np.array(room_map.cells)[cells][..., ::-1] + shift  # (codes, steps + 1, x and y)
    colours = matplotlib.colormaps["turbo"](np.linspace(0.03, 0.97, len(paths)))
    for path, colour in zip(paths, colours, strict=True):
        axes.plot(*path.T, color=colour, linewidth=0.5, alpha=0.35)
    x, y = paths[:, -1].T
    axes.scatter(x, y, c=colours, s=9, edgecolors="black", linewidths=0.3, zorder=3)
    ends = len(np.unique(walks[:, -1]))
    axes.set_title(
        f"{run.settings['reward']}, seed {run.settings['seed']}\n"
        f"{len(walks)} codes end in {ends} of {len(room_map.cells)} cells",
        fontsize=8,
    )


def walls(room_map: RoomMap) -> np.ndarray:
    """One where there is a wall."""
    return np.array([[mark == "#" for mark in row] for row in room_map.rows], dtype=float)


def animate(runs: Sequence[Run], walks: Sequence[np.ndarray], seed: int) -> FuncAnimation:
    """All codes at the same time."""
    figure = Figure(figsize=(PANEL[0] * len(runs), PANEL[1]), layout="constrained")
    FigureCanvasAgg(figure)  # an animation wants a canvas before it is saved
    panels = figure.subplots(1, len(runs), squeeze=False)[0]

    def plot_frame(frame: int) -> list:
        for axes, run, of_run in zip(panels, runs, walks, strict=True):
            axes.clear()
            plot_walks(axes, run, of_run, seed, frame)
        return []

    return FuncAnimation(figure, plot_frame, frames=max(w.shape[1] for w in walks) + LAST_FRAMES)
