"""Pictures of rewards and of their noise, and what all pictures share.

Colours are from the palettes of Okabe and Ito and of Tol, safe for colour-blind eyes; a reward has
the same colour in every figure.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from irrl.errors import UserError
from irrl.noise import DeltaNoise, exact_noise, taylor_noise
from irrl.rewards import REWARDS

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

FORMATS = (".png", ".svg", ".pdf")


def colour_of(name: str) -> str:
    """The colour of a reward, clipped or not."""
    return COLOURS[name.removeprefix("clipped-")]


def dashes_of(name: str) -> str:
    """Solid for clipped rewards and those with nothing to clip, dashed for the others."""
    reward = REWARDS[name]
    return "-" if reward.clipped or reward.shape is None else "--"


def check_format(path: str | Path) -> None:
    if Path(path).suffix not in FORMATS:
        raise UserError(f"cannot draw to {path}: its name must end in {', '.join(FORMATS)}")


def save_figure(figure: Figure, path: str | Path, dpi: int = 150) -> Path:
    """Write a figure; the ending of its name chooses the format."""
    path = Path(path)
    check_format(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=dpi, bbox_inches="tight")
    plt.close(figure)
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
def curve_panels(
    panels: Mapping[str, Mapping[str, tuple[np.ndarray, np.ndarray]]], xlabel: str, ylabel: str
) -> Figure:
    """Learning curves, a panel of column width for each title."""
    figure, axes = plt.subplots(
        1, len(panels), figsize=(COLUMN * len(panels), 2.9), sharey=True, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for panel, (title, curves) in zip(axes[0], panels.items(), strict=True):
        draw_curves(panel, curves)
        seeds = panel.get_title()
        panel.set_title(f"{title}: {seeds}" if title else seeds, fontsize=8)
        panel.set(xlabel=xlabel, ylim=(0, None))
        panel.xaxis.set_major_formatter(EngFormatter(sep=""))
        panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.24), ncols=2, frameon=False)
    axes[0, 0].set_ylabel(ylabel)
    return figure


# --- learning curves ---

ORACLE = " (oracle)"
"""What the label of a group of runs ends with if an oracle paid them."""


def draw_curves(axes: Axes, curves: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> None:
    """Mean and deviation over seeds of each reward: name -> (steps, values (seeds, steps)).

    A reward paid by an oracle is dotted.
    """
    for label, (steps, values) in curves.items():
        name = label.removesuffix(ORACLE)
        colour, dashes = colour_of(name), ":" if label.endswith(ORACLE) else dashes_of(name)
        middle = values.mean(axis=0)
        shown = f"{label}  {middle[-1]:.1f}"
        axes.plot(steps, middle, dashes, color=colour, label=shown, lw=1.8)
        if len(values) > 1:
            spread = values.std(axis=0, ddof=1)
            low, high = middle - spread, middle + spread
            axes.fill_between(steps, low, high, color=colour, alpha=0.15, lw=0)
    seeds = "/".join(map(str, sorted({len(values) for _, values in curves.values()})))
    several = seeds != "1"
    axes.set_title(f"mean and deviation over {seeds} seeds" if several else "1 seed", fontsize=9)
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 2.5, 5, 10]))
    tidy(axes)


# --- rewards and their noise ---


def reward_shapes(names: Sequence[str], prior: float) -> Figure:
    """Reward against posterior, one line per reward (the paper's fig:g-functions)."""
    figure, axes = plt.subplots(figsize=(6.4, 4.2))
    posterior = np.linspace(1e-3, 1.0, 800)
    lowest = 0.0
    for name in names:
        gain = REWARDS[name].gain(np, np.log(posterior), math.log(prior))
        axes.plot(posterior, gain, dashes_of(name), label=name, color=colour_of(name), lw=1.8)
        lowest = min(lowest, float(gain[posterior >= 0.2 * prior].min()))
    axes.axvline(prior, color="0.6", lw=0.8, ls=":")
    axes.annotate(
        "prior", (prior, 1.0), xycoords=("data", "axes fraction"), color="0.4", fontsize=8
    )
    axes.set_ylim(bottom=1.05 * lowest - 0.03)
    axes.set(xlabel="posterior q(y | trajectory)", ylabel="reward")
    axes.legend(fontsize=8, frameon=False, bbox_to_anchor=(1.01, 1.0), loc="upper left")
    tidy(axes)
    return figure


def noise_theory(names: Sequence[str], noise: DeltaNoise, prior: float) -> Figure:
    """Bias and deviation of the reward noise against p(y | trajectory), exact and expanded."""
    figure, panels = plt.subplots(1, 2, figsize=(10.0, 3.8), sharex=True)
    posteriors = np.linspace(0.02, 0.98, 97)
    for name in names:
        exact = [exact_noise(name, p, noise, prior) for p in posteriors]
        expanded = [taylor_noise(name, p, noise.moments(p), prior) for p in posteriors]
        colour = colour_of(name)
        for axes, part in zip(panels, ("bias", "deviation"), strict=True):
            axes.plot(posteriors, [getattr(e, part) for e in exact], color=colour, label=name)
            axes.plot(posteriors, [getattr(e, part) for e in expanded], color=colour, ls=":")
    for axes, part in zip(panels, ("bias", "deviation"), strict=True):
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
