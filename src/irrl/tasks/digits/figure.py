"""The comparison of rewards as one picture: accuracy, where it looks, how long it looks."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from irrl.analysis.plots import draw_curves, plt
from irrl.analysis.compare import group_by_reward, learning_curves, require_alike
from irrl.runs.run import Run

METRICS = ("accuracy", "best_accuracy", "test_accuracy", "steps", "seconds")
"""What a comparison of digit runs reports."""

PANELS = {
    "accuracy": "validation accuracy (%)",
    "discriminator_posterior": "posterior of the label",
    "steps": "glimpses",
}
"""What is drawn over epochs; the figure of merit first."""

SAME = ("model", "canvas_size", "placement", "epochs")


def check_alike(runs: Sequence[Run]) -> None:
    require_alike(runs, SAME)


def comparison_figure(runs: Sequence[Run]) -> Figure:
    """Validation accuracy over epochs; beside it the posterior of the label, or the glimpses."""
    check_alike(runs)
    groups = group_by_reward(runs)
    stops = runs[0].settings["model"] == "dt-ram"
    shown = ("accuracy", "steps" if stops else "discriminator_posterior")
    figure, axes = plt.subplots(1, 2, figsize=(10.0, 4.0), layout="constrained")
    for panel, metric in zip(axes, shown, strict=True):
        draw_curves(panel, {n: learning_curves(g, metric) for n, g in groups.items()})
        panel.set(xlabel="epochs", ylabel=PANELS[metric], ylim=(0, None))
    axes[0].set_ylim(0, 100)
    axes[0].legend(frameon=False, fontsize=8, loc="lower right")
    figure.suptitle(f"{runs[0].settings['model'].upper()}", fontsize=10)
    return figure
