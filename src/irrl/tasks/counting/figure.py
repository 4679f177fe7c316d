"""The comparison of rewards as one picture: accuracy, well-founded answers, moves."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from irrl.analysis.plots import draw_curves, plt
from irrl.analysis.compare import group_by_reward, is_yardstick, learning_curves, require_alike
from irrl.runs.run import Run

METRICS = ("accuracy", "well_founded", "moves", "seconds")
"""What a comparison of counting runs reports."""

SAME = ("resolution", "encoder", "max_moves", "episodes")
PANELS = {
    "accuracy": "right answers (%)",
    "well_founded": "right and well-founded answers (%)",
    "moves": "moves",
}
"""What is drawn over episodes; the figure of merit first."""

YARDSTICKS = {"stay": ":", "random": "-.", "sweep": "--"}


def check_alike(runs: Sequence[Run]) -> None:
    require_alike(runs, SAME)


def comparison_figure(runs: Sequence[Run]) -> Figure:
    """Three metrics over episodes, in colour for each reward and grey for each yardstick."""
    check_alike(runs)
    learned = [run for run in runs if not is_yardstick(run)]
    groups = group_by_reward(learned) if learned else {}
    figure, axes = plt.subplots(1, 3, figsize=(14.0, 4.6), layout="constrained")
    for panel, (metric, title) in zip(axes, PANELS.items(), strict=True):
        if groups:
            draw_curves(panel, {n: learning_curves(g, metric) for n, g in groups.items()})
        for walker in YARDSTICKS:
            alike = [run for run in runs if run.settings["walker"] == walker]
            if alike:
                draw_yardstick(panel, walker, alike, metric)
        panel.set(xlabel="episodes", ylabel=title)
        panel.xaxis.set_major_formatter(EngFormatter(sep=""))
        under = (0.5, -0.16)  # beside the curves there is no room that is always free
        panel.legend(frameon=False, fontsize=8, ncols=3, loc="upper center", bbox_to_anchor=under)
    for panel in axes[:2]:
        panel.set_ylim(0, 100)
    axes[2].set_ylim(0, runs[0].settings["max_moves"] + 0.2)
    return figure


def draw_yardstick(axes: Axes, walker: str, runs: Sequence[Run], metric: str) -> None:
    """The mean over runs of a walker that does not learn to walk; all their rewards are alike."""
    steps, values = learning_curves(runs, metric)
    middle = values.mean(axis=0)
    label = f"{walker}  {middle[-1]:.1f}"
    axes.plot(steps, middle, YARDSTICKS[walker], color="0.45", label=label, lw=1.4)
