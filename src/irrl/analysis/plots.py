"""What all pictures share: how a reward looks, learning curves, and how figures are saved.

Colours are from the palettes of Okabe and Ito and of Tol, safe for colour-blind eyes. A reward has
the same colour and the same marker in every figure; clipped it is solid with filled markers, else
dashed with hollow ones. So rewards can be told apart without colours, on paper, too.
"""

import io
import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from irrl.analysis.compare import BASELINE, ORACLE, Curves, is_reward
from irrl.analysis.ranges import Bounds
from irrl.analysis.stats import FEW, mean_band
from irrl.density_rewards import DENSITY_REWARDS
from irrl.errors import UserError
from irrl.rewards import reward
from irrl.runs.files import write_atomic

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

MARKERS = {
    "linear": "s",
    "log": "o",
    "accuracy": "^",
    "disdain": "D",
    "root-2": "v",
    "root-4": "<",
    "log1p": ">",
    "exp": "P",
    "power-2": "X",
    "power-3": "p",
    "power-4": "h",
    "power-6": "*",
}
"""What is not here has a small dot."""

G_FUNCTIONS = ("log", "root-4", "root-2", "log1p", "linear", "exp", "power-2", "power-3", "power-6")
"""A choice from much information and much noise to little of both."""

OWN_COLOURS = ("#1B9E77", "#7570B3", "#E7298A", "#A6761D")
"""Of rewards that are not in the library, by their names."""

FORMATS = (".png", ".svg", ".pdf")


def colour_of(name: str) -> str:
    """The colour of a reward, clipped or not; scripted baselines are grey."""
    if name.endswith(BASELINE):
        return "0.45"
    plain = _plain(name)
    return COLOURS.get(plain) or OWN_COLOURS[sum(plain.encode()) % len(OWN_COLOURS)]


def _plain(name: str) -> str:
    return name.removesuffix(ORACLE).removeprefix("clipped-")


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


def marker_of(name: str) -> str:
    """The marker of a reward, clipped or not."""
    return MARKERS.get(_plain(name), ".")


def is_filled(name: str) -> bool:
    """Markers of rewards that are not clipped, though they could be, are hollow."""
    return not is_reward(name) or dashes_of(name.removesuffix(ORACLE)) == "-"


def line_of(name: str) -> dict[str, Any]:
    """How Matplotlib draws the line of a reward: colour, dashes, marker."""
    colour = colour_of(name)
    return {
        "color": colour,
        "ls": dashes_of(name),
        "marker": marker_of(name),
        "mfc": colour if is_filled(name) else "white",
        "ms": 4.5,
    }


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

ACROSS = 2
"""Panels side by side: more cannot be read at the width of a page."""

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


# --- learning curves ---


def plot_curves(
    axes: Axes, curves: Mapping[str, Curves], bounds: Bounds = (-math.inf, math.inf)
) -> None:
    """Mean of each reward with its 95 % t interval: label -> (steps, values (seeds, steps)).

    As in tables, few seeds are drawn one by one, and no interval leaves the range of the metric.
    Of a scripted baseline only the mean.
    """
    of_baselines = itertools.cycle((":", "-.", "--"))
    for n, (label, (steps, values)) in enumerate(curves.items()):
        colour = colour_of(label)
        dashes = dashes_of(label) if is_reward(label) else next(of_baselines)
        middle = values.mean(axis=0)
        style = {**line_of(label), "markevery": (0.03 * n, 0.15)} if is_reward(label) else {}
        style |= {"color": colour, "ls": dashes}
        axes.plot(steps, middle, **style, label=_with_end(label, middle[-1]), lw=1.8)
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


def _with_end(label: str, end: float) -> str:
    """What the legend says of a curve: its label and its last value."""
    shown = f"{end:.1f}" if abs(end) >= 1 else f"{end:.2g}"
    return f"{label.removesuffix(BASELINE)}  {shown}"


def legend_right(axes: Axes, **options: Any) -> None:
    """A legend beside the curves, the largest value first: on them no room is always free."""
    handles, _ = axes.get_legend_handles_labels()
    lines: list[Any] = sorted(handles, key=lambda line: -float(line.get_ydata()[-1]))
    axes.legend(
        lines,
        [line.get_label() for line in lines],
        bbox_to_anchor=(1.01, 1.0),
        loc="upper left",
        frameon=False,
        **options,
    )


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
