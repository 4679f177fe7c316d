"""A sheet of cluttered digits, to see what the task looks like."""

from typing import Any

from matplotlib.figure import Figure

from irrl.analysis.plots import plt
from irrl.tasks.digits.config import DigitsConfig
from irrl.tasks.digits.data import layout_of, train_and_validation

ROWS, COLUMNS = 4, 8


def sample_sheet(settings: dict[str, Any]) -> Figure:
    """The first training canvases of a run with these settings, each with its label."""
    config = DigitsConfig(**settings)
    canvases, _ = train_and_validation(config.seed, layout_of(config), ROWS * COLUMNS, 0)
    figure, panels = plt.subplots(ROWS, COLUMNS, figsize=(1.3 * COLUMNS, 1.45 * ROWS))
    for axes, image, label in zip(panels.flat, canvases.images, canvases.labels, strict=True):
        axes.imshow(image, cmap="gray", vmin=0, vmax=255)
        axes.set_title(str(label), fontsize=8, pad=2)
        axes.set_axis_off()
    figure.suptitle(
        f"Cluttered MNIST, placement {config.placement}, seed {config.seed}", fontsize=9
    )
    return figure
