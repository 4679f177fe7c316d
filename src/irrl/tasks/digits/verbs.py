"""`irrl data mnist` fetches the digits; `irrl data show` shows what canvases look like."""

from argparse import Namespace

from matplotlib.figure import Figure

from irrl.runs.progress import Bars
from irrl.tasks.digits.data import layout_of, train_and_validation
from irrl.tasks.digits.extensions.config import DigitsConfig
from irrl.tasks.digits.mnist import fetch_mnist, read_mnist

ROWS, COLUMNS = 4, 8
SHOWN = ("seed", "placement", "canvas_size", "clutter", "clutter_size")


def mnist(options: Namespace) -> str:
    with Bars() as bars:
        folder, origin = fetch_mnist(options.source, bars.update)
    return f"MNIST is in {folder} ({origin})"


def show(options: Namespace) -> Figure:
    return plot_samples(DigitsConfig(**{name: getattr(options, name) for name in SHOWN}))


def plot_samples(config: DigitsConfig) -> Figure:
    """The first training canvases of a run with these settings, each with its label."""
    canvases, _ = train_and_validation(
        read_mnist("train"), config.seed, layout_of(config), ROWS * COLUMNS, 0
    )
    figure = Figure(figsize=(1.3 * COLUMNS, 1.45 * ROWS))
    panels = figure.subplots(ROWS, COLUMNS)
    for axes, image, label in zip(panels.flat, canvases.images, canvases.labels, strict=True):
        axes.imshow(image, cmap="gray", vmin=0, vmax=255)
        axes.set_title(str(label), fontsize=8, pad=2)
        axes.set_axis_off()
    figure.suptitle(
        f"Cluttered MNIST, placement {config.placement}, seed {config.seed}", fontsize=9
    )
    return figure
