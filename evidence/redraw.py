"""Figures of `results/` that follow from what is kept there: curves, and measured gradients."""

import json
from collections.abc import Mapping, Sequence

import numpy as np
from beside import configs
from regression_figure import draw_regression
from studies import RESULTS, STUDIES
from study import Study
from tables import curves, has_curves, load

from irrl.analysis.compare import Curves
from irrl.analysis.comparison_plots import plot_metric, plot_panels
from irrl.analysis.gradient import plot_gradients
from irrl.analysis.plots import save_figure
from irrl.analysis.ranges import range_in
from irrl.analysis.stats import Estimate
from irrl.tasks import find_task, task_of

REWARDS = {
    "RAM": ("digits-ram",),
    "RAM, leaked": ("digits-ram-leak", "digits-ram"),
    "DT-RAM": ("digits-dt-ram",),
    "DT-RAM, leaked": ("digits-dt-ram-leak", "digits-dt-ram"),
}
ORACLE = {
    "RAM, dotted by oracle": ("digits-ram", "digits-oracle"),
    "RAM, leaked, dotted by oracle": ("digits-ram-leak", "digits-ram", "digits-oracle"),
}
"""Panels -> studies; of a reward that several have, the first is shown."""


def redraw() -> None:
    for name, study in STUDIES.items():
        if (RESULTS / name / "curves.json").exists() and has_curves(name):
            draw_study(name, study)
    draw_panels("digits-rewards", REWARDS)
    draw_panels("digits-oracle", ORACLE)
    draw_regression()
    for path in sorted(RESULTS.glob("*gradient.json")):
        draw_gradients(path.stem)


def curves_of(name: str) -> dict[str, Curves]:
    """The primary metric of each reward of a study, over its seeds.

    Curves are kept with two decimals; their ends are those of the table.
    """
    metric, found = STUDIES[name].columns.metrics[0], {}
    for label, kept in load(name)["rewards"].items():
        points = curves(name, label)
        steps, values = points[0, :, 0], points[:, :, 1]
        if np.allclose(values[:, -1], kept[metric]["values"], atol=0.0051):
            values[:, -1] = kept[metric]["values"]
        found[label] = steps, values
    return found


def draw_study(name: str, study: Study) -> None:
    found = configs(study.flags).values()
    task = task_of(next(iter(found)))
    ranges = [range_in(task, config, task.primary.name) for config in found]
    bounds = min(low for low, _ in ranges), max(high for _, high in ranges)
    ceiling = max(task.ceiling(config) for config in found) if task.ceiling else None
    figure = plot_metric(curves_of(name), task.primary, task.config.length, bounds, ceiling)
    save_figure(figure, RESULTS / name / "comparison.png", dpi=130)


def draw_panels(name: str, panels: Mapping[str, Sequence[str]]) -> None:
    """Panels of a column's width, of studies that are kept."""
    if not all((RESULTS / study / "curves.json").exists() for s in panels.values() for study in s):
        return
    task = find_task(STUDIES[next(iter(panels.values()))[0]].task)
    shown = {}
    for title, studies in panels.items():
        found: dict[str, Curves] = {}
        for study in studies:
            found = {**curves_of(study), **found}
        shown[title] = {label: found[label] for label in sorted(found)}
    figure = plot_panels(shown, task.config.length, task.primary, (0.0, 100.0))
    save_figure(figure, RESULTS / f"{name}.png", dpi=200)


def draw_gradients(name: str) -> None:
    record = json.loads((RESULTS / f"{name}.json").read_text())
    task = find_task(name.split("-")[0])
    groups = {
        folder.split("/")[-2]: [
            {k: as_estimate(x) for k, x in row.items()} for row in its["rewards"]
        ]
        for folder, its in record["runs"].items()
    }
    save_figure(plot_gradients(groups, task.config.length), RESULTS / f"{name}.png", dpi=130)


def as_estimate(kept: object) -> object:
    """A number with its interval, as it was before it was kept."""
    if not isinstance(kept, dict):
        return kept
    return Estimate(kept["value"], kept["low"], kept["high"], 0)
