"""Figures of `experiments/which-reward/`."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from studies import RAM
from which_reward import KEPT, load
from which_reward_tables import CEILING, OPTIMISM, SKILLS, THREE

from irrl.analysis.plots import colour_of, line_of
from irrl.analysis.stats import FEW, mean_estimate


def write_figures() -> None:
    for name, draw in (("skills", skills), ("paper", paper), ("counting", counting)):
        figure = draw()
        if figure is not None:
            save(figure, KEPT / f"{name}.png")


def save(figure: Figure, path: Path) -> None:
    figure.savefig(path, dpi=130, metadata={"Software": None})


def skills() -> Figure | None:
    """Skills learned, by the optimism of the first values."""
    kept = load("skills")
    if kept is None:
        return None
    figure = Figure(figsize=(9.5, 3.8), layout="constrained")
    axes = figure.subplots(1, 2)
    places = np.arange(len(OPTIMISM))
    for ax, codes, ceiling in zip(axes, (128, 24), (CEILING, 24.0), strict=True):
        for reward in SKILLS:
            found = [kept.values("n_skills", reward=reward, codes=codes, optimism=o)
                     for o in OPTIMISM]  # fmt: skip
            there = [n for n, values in enumerate(found) if values]
            means = [np.mean(found[n]) for n in there]
            ax.plot(places[there], means, **line_of(reward), label=reward)
            if all(len(found[n]) > FEW for n in there):
                estimates = [mean_estimate(found[n]).within(0.0, ceiling) for n in there]
                low, high = ([e[k] for e in estimates] for k in (1, 2))
                ax.fill_between(places[there], low, high, color=colour_of(reward), alpha=0.15, lw=0)
        ax.axhline(ceiling, color="0.6", lw=0.8)
        ax.annotate("ceiling", (places[0], ceiling), va="bottom", fontsize=8, color="0.4")
        ax.set_xticks(places, [f"{o:g}" for o in OPTIMISM])
        ax.set(title=f"{codes} codes", ylim=(0, 1.08 * ceiling), ylabel="skills learned (Eq. 9)",
               xlabel="rho: initial Q values / largest reward")  # fmt: skip
        ax.spines[["top", "right"]].set_visible(False)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    return figure


def paper() -> Figure | None:
    """The authors' recipe: our curves, theirs as points."""
    sweeps = {"leaked": load("digits-paper-leak"), "detached": load("digits-paper")}
    if not any(sweeps.values()):
        return None
    figure = Figure(figsize=(9.5, 3.8), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, (how, kept) in zip(axes, sweeps.items(), strict=True):
        for reward in THREE:
            for run in kept.where(reward=reward) if kept else []:
                steps, values = np.array(run["curve"]).T
                ax.plot(steps, values, color=colour_of(reward), lw=1.2, label=reward)
            steps, values = RAM.curve_up_to(reward, 600)
            style = {**line_of(reward), "ls": "none", "mfc": "white"}
            ax.plot(steps, values, **style, label=f"{reward}, authors")
        ax.set(title=f"gradient of the reward {how}", xlabel="epochs", ylim=(0, 100))
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("validation accuracy, %")
    found = {label: handle for ax in axes
             for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}  # fmt: skip
    figure.legend(found.values(), found.keys(), loc="outside right center", frameon=False)
    return figure


def counting() -> Figure | None:
    """Right answers against moves: a point for each run."""
    kept = load("counting")
    if kept is None:
        return None
    figure = Figure(figsize=(6.5, 3.8), layout="constrained")
    ax = figure.subplots()
    for reward in THREE:
        runs = sorted(kept.where(reward=reward), key=lambda run: run["moves"])
        moves, right = ([run[m] for run in runs] for m in ("moves", "accuracy_percent"))
        ax.plot(moves, right, **line_of(reward), lw=0.8, label=reward)
    ax.set(xlabel="moves", ylabel="right answers, %")
    ax.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right center", frameon=False)
    return figure
