"""Discriminator noise as it was measured: rows of tables, and violins."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from irrl.analysis.plots import colour_of, tidy
from irrl.noise_measured import (
    Posteriors,
    describe_delta,
    measured_noise,
    predicted_noise,
)


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


def plot_violins(groups: dict[str, list[Posteriors]], xlabel: str) -> Figure:
    """Violins of delta over training, a panel for each run (fig:noisy-visualization-log, -acc)."""
    figure = Figure(figsize=(4.2 * len(groups) + 0.6, 3.4), layout="constrained")
    panels = figure.subplots(1, len(groups), sharey=True, squeeze=False)
    for axes, (name, found) in zip(panels[0], groups.items(), strict=True):
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
            axes.hlines(f.delta.mean(), place - 0.09, place + 0.09, color="white", lw=2, zorder=4)
        axes.axhline(0.0, color="0.5", lw=0.8, ls=":")
        axes.set_xticks(places, [str(f.step) for f in found])
        axes.set(xlabel=xlabel, ylim=(-1.02, 1.02))
        axes.set_title(name, parse_math=False)  # a folder may have a dollar in its name
        tidy(axes)
    panels[0, 0].set_ylabel("discriminator noise, online minus oracle")
    return figure


def _box(values: np.ndarray) -> tuple[float, float, float, float]:
    """Lower adjacent value, quartiles, upper adjacent value."""
    quarter, three = np.percentile(values, [25, 75])
    reach = 1.5 * (three - quarter)
    inside = values[(values >= quarter - reach) & (values <= three + reach)]
    return float(inside.min()), float(quarter), float(three), float(inside.max())
