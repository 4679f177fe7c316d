"""Learning curves of runs: a figure for each metric, and panels for a column of a paper."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from irrl.analysis.compare import Curves, all_curves, group_by_reward, require_comparable
from irrl.analysis.plots import ACROSS, COLUMN, SMALL, legend_right, plot_curves, save_figure
from irrl.analysis.ranges import Bounds, range_in
from irrl.errors import UserError
from irrl.runs.run import Run
from irrl.tasks import one_task
from irrl.tasks.contract import EpisodePicture, Metric, Task

# --- a figure for each metric ---


def comparison_files(path: str | Path, task: Task) -> dict[str, Path]:
    """Where the figures of a comparison go, by metric or by the title of what runs do.

    The primary metric goes to the path itself, the others beside it.
    """
    path = Path(path)
    names = [*task.all_panels(), *(picture.title for picture in _quick_picture(task))]
    slugs = ["", *("-" + name.lower().replace("_", "-").replace(" ", "-") for name in names[1:])]
    return {
        name: path.with_name(path.stem + slug + path.suffix)
        for name, slug in zip(names, slugs, strict=True)
    }


def save_comparison_figures(runs: Sequence[Run], path: str | Path) -> list[Path]:
    """Draw runs of one task over seeds: each metric, and what policies do where that is quick."""
    task = one_task(list(runs))
    figures = {name: plot_comparison(runs, name) for name in task.all_panels()}
    for picture in _quick_picture(task):
        firsts = [group[0] for group in group_by_reward(runs).values()]
        try:
            figures[picture.title] = picture.plot(firsts)
        except UserError as error:  # the curves can be drawn all the same
            print(f"irrl: left out: {error}", file=sys.stderr)
    files = comparison_files(path, task)
    return [save_figure(figure, files[name]) for name, figure in figures.items()]


def _quick_picture(task: Task) -> list[EpisodePicture]:
    return [task.picture] if task.picture is not None and task.picture.is_quick else []


def plot_comparison(runs: Sequence[Run], metric: str | None = None) -> Figure:
    """A metric of runs of one task over seeds, a curve for each reward; the primary if none."""
    task = one_task(list(runs))
    require_comparable(runs, task)
    groups = group_by_reward(runs)
    shown = task.primary if metric is None else task.all_panels()[metric]
    curves = {label: all_curves(group, [shown.name])[shown.name] for label, group in groups.items()}
    ranges = [range_in(task, group[0].config, shown.name) for group in groups.values()]
    bounds = min(low for low, _ in ranges), max(high for _, high in ranges)
    ceiling = None
    if task.ceiling and shown == task.primary:
        ceiling = max(task.ceiling(run.config) for run in runs)
    return plot_metric(curves, shown, task.config.length, bounds, ceiling)


def plot_metric(
    curves: Mapping[str, Curves],
    metric: Metric,
    xlabel: str,
    bounds: Bounds,
    ceiling: float | None = None,
) -> Figure:
    """Learning curves in one panel that can be read at the width of a page."""
    figure = Figure(figsize=(6.0, 4.2), layout="constrained")
    axes = figure.subplots()
    plot_curves(axes, curves, bounds)
    axes.set(xlabel=xlabel, ylabel=metric.title)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    if ceiling:  # zero where less is better: the axis ends there
        plot_ceiling(axes, ceiling)
    top = max(x for x in (metric.high, ceiling, 0.0) if x is not None)
    axes.set_ylim(metric.low, max(1.08 * top, axes.get_ylim()[1]) if top else None)
    legend_right(axes, fontsize=9)
    return figure


def plot_ceiling(axes: Axes, ceiling: float) -> None:
    axes.axhline(ceiling, color="0.5", lw=0.8, ls="--")
    axes.annotate(
        f"ceiling {ceiling:.1f}", (1.0, ceiling), xytext=(-2, 2), fontsize=8, ha="right",
        va="bottom", xycoords=("axes fraction", "data"), textcoords="offset points", color="0.4",
    )  # fmt: skip


# --- panels for a column of a paper ---


@matplotlib.rc_context(SMALL)
def plot_panels(
    panels: Mapping[str, Mapping[str, Curves]], xlabel: str, metric: Metric, bounds: Bounds
) -> Figure:
    """Learning curves of a metric, a panel of column width for each title, two side by side."""
    across = min(ACROSS, len(panels))
    rows = -(-len(panels) // across)
    figure = Figure(figsize=(COLUMN * across, 2.9 * rows), layout="constrained")
    axes = figure.subplots(rows, across, sharey=True, squeeze=False)
    for panel, (title, curves) in zip(axes.flat, panels.items(), strict=False):
        plot_curves(panel, curves, bounds)
        seeds = panel.get_title()
        panel.set_title(f"{title}:\n{seeds}" if title else seeds, fontsize=8)
        panel.set(xlabel=xlabel, ylim=(metric.low, None))
        panel.xaxis.set_major_formatter(EngFormatter(sep=""))
        panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.24), ncols=2, frameon=False)
    for panel in axes.flat[len(panels) :]:
        panel.remove()
    for panel in axes[:, 0]:
        panel.set_ylabel(metric.title)
    return figure
