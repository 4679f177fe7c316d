"""Pictures of rewards as functions of the posterior, and of what noise does to them."""

import math
from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, SymmetricalLogLocator

from irrl.analysis.plots import SMALL, line_of, tidy
from irrl.noise import DeltaNoise, exact_noise, taylor_noise
from irrl.rewards import reward

THEORY = ("log", "clipped-log", "root-2", "linear", "clipped-linear", "power-2", "power-6")
"""Rewards whose noise is shown if none are named."""

LEAST_STD = 1e-4
"""Smaller ones are not drawn: they would stretch the axis to where nothing can be told."""

NEAR_ZERO = 0.01
"""Biases below it are drawn on a linear scale, larger ones on a logarithmic one, with no kink."""


def plot_reward_shapes(names: Sequence[str], prior: float) -> Figure:
    """Reward against posterior, one line per reward (the paper's fig:g-functions)."""
    figure = Figure(figsize=(6.0, 4.2), layout="constrained")
    axes = figure.subplots()
    posterior = np.linspace(1e-3, 1.0, 800)
    lowest = 0.0
    for n, name in enumerate(names):
        rewards = reward(name).of_log_posterior(np, np.log(posterior), math.log(prior))
        style = {**line_of(name), "markevery": (0.15 + 0.02 * n, 0.2)}
        axes.plot(posterior, rewards, **style, label=name, lw=1.8)
        lowest = min(lowest, float(rewards[posterior >= 0.2 * prior].min()))
    mark_prior(axes, prior)
    axes.set_ylim(bottom=1.05 * lowest - 0.03)
    axes.set(xlabel="posterior q(y | trajectory)", ylabel="reward")
    axes.legend(fontsize=8, frameon=False, bbox_to_anchor=(1.01, 1.0), loc="upper left")
    tidy(axes)
    return figure


@matplotlib.rc_context(SMALL)
def plot_noise_theory(names: Sequence[str], noise: DeltaNoise, prior: float) -> Figure:
    """Bias and std of the reward noise against the posterior, exact and to second order."""
    figure = Figure(figsize=(6.6, 3.9), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True)
    posteriors = np.linspace(0.02, 0.98, 97)
    for n, name in enumerate(names):
        exact = [exact_noise(name, q, noise, prior) for q in posteriors]
        expanded = [taylor_noise(name, q, noise.moments(q), prior) for q in posteriors]
        style = line_of(name)
        for axes, part in zip(panels, ("bias", "std"), strict=True):
            values = [getattr(e, part) for e in exact]
            axes.plot(posteriors, values, **style, lw=1.6, markevery=(4 + 2 * n, 24), label=name)
            # below the prior a clipped reward is flat: to second order there is no noise to draw
            values = [getattr(e, part) if e.variance > 0.0 else math.nan for e in expanded]
            axes.plot(posteriors, values, color=style["color"], ls=style["ls"], lw=0.6)
    for axes, part in zip(panels, ("bias", "std"), strict=True):
        axes.set(xlabel="posterior q(y | trajectory) without noise", xlim=(0.0, 1.0))
        axes.set_title(f"{part} of the reward")
        mark_prior(axes, prior)
        tidy(axes)
    scale_bias(panels[0])
    panels[1].set_yscale("log")
    panels[1].set_ylim(bottom=LEAST_STD)
    panels[1].yaxis.set_major_locator(LogLocator(numticks=12))
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    figure.suptitle(f"{noise_in_words(noise)}; thin: second order (Eq. 5, 6)", fontsize=8)
    return figure


def scale_bias(axes: Axes) -> None:
    """From one sign to the other without a kink where the scale turns logarithmic."""
    axes.set_yscale("asinh", linear_width=NEAR_ZERO)
    axes.yaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=NEAR_ZERO))
    axes.yaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")


def noise_in_words(noise: DeltaNoise) -> str:
    """What is assumed of the discriminator."""
    return (
        f"noise of the discriminator: {noise.family}, zero mean, std {noise.scale:g}, cut so that "
        "q stays in 0..1"
    )


def mark_prior(axes: Axes, prior: float) -> None:
    axes.axvline(prior, color="0.5", lw=0.8, ls=":")
    axes.annotate(
        f"prior {prior:.2g}", (prior, 1.0), xytext=(3, -1), xycoords=("data", "axes fraction"),
        textcoords="offset points", color="0.35", fontsize=7, va="top",
    )  # fmt: skip
