"""Pictures of rewards and of their noise, and what all pictures share.

Colours are from the palettes of Okabe and Ito and of Tol, safe for colour-blind eyes; a reward has
the same colour in every figure.
"""

import io
import itertools
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from irrl.analysis.compare import (
    BASELINE,
    ORACLE,
    Curves,
    all_curves,
    group_by_reward,
    is_reward,
    require_comparable,
)
from irrl.analysis.ranges import Bounds, range_in
from irrl.analysis.stats import FEW, mean_band
from irrl.density_rewards import DENSITY_REWARDS
from irrl.errors import UserError
from irrl.noise import DeltaNoise, exact_noise, taylor_noise
from irrl.rewards import reward
from irrl.runs.files import write_atomic
from irrl.runs.run import Run
from irrl.tasks import one_task
from irrl.tasks.contract import Metric

COLOURS = {
    "linear": "#0072B2",
    "log": "#E69F00",
    "accuracy": "#009E73",
    "disdain": "#D55E00",
    "root-2": "#CC79A7",
    "root-4": "#56B4E9",
    "log1p": "#44AA99",
    "exp": "#000000",
    "power-2": "#999933",
    "power-3": "#8C6D31",
    "power-4": "#7F7F7F",
    "power-6": "#882255",
    "f-kl": "#E69F00",
    "f-chi2": "#0072B2",
    "f-total-variation": "#117733",
    "f-hellinger": "#AA4499",
    "f-le-cam": "#332288",
    "f-jensen-shannon": "#88CCEE",
    "f-reverse-kl": "#661100",
}

G_FUNCTIONS = ("log", "root-4", "root-2", "log1p", "linear", "exp", "power-2", "power-3", "power-6")
"""A choice from much information and much noise to little of both."""

OWN_COLOURS = ("#1B9E77", "#7570B3", "#E7298A", "#A6761D")
"""Of rewards that are not in the library, by their names."""

FORMATS = (".png", ".svg", ".pdf")


def colour_of(name: str) -> str:
    """The colour of a reward, clipped or not; scripted baselines are grey."""
    if name.endswith(BASELINE):
        return "0.45"
    plain = name.removesuffix(ORACLE).removeprefix("clipped-")
    return COLOURS.get(plain) or OWN_COLOURS[sum(plain.encode()) % len(OWN_COLOURS)]


def dashes_of(name: str) -> str:
    """Solid for clipped rewards and those with nothing to clip, dashed for the others.

    Dotted by an oracle.
    """
    if name.endswith(ORACLE):
        return ":"
    if name in DENSITY_REWARDS:
        return "-" if DENSITY_REWARDS[name].clipped else "--"
    found = reward(name)
    return "-" if found.clipped or found.shape is None else "--"


def check_format(path: str | Path) -> None:
    if Path(path).suffix not in FORMATS:
        raise UserError(f"cannot draw to {path}: its name must end in {', '.join(FORMATS)}")


def save_figure(figure: Figure, path: str | Path, dpi: int = 150) -> Path:
    """Write a figure; the ending of its name chooses the format."""
    path = Path(path)
    check_format(path)
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix[1:], dpi=dpi, bbox_inches="tight")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, content.getvalue())
    return path


def tidy(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)


# --- for a column of a paper ---

COLUMN = 3.3
"""Width of a column in inches."""

SMALL: Any = {
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "axes.labelsize": 8.0,
    "legend.fontsize": 7.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "axes.linewidth": 0.6,
}
"""Letters that can be read at that width."""


@matplotlib.rc_context(SMALL)
def plot_panels(
    panels: Mapping[str, Mapping[str, Curves]], xlabel: str, metric: Metric, bounds: Bounds
) -> Figure:
    """Learning curves of a metric, a panel of column width for each title."""
    figure = Figure(figsize=(COLUMN * len(panels), 2.9), layout="constrained")
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)
    for panel, (title, curves) in zip(axes[0], panels.items(), strict=True):
        plot_curves(panel, curves, bounds)
        seeds = panel.get_title()
        panel.set_title(f"{title}: {seeds}" if title else seeds, fontsize=8)
        panel.set(xlabel=xlabel, ylim=(metric.low, None))
        panel.xaxis.set_major_formatter(EngFormatter(sep=""))
        panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.24), ncols=2, frameon=False)
    axes[0, 0].set_ylabel(metric.title)
    return figure


# --- learning curves ---

BESIDE = 5.0
"""Width in inches of what a task shows beside its curves."""


def plot_curves(
    axes: Axes, curves: Mapping[str, Curves], bounds: Bounds = (-math.inf, math.inf)
) -> None:
    """Mean of each reward with its 95 % t interval: label -> (steps, values (seeds, steps)).

    As in tables, few seeds are drawn one by one, and no interval leaves the range of the metric.
    Of a scripted baseline only the mean.
    """
    of_baselines = itertools.cycle((":", "-.", "--"))
    for label, (steps, values) in curves.items():
        colour = colour_of(label)
        dashes = dashes_of(label) if is_reward(label) else next(of_baselines)
        middle = values.mean(axis=0)
        end = middle[-1]
        shown = (
            f"{label.removesuffix(BASELINE)}  {end:.1f}"
            if abs(end) >= 1
            else (f"{label.removesuffix(BASELINE)}  {end:.2g}")
        )
        axes.plot(steps, middle, dashes, color=colour, label=shown, lw=1.8)
        if not is_reward(label) or len(values) == 1:
            continue
        if len(values) <= FEW:
            axes.plot(steps, values.T, "-", color=colour, lw=0.6, alpha=0.6)
        else:
            low, high = mean_band(values, *bounds)
            axes.fill_between(steps, low, high, color=colour, alpha=0.15, lw=0)
    learned = [len(values) for label, (_, values) in curves.items() if is_reward(label)]
    axes.set_title(what_is_drawn(learned), fontsize=9)
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 2.5, 5, 10]))
    tidy(axes)


