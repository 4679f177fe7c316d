"""The comparison of rewards as one picture: learning curves and where the skills end."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from irrl.runs.checkpoint import checkpoint_paths, load_checkpoint
from irrl.errors import UserError
from irrl.analysis.plots import COLUMN, colour_of, draw_curves, plt
from irrl.analysis.compare import group_by_reward, learning_curves
from irrl.runs.run import CHECKPOINTS, Run
from irrl.tasks.skills.map import RoomMap, read_map

METRICS = ("n_skills", "n_skills_greedy", "cells_reached", "seconds")
"""What a comparison of skill runs reports."""

PANELS = {"n_skills": "skills learned (Eq. 9)", "cells_reached": "cells reached"}
"""What is drawn over iterations; the figure of merit first."""


def check_alike(runs: Sequence[Run]) -> None:
    """Raise unless runs walked in the same rooms with as many codes."""
    if len({(run.settings["map"], run.settings["codes"]) for run in runs}) > 1:
        raise UserError("runs on different maps or with different numbers of codes do not compare")


def comparison_figure(runs: Sequence[Run]) -> Figure:
    """Learning curves over seeds, and the occupancy of final cells of the first seed."""
    groups = group_by_reward(runs)
    check_alike(runs)
    room_map, codes = read_map(runs[0].settings["map"]), runs[0].settings["codes"]
    return skills_comparison(
        {name: learning_curves(group, "n_skills") for name, group in groups.items()},
        {name: _stages(group[0], room_map) for name, group in groups.items()},
        ceiling(room_map, codes, max(run.settings["horizon"] for run in runs)),
    )


def _stages(run: Run, room_map: RoomMap) -> list[tuple[int, np.ndarray]]:
    """Occupancy at the start, half-way and at the end."""
    paths = checkpoint_paths(run.folder / CHECKPOINTS)
    chosen = dict.fromkeys(paths[i] for i in (0, len(paths) // 2, -1)) if paths else {}
    checkpoints = [load_checkpoint(path) for path in chosen]
    return [(c.step, room_map.paint(np.array(c.state["occupancy"]))) for c in checkpoints]


def ceiling(room_map: RoomMap, codes: int, horizon: int) -> float:
    """The most skills that deterministic walks can show.

    Codes are spread evenly over the cells. One that stays at the start, whose posterior is held
    uniform, adds no information; on the tiniest of maps some are better left there.
    """
    cells = int(np.count_nonzero(room_map.distances <= horizon)) - 1
    return max((_skills_when(away, cells, codes) for away in range(codes + 1)), default=1.0)


def _skills_when(away: int, cells: int, codes: int) -> float:
    if away == 0 or cells == 0:
        return 1.0
    size, crowded = divmod(away, cells)
    sizes = [size] * (cells - crowded) + [size + 1] * crowded
    return float(2.0 ** (sum(n * np.log2(codes / n) for n in sizes if n > 0) / codes))


def skills_comparison(
    curves: dict[str, tuple[np.ndarray, np.ndarray]],
    occupancies: dict[str, list[tuple[int, np.ndarray]]],
    ceiling: float | None = None,
) -> Figure:
    """Learning curves of each reward, and where its policy ends, early to late.

    Args:
        curves: reward -> (steps, n_skills of shape (seeds, steps)).
        occupancies: reward -> [(step, share of final cells laid out on the grid), ...].
        ceiling: the best n_skills there is, drawn as a line.
    """
    rows = len(occupancies)
    columns = max(1, *(len(stages) for stages in occupancies.values()))
    figure = plt.figure(figsize=(6.4 + 1.5 * columns, max(4.2, 1.55 * rows)), layout="constrained")
    halves: Any = figure.subfigures(1, 2, width_ratios=[6.0, 1.5 * columns + 0.5])
    left, right = halves
    axes = left.subplots()
    draw_curves(axes, curves)
    if ceiling is not None:
        axes.axhline(ceiling, color="0.5", lw=0.8, ls="--")
        axes.annotate(f"ceiling {ceiling:.1f}", (0.0, ceiling), xytext=(2, 3), fontsize=8,
                      textcoords="offset points", color="0.4")  # fmt: skip
    axes.set(xlabel="iterations", ylabel=PANELS["n_skills"], ylim=(0, None))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.legend(frameon=False, fontsize=9, loc="center right")

    draw_occupancies(right, occupancies)
    return figure


def draw_occupancies(figure: Any, occupancies: dict[str, list[tuple[int, np.ndarray]]]) -> None:
    """A row of maps for each reward, early to late."""
    columns = max(1, *(len(stages) for stages in occupancies.values()))
    panels = figure.subplots(len(occupancies), columns, squeeze=False)
    image = None
    for row, (name, stages) in zip(panels, occupancies.items(), strict=True):
        for panel in row:
            panel.set_axis_off()
        for panel, (step, grid) in zip(row, stages, strict=False):
            shown = np.where(np.isnan(grid), np.nan, np.clip(grid, 0.001, 0.1))
            palette = plt.get_cmap("viridis").with_extremes(bad="0.25")
            image = panel.imshow(shown, cmap=palette, norm=LogNorm(0.001, 0.1))
            panel.set_title(f"{name}\n{_short(step)}", fontsize=6.5, color=colour_of(name), pad=2)
    if image is not None:
        bar = figure.colorbar(image, ax=panels, shrink=0.6, pad=0.02)
        bar.set_label("share of episodes ending here", fontsize=7)
        bar.ax.tick_params(labelsize=7)


def occupancy_figure(runs: Sequence[Run]) -> Figure:
    """Where skills end at the start, half-way and at the end (fig:skill-discovery-state-occupancy).

    The first seed of each reward; the shares are exact, not counted in trajectories.
    """
    check_alike(runs)
    groups, room_map = group_by_reward(runs), read_map(runs[0].settings["map"])
    stages = {name: _stages(group[0], room_map) for name, group in groups.items()}
    if not any(stages.values()):
        raise UserError(f"{runs[0].folder} and its like have no checkpoint to draw")
    figure = plt.figure(figsize=(COLUMN * 1.2, 1.15 * len(stages) + 0.2), layout="constrained")
    draw_occupancies(figure, stages)
    return figure


def _short(step: int) -> str:
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if step >= size:
            return f"after {step / size:g}{unit}"
    return "at the start" if step == 0 else f"after {step}"
