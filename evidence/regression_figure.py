"""Labels that are numbers: each seed of `ball` beside the same seed paid by the environment."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from studies import RESULTS
from tables import is_there, load

from irrl.analysis.plots import save_figure
from irrl.analysis.stats import mean_estimate

PANELS = {
    "LightDark, 240,000 steps": ("gym-light-dark", 0.0093),
    "LIDARLocMazeStatic, 51,200 steps": ("gym-lidar", None),
}
"""Title -> study, and what a particle filter has that walks to the light."""


def draw_regression() -> None:
    if not all(is_there(study) for study, _ in PANELS.values()):
        return
    figure = Figure(figsize=(7.0, 3.4), layout="constrained")
    for axes, (title, (study, best)) in zip(
        figure.subplots(1, len(PANELS)), PANELS.items(), strict=True
    ):
        draw_pairs(axes, study)
        if best is not None:
            axes.axhline(best, color="0.5", lw=0.8, ls="--")
            axes.annotate("particle filter", (0.5, best), ha="center", va="bottom", fontsize=8)
        axes.set_title(title, fontsize=9)
    figure.suptitle("squared error per step: seeds, their mean and its 95 % interval", fontsize=9)
    save_figure(figure, RESULTS / "regression.png", dpi=130)


def draw_pairs(axes: Axes, study: str) -> None:
    """A line for each seed between the two who pay; means with intervals beside them."""
    values = [
        load(name)["rewards"]["ball"]["squared_error"]["values"]
        for name in (study, f"{study}-own-reward")
    ]
    for pair in zip(*values, strict=True):
        axes.plot((0, 1), pair, color="0.75", marker="o", ms=4, lw=0.8)
    for place, each in ((-0.15, values[0]), (1.15, values[1])):
        mean = mean_estimate(each)
        low, high = mean.spread
        axes.errorbar(place, mean.value, [[mean.value - low], [high - mean.value]], fmt="o",
                      color="black", capsize=3)  # fmt: skip
    axes.set_xticks((0, 1), ("paid by ball", "by the environment"))
    axes.set_xlim(-0.4, 1.4)
    axes.set_ylim(bottom=0.0)
