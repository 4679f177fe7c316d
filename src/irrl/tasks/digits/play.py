"""Glimpse paths over canvases, as a sheet and as an animation."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.animation import FuncAnimation
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from irrl.errors import UserError
from irrl.nn.models import device_to_look
from irrl.runs.run import Run
from irrl.tasks.cases import sample_cases
from irrl.tasks.contract import Played
from irrl.tasks.digits.data import Canvases, canvases_with_test_digits, layout_of
from irrl.tasks.digits.evaluate import play_without_chance
from irrl.tasks.digits.extensions.config import DigitsConfig
from irrl.tasks.digits.learner import restored_models

WIDEST = 5  # canvases in a row: more cannot be read at the width of a page
STILL = 4  # frames at the end of an animation
START, PATH, STOP = "#FFD700", "#00C853", "#FF1744"
CASES = 5  # canvases of the case study
LOOKED_AT = 512  # canvases among which agents may differ


class Episode(NamedTuple):
    """One canvas as one run looked at it."""

    image: np.ndarray
    label: int
    guesses: np.ndarray  # after each glimpse
    pixels: np.ndarray  # (glimpses, 2): column and row of each centre
    side: int  # of a glimpse, the widest if there are several scales


def play(runs: Sequence[Run], episodes: int, seed: int) -> Played:
    """The same canvases, sampled at random, as each run looks at them."""
    played = play_all(runs, episodes, seed)
    return Played(plot_sheet(runs, played), animate(runs, played))


def case_study(runs: Sequence[Run], seed: int) -> Figure:
    """The sheet (fig:case-study-digit-recognition), of canvases on which the agents differ."""
    episodes = play_all(runs, LOOKED_AT, seed)
    answers = [[int(episode.guesses[-1]) for episode in row] for row in episodes]
    chosen, how = sample_cases(answers, CASES, seed, "canvases")
    return plot_sheet(runs, [[row[n] for n in chosen] for row in episodes], title=how)


def glimpse_paths(runs: Sequence[Run]) -> Figure:
    """The same for a report."""
    return case_study(runs, seed=0)


# --- episodes ---


def play_all(runs: Sequence[Run], count: int, seed: int) -> list[list[Episode]]:
    """How each run looks at the same canvases."""
    layouts = {layout_of(run.config) for run in runs}
    if len(layouts) > 1:
        raise UserError("runs whose canvases differ (size, clutter, placement) cannot be compared")
    canvases = canvases_with_test_digits(seed, layouts.pop(), count)
    return [episodes_of(run, canvases, seed) for run in runs]


def episodes_of(run: Run[DigitsConfig], canvases: Canvases, seed: int) -> list[Episode]:
    """How a run looks at some canvases, from first locations that are the same for all runs."""
    config = run.config
    models = restored_models(config, run.last_checkpoint().arrays, device_to_look(config.device))
    trajectory, log_probs = play_without_chance(config, *models, canvases, seed=seed)
    guesses = log_probs.argmax(dim=-1).cpu().numpy()
    pixels = 0.5 * (trajectory.locations.cpu().numpy() + 1.0) * config.canvas_size
    side = config.glimpse_size * 2 ** (config.scales - 1)
    episodes = []
    for n, (image, label, _) in enumerate(zip(*canvases, strict=True)):
        length = int(trajectory.lengths[n])
        episodes.append(Episode(image, int(label), guesses[:length, n], pixels[:length, n], side))
    return episodes


# --- pictures ---


def plot_sheet(
    runs: Sequence[Run],
    episodes: Sequence[Sequence[Episode]],
    upto: int | None = None,
    title: str = "",
) -> Figure:
    """A band for each run, in the same order of canvases."""
    columns = min(len(episodes[0]), WIDEST)
    height = math.ceil(len(episodes[0]) / columns)
    rows = len(episodes) * height
    figure = Figure(figsize=(1.6 * columns, 1.95 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(rows, columns, squeeze=False)
    for band, (run, row) in enumerate(zip(runs, episodes, strict=True)):
        lines = panels[band * height : (band + 1) * height]
        settings = run.settings
        lines[0, 0].set_ylabel(f"{settings['model']}\n{settings['reward']}", fontsize=8)
        for axes, episode in zip(lines.flat, row, strict=False):
            plot_episode(axes, episode, upto)
        for axes in lines.flat[len(row) :]:
            axes.remove()
    figure.suptitle(title, fontsize=8)
    return figure


def animate(runs: Sequence[Run], episodes: Sequence[Sequence[Episode]]) -> FuncAnimation:
    """The same sheet, glimpse by glimpse."""
    shown = [episode for row in episodes for episode in row]
    sheet = plot_sheet(runs, episodes, upto=1)

    def plot_frame(frame: int) -> list:
        for axes, episode in zip(sheet.axes, shown, strict=True):
            label = axes.get_ylabel()
            axes.clear()
            axes.set_ylabel(label, fontsize=8)
            plot_episode(axes, episode, upto=min(frame + 1, len(episode.pixels)))
        return []

    longest = max(len(episode.pixels) for episode in shown)
    return FuncAnimation(sheet, plot_frame, frames=longest + STILL)


def plot_episode(axes: Axes, episode: Episode, upto: int | None = None) -> None:
    """The canvas, the path in green, its start yellow and its end red; guess and truth above."""
    path = episode.pixels[:upto]
    side, size = len(episode.image), episode.side
    axes.imshow(episode.image, cmap="gray", extent=(0, side, side, 0))
    axes.plot(*path.T, color=PATH, lw=0.9)
    for n, (column, row) in enumerate(path):
        ended = n == len(episode.pixels) - 1
        colour = STOP if ended else START if n == 0 else PATH
        corner = (column - size / 2, row - size / 2)
        axes.add_patch(
            Rectangle(corner, size, size, fill=False, ec=colour, lw=1.0, zorder=3 + ended)
        )
    guess = int(episode.guesses[len(path) - 1])
    right = guess == episode.label
    axes.set_title(
        f"{guess} (true {episode.label}), {len(path)} glimpses",
        fontsize=7.5, color="black" if right else STOP, pad=2,
    )  # fmt: skip
    axes.set(xticks=[], yticks=[], xlim=(0, side), ylim=(side, 0))
