"""Glimpse paths over canvases, as a sheet and as an animation."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from irrl.errors import UserError
from irrl.nn.models import device_to_look
from irrl.analysis.plots import check_format, plt, save_figure
from irrl.runs.run import Run
from irrl.tasks.digits.config import DigitsConfig
from irrl.tasks.digits.data import Canvases, canvases_with_test_digits, layout_of
from irrl.tasks.digits.evaluate import play
from irrl.tasks.digits.state import restored_models

WIDEST = 8  # canvases in a row
START, PATH, STOP = "#FFD700", "#00C853", "#FF1744"


class Episode(NamedTuple):
    """One canvas as one run looked at it."""

    image: np.ndarray
    label: int
    guesses: np.ndarray  # after each glimpse
    pixels: np.ndarray  # (glimpses, 2): column and row of each centre
    side: int  # of a glimpse, the widest if there are several scales


def save_play(runs: Sequence[Run], images: int, seed: int, output: Path) -> list[Path]:
    """Write the sheet, and the animation under the same name with .gif; returns both."""
    check_format(output)
    episodes = play_all(runs, images, seed)
    sheet = draw_sheet(runs, episodes)
    longest = max(len(e.pixels) for row in episodes for e in row)
    moving = output.with_suffix(".gif")
    frames = draw_sheet(runs, episodes, upto=1)

    def draw(frame: int) -> list:
        for axes, episode in zip(frames.axes, (e for row in episodes for e in row), strict=True):
            label = axes.get_ylabel()
            axes.clear()
            axes.set_ylabel(label, fontsize=7)
            draw_episode(axes, episode, upto=min(frame + 1, len(episode.pixels)))
        return []

    animation = FuncAnimation(frames, draw, frames=longest + 4)
    paths = [save_figure(sheet, output)]
    animation.save(moving, writer=PillowWriter(fps=4), dpi=80)
    plt.close(frames)
    return [*paths, moving]


def case_study(runs: Sequence[Run], images: int, seed: int) -> Figure:
    """The sheet (fig:case-study-digit-recognition): canvases drawn at random, not chosen."""
    return draw_sheet(runs, play_all(runs, images, seed))


def play_all(runs: Sequence[Run], images: int, seed: int) -> list[list[Episode]]:
    """How each run looks at the same canvases."""
    configs = [DigitsConfig.from_settings(run.settings) for run in runs]
    if len({layout_of(config) for config in configs}) > 1:
        raise UserError("runs whose canvases differ (size, clutter, placement) cannot be compared")
    canvases = canvases_with_test_digits(seed, layout_of(configs[0]), images)
    return [episodes_of(run, canvases, seed) for run in runs]


def episodes_of(run: Run, canvases: Canvases, seed: int) -> list[Episode]:
    """How a run looks at some canvases, from first locations that are the same for all runs."""
    config = DigitsConfig.from_settings(run.settings)
    models = restored_models(config, run.last_checkpoint().arrays, device_to_look(config.device))
    trajectory, log_probs = play(config, *models, canvases, seed=seed)
    guesses = log_probs.argmax(dim=-1).cpu().numpy()
    pixels = 0.5 * (trajectory.locations.cpu().numpy() + 1.0) * config.canvas_size
    side = config.glimpse_size * 2 ** (config.scales - 1)
    episodes = []
    for n, (image, label, _) in enumerate(zip(*canvases, strict=True)):
        length = int(trajectory.lengths[n])
        episodes.append(Episode(image, int(label), guesses[:length, n], pixels[:length, n], side))
    return episodes


def draw_sheet(
    runs: Sequence[Run], episodes: Sequence[Sequence[Episode]], upto: int | None = None
) -> Figure:
    """A band for each run, in the same order of canvases."""
    columns = min(len(episodes[0]), WIDEST)
    height = math.ceil(len(episodes[0]) / columns)
    rows = len(episodes) * height
    figure, panels = plt.subplots(
        rows, columns, figsize=(1.6 * columns, 1.95 * rows), squeeze=False, layout="constrained"
    )
    for band, (run, row) in enumerate(zip(runs, episodes, strict=True)):
        lines = panels[band * height : (band + 1) * height]
        settings = run.settings
        lines[0, 0].set_ylabel(f"{settings['model']}\n{settings['reward']}", fontsize=7)
        for axes, episode in zip(lines.flat, row, strict=False):
            draw_episode(axes, episode, upto)
        for axes in lines.flat[len(row) :]:
            axes.remove()
    return figure


def draw_episode(axes: Axes, episode: Episode, upto: int | None = None) -> None:
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
        fontsize=6.5, color="black" if right else STOP, pad=2,
    )  # fmt: skip
    axes.set(xticks=[], yticks=[], xlim=(0, side), ylim=(side, 0))