def what_is_drawn(seeds: Sequence[int]) -> str:
    """In words, from the numbers of seeds of some rewards."""
    if not seeds:
        return "scripted baselines"
    shown = "/".join(map(str, sorted(set(seeds))))
    if max(seeds) == 1:
        return "1 seed"
    if max(seeds) <= FEW:
        return f"mean and each of {shown} seeds"
    each = ", or each seed" if 1 < min(seeds) <= FEW else ""
    return f"mean and 95 % interval{each}, {shown} seeds"


def plot_comparison(runs: Sequence[Run]) -> Figure:
    """Runs of one task over seeds: a panel for each metric that the task shows.

    Beside them what the task itself has to show of the first seed of each reward.
    """
    task = one_task(list(runs))
    require_comparable(runs, task)
    groups, metrics = group_by_reward(runs), task.all_panels()
    curves = {label: all_curves(group, list(metrics)) for label, group in groups.items()}
    width, height = 4.8 * len(metrics), 4.6
    figure: Any = Figure(figsize=(width, height), layout="constrained")
    left = figure
    if task.plot_beside:
        figure.set_size_inches(width + BESIDE, max(height, 1.55 * len(groups)))
        left, right = figure.subfigures(1, 2, width_ratios=[width, BESIDE])
        firsts = {label: group[0] for label, group in groups.items()}
        try:
            task.plot_beside(right, firsts, {label: colour_of(label) for label in groups})
        except UserError as error:  # the curves can be drawn all the same
            print(f"irrl: left out: {error}", file=sys.stderr)
    ceiling = max(task.ceiling(run.config) for run in runs) if task.ceiling else None
    panels = left.subplots(1, len(metrics), squeeze=False)[0]
    for axes, (name, metric) in zip(panels, metrics.items(), strict=True):
        ranges = [range_in(task, group[0].config, name) for group in groups.values()]
        bounds = min(low for low, _ in ranges), max(high for _, high in ranges)
        plot_curves(axes, {label: found[name] for label, found in curves.items()}, bounds)
        axes.set(xlabel=task.config.length, ylabel=metric.title)
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        if ceiling is not None and metric == task.primary:
            plot_ceiling(axes, ceiling)
        axes.set_ylim(metric.low, metric.high)
        under = (0.5, -0.14)  # beside the curves there is no room that is always free
        axes.legend(frameon=False, fontsize=8, ncols=2, loc="upper center", bbox_to_anchor=under)
    return figure


def plot_ceiling(axes: Axes, ceiling: float) -> None:
    axes.axhline(ceiling, color="0.5", lw=0.8, ls="--")
    axes.annotate(
        f"ceiling {ceiling:.1f}", (0.0, ceiling), xytext=(2, 3), fontsize=8,
        textcoords="offset points", color="0.4",
    )  # fmt: skip


# --- rewards and their noise ---


def plot_reward_shapes(names: Sequence[str], prior: float) -> Figure:
    """Reward against posterior, one line per reward (the paper's fig:g-functions)."""
    figure = Figure(figsize=(6.4, 4.2))
    axes = figure.subplots()
    posterior = np.linspace(1e-3, 1.0, 800)
    lowest = 0.0
    for name in names:
        rewards = reward(name).of_log_posterior(np, np.log(posterior), math.log(prior))
        axes.plot(posterior, rewards, dashes_of(name), label=name, color=colour_of(name), lw=1.8)
        lowest = min(lowest, float(rewards[posterior >= 0.2 * prior].min()))
    axes.axvline(prior, color="0.6", lw=0.8, ls=":")
    axes.annotate(
        "prior", (prior, 1.0), xycoords=("data", "axes fraction"), color="0.4", fontsize=8
    )
    axes.set_ylim(bottom=1.05 * lowest - 0.03)
    axes.set(xlabel="posterior q(y | trajectory)", ylabel="reward")
    axes.legend(fontsize=8, frameon=False, bbox_to_anchor=(1.01, 1.0), loc="upper left")
    tidy(axes)
    return figure


def plot_noise_theory(names: Sequence[str], noise: DeltaNoise, prior: float) -> Figure:
    """Bias and std of the reward noise against p(y | trajectory), exact and expanded."""
    figure = Figure(figsize=(10.0, 3.8))
    panels = figure.subplots(1, 2, sharex=True)
    posteriors = np.linspace(0.02, 0.98, 97)
    for name in names:
        exact = [exact_noise(name, p, noise, prior) for p in posteriors]
        expanded = [taylor_noise(name, p, noise.moments(p), prior) for p in posteriors]
        colour = colour_of(name)
        for axes, part in zip(panels, ("bias", "std"), strict=True):
            axes.plot(posteriors, [getattr(e, part) for e in exact], color=colour, label=name)
            axes.plot(posteriors, [getattr(e, part) for e in expanded], color=colour, ls=":")
    for axes, part in zip(panels, ("bias", "std"), strict=True):
        axes.set(xlabel="true posterior p(y | trajectory)", title=f"{part} of the reward noise")
        axes.axvline(prior, color="0.6", lw=0.8, ls=":")
        tidy(axes)
    panels[0].set_yscale("symlog", linthresh=0.01)
    panels[1].set_yscale("log")
    panels[1].plot([], [], color="0.3", label="exact")
    panels[1].plot([], [], color="0.3", ls=":", label="second order (Eq. 5, 6)")
    panels[1].legend(fontsize=8, frameon=False, bbox_to_anchor=(1.01, 1.0), loc="upper left")
    figure.suptitle(f"discriminator noise: {noise.family}, scale {noise.scale:g}", fontsize=10)
    return figure
