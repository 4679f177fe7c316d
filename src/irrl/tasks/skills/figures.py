"""Where skills end, as maps."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from irrl.errors import UserError
from irrl.runs.checkpoint import checkpoint_paths, load_checkpoint
from irrl.runs.reading import is_number
from irrl.runs.run import CHECKPOINTS, Run
from irrl.tasks.skills.map import read_map

WIDTH, ROW_HEIGHT = 3.96, 1.15  # in inches

Stages = list[tuple[int, np.ndarray]]
"""Steps, and the share of episodes that end in each cell, laid out on the grid."""


def occupancy_figure(runs: Sequence[Run], seed: int = 0) -> Figure:
    """Where skills end at the start, half-way and at the end (fig:skill-discovery-state-occupancy).

    One run of each reward. The shares are exact, not counted in episodes that are sampled:
    ``seed`` changes nothing.
    """
    shown = {run.settings["reward"]: stages(run) for run in runs}
    if not any(shown.values()):
        raise UserError(f"{runs[0].folder} and its like have no checkpoint to plot")
    figure = Figure(figsize=(WIDTH, ROW_HEIGHT * len(shown) + 0.2), layout="constrained")
    plot_occupancies(figure, shown)
    return figure


def stages(run: Run) -> Stages:
    """Occupancy at the start, half-way and at the end; nothing if there is no checkpoint yet."""
    room_map = read_map(run.settings["map"])
    paths = checkpoint_paths(run.folder / CHECKPOINTS)
    chosen = dict.fromkeys(paths[i] for i in (0, len(paths) // 2, -1)) if paths else {}
    cells = len(room_map.cells)
    return [(int(path.name), room_map.to_grid(_occupancy(path, cells))) for path in chosen]


def _occupancy(path: Path, cells: int) -> np.ndarray:
    """The share of episodes that end in each cell, by a checkpoint."""
    shares = load_checkpoint(path).state.get("occupancy")
    if (
        not isinstance(shares, list)
        or len(shares) != cells
        or not all(is_number(share) and 0.0 <= share <= 1.001 for share in shares)
    ):
        raise UserError(f"damaged checkpoint: {path} has no share of episodes for each cell")
    return np.array(shares, dtype=float)


def plot_occupancies(figure: Figure, occupancies: Mapping[str, Stages]) -> None:
    """A row of maps for each label, early to late."""
    columns = max([1, *map(len, occupancies.values())])
    panels: Any = figure.subplots(len(occupancies), columns, squeeze=False)
    palette = matplotlib.colormaps["viridis"].with_extremes(bad="0.25")
    image = None
    for row, (label, shown) in zip(panels, occupancies.items(), strict=True):
        for panel in row:
            panel.set_axis_off()
        for panel, (step, grid) in zip(row, shown, strict=False):
            shares = np.where(np.isnan(grid), np.nan, np.clip(grid, 0.001, 0.1))
            image = panel.imshow(shares, cmap=palette, norm=LogNorm(0.001, 0.1))
            panel.set_title(f"{label}\n{_short(step)}", fontsize=6.5, pad=2)
    if image is not None:
        bar = figure.colorbar(image, ax=panels, shrink=0.6, pad=0.02)
        bar.set_label("share of episodes ending here", fontsize=7)
        bar.ax.tick_params(labelsize=7)


def _short(step: int) -> str:
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if step >= size:
            return f"after {step / size:g}{unit}"
    return "at the start" if step == 0 else f"after {step}"
