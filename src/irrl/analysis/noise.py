"""Discriminator noise as it was measured: rows of tables, and violins."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from irrl.analysis.plots import ACROSS, COLUMN, SMALL, colour_of, tidy
from irrl.noise_measured import (
    Posteriors,
    describe_delta,
    measured_noise,
    predicted_noise,
)
from irrl.runs.run import Run
from irrl.tasks.contract import Task


def delta_rows(found: Sequence[Posteriors]) -> list[dict[str, Any]]:
    """The noise at some checkpoints, with tests of the paper's hypotheses."""
    return [{"step": f.step, **describe_delta(f.delta).to_json()} for f in found]


def reward_rows(found: Sequence[Posteriors], names: Sequence[str]) -> list[dict[str, Any]]:
    """Measured bias and std of each reward, and what the second order predicts."""
    rows = []
    for f in found:
        for name in names:
            measured = measured_noise(name, f.online, f.oracle, f.prior)
            predicted = predicted_noise(name, f.online, f.oracle, f.prior)
            rows.append(
                {
                    "step": f.step,
                    "reward": name,
                    "bias": measured.bias,
                    "predicted_bias": predicted.bias,
                    "std": measured.std,
                    "predicted_std": predicted.std,
                }
            )
    return rows


# --- tables ---

DELTA_HEADER = ("mean", "std", "skewness", "p(zero mean)", "p(symmetric)", "episodes")
REWARD_HEADER = ("bias", "2nd order", "std", "2nd order")
SMALLEST = 1e-4
"""A normal approximation is not to be believed about smaller p."""


def shown_p(p: float, least: float) -> str:
    """A p value, or the bound that it is: a test by resampling cannot get below ``least``."""
    return f"<= {least:.1g}" if p <= least * (1.0 + 1e-9) else f"{p:.2g}"


def delta_cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """A row of `delta_rows` below `DELTA_HEADER`."""
    zero_mean = row["p_zero_mean"]
    return (
        *(f"{row[key]:.3f}" for key in ("mean", "std", "skewness")),
        f"{zero_mean:.2g}" if zero_mean >= SMALLEST else f"< {SMALLEST:g}",
        shown_p(row["p_symmetric"], 1.0 / (1.0 + row.get("resamples", 2_000))),
        str(row["samples"]),
    )


def reward_cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """A row of `reward_rows` below `REWARD_HEADER`."""
    return tuple(f"{row[key]:.3f}" for key in ("bias", "predicted_bias", "std", "predicted_std"))


def oracle_text(oracle: Mapping[str, Any]) -> str:
    """How good the judge is itself: of ``oracle_record``."""
    accuracy = "; ".join(
        f"{name.removesuffix('_percent').replace('_', ' ')} {value:.1f} %"
        for name, value in oracle.items()
        if name != "run"
    )
    return f"The oracle, {oracle['run']}: {accuracy or 'its accuracy is not known'}."


def oracle_record(run: Run, task: Task) -> dict[str, Any]:
    """The run that judges, and what it got right itself: on validation and on test episodes."""
    row = run.summary() if run.is_finished else (list(run.rows()) or [{}])[-1]
    known = [m for m in task.all_columns() if m.endswith("accuracy_percent") and m in row]
    kept = [m for m in known if not m.startswith("best_")]
    return {"run": str(run.folder), **{name: row[name] for name in kept}}


def each_once(rows: Iterable[tuple[str, tuple[str, ...]]]) -> list[list[str]]:
    """(run, cells) -> rows of a table. Runs of which a row says the same share it.

    Before training runs of one seed are the same, whatever their reward will be.
    """
    runs: dict[tuple[str, ...], list[str]] = {}
    for run, cells in rows:
        runs.setdefault(cells, []).append(run)
    return [[", ".join(dict.fromkeys(names)), *cells] for cells, names in runs.items()]


# --- pictures ---


@matplotlib.rc_context(SMALL)
def plot_violins(groups: dict[str, list[Posteriors]], xlabel: str) -> Figure:
    """Violins of delta over training, a panel for each run (fig:noisy-visualization-log, -acc)."""
    reach = 1.08 * max(float(np.abs(f.delta).max()) for found in groups.values() for f in found)
    across = min(ACROSS, len(groups))
    rows = -(-len(groups) // across)
    figure = Figure(figsize=(COLUMN * across, 2.7 * rows), layout="constrained")
    panels = figure.subplots(rows, across, sharey=True, squeeze=False)
    for axes, (name, found) in zip(panels.flat, groups.items(), strict=False):
        places = np.arange(len(found))
        colour = colour_of(name)
        parts: Any = axes.violinplot(
            [f.delta for f in found], places, widths=0.8, showextrema=False
        )
        for body in parts["bodies"]:
            body.set(facecolor=colour, edgecolor=colour, alpha=0.45)
        for place, f in zip(places, found, strict=True):
            low, quarter, three, high = _box(f.delta)
            axes.vlines(place, low, high, color="0.2", lw=0.8)
            axes.vlines(place, quarter, three, color="0.2", lw=4)
            axes.hlines(f.delta.mean(), place - 0.12, place + 0.12, color="white", lw=2, zorder=4)
        axes.axhline(0.0, color="0.5", lw=0.8, ls=":")
        axes.set_xticks(places, [str(f.step) for f in found])
        axes.set(xlabel=xlabel, ylim=(-reach, reach))
        axes.set_title(name, parse_math=False)  # a folder may have a dollar in its name
        tidy(axes)
    for axes in panels.flat[len(groups) :]:
        axes.remove()
    for axes in panels[:, 0]:
        axes.set_ylabel("q online minus q of the oracle")
    figure.suptitle("line: zero; white: mean; dark: quartiles", fontsize=8)
    return figure


def _box(values: np.ndarray) -> tuple[float, float, float, float]:
    """Lower adjacent value, quartiles, upper adjacent value."""
    quarter, three = np.percentile(values, [25, 75])
    reach = 1.5 * (three - quarter)
    inside = values[(values >= quarter - reach) & (values <= three + reach)]
    return float(inside.min()), float(quarter), float(three), float(inside.max())
