"""Walks around the table, as a sheet and as an animation."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from irrl.errors import UserError
from irrl.nn.models import device_to_look
from irrl.analysis.plots import check_format, plt, save_figure
from irrl.runs.run import Run
from irrl.runs.seeding import stream
from irrl.tasks.counting.config import CountingConfig
from irrl.tasks.counting.data import Split, load_split
from irrl.tasks.counting.evaluate import saw_all_goals
from irrl.tasks.counting.render import Painter
from irrl.tasks.counting.rollout import draw_evaluation, rollout
from irrl.tasks.counting.scene import GOALS, Scene
from irrl.tasks.counting.state import restored_model

ACTION_NAMES = ("right →", "← left", "stop")
WRONG, GUESSED = "#FF1744", "#B26A00"


class Episode(NamedTuple):
    """One scene as one run walked around it."""

    scene: Scene
    pictures: list[np.ndarray]  # of the views taken
    seen: list[int]  # goal cubes to be seen in each
    actions: list[str]  # what followed each
    guess: int
    founded: bool  # whether every goal cube was to be seen in some view


def save_play(runs: Sequence[Run], images: int, seed: int, output: Path) -> list[Path]:
    """Write the sheet, and the animation under the same name with .gif; returns both."""
    check_format(output)
    episodes = play_all(runs, images, seed)
    moving = output.with_suffix(".gif")
    paths = [save_figure(draw_sheet(runs, episodes), output)]
    save_film(runs, episodes, moving)
    return [*paths, moving]


def case_study(runs: Sequence[Run], images: int, seed: int) -> Figure:
    """The sheet (fig:object-counting-cases): scenes drawn at random, not chosen."""
    return draw_sheet(runs, play_all(runs, images, seed))


def play_all(runs: Sequence[Run], images: int, seed: int) -> list[list[Episode]]:
    """How each run walks around the same scenes."""
    configs = [CountingConfig.from_settings(run.settings) for run in runs]
    splits = [load_split(config, "eval") for config in configs]
    if len({split.sha256 for split in splits}) > 1:
        raise UserError("runs with different evaluation scenes cannot be compared")
    smallest = min(map(len, splits))
    if images > smallest:
        raise UserError(f"images must be at most {smallest}, the evaluation scenes; got {images}")
    scenes = np.sort(stream(seed, "evaluation").choice(smallest, images, replace=False))
    with Painter() as painter:
        return [
            episodes_of(run, config, split, scenes, painter)
            for run, config, split in zip(runs, configs, splits, strict=True)
        ]


def episodes_of(
    run: Run, config: CountingConfig, split: Split, scenes: np.ndarray, painter: Painter
) -> list[Episode]:
    """How a run walks around some scenes, with pictures as large as they are painted."""
    device = device_to_look(config.device)
    model = restored_model(config, run.last_checkpoint().arrays, device)
    draws = draw_evaluation(config, config.seed, scenes)
    trajectory = rollout(model, split, draws, greedy=True)
    guesses = trajectory.log_count.argmax(dim=1).tolist()
    founded = saw_all_goals(split.scenes, trajectory)
    episodes = []
    for n, number in enumerate(scenes.tolist()):
        scene = split.scenes.scene(number)
        length = int(trajectory.lengths[n])
        views = trajectory.views[:length, n].tolist()
        actions = [ACTION_NAMES[a] for a in trajectory.actions[:length, n].tolist()]
        painter.place(scene)
        goals = split.scenes.is_goal[number]
        visible = split.scenes.seen[number] & goals
        episodes.append(
            Episode(
                scene,
                [painter.paint(view) for view in views],
                [int(visible[view].sum()) for view in views],
                actions + ["end"] * (length - len(actions)),
                guesses[n],
                bool(founded[n]),
            )
        )
    return episodes


def draw_sheet(runs: Sequence[Run], episodes: Sequence[Sequence[Episode]]) -> Figure:
    """A row for each walk; walks of all runs around the same scene stand together."""
    walks = [(run, walk) for same in zip(*episodes, strict=True)
             for run, walk in zip(runs, same, strict=True)]  # fmt: skip
    columns = max(len(walk.pictures) for _, walk in walks)
    figure, panels = plt.subplots(
        len(walks), columns + 1, figsize=(1.75 * (columns + 1), 1.95 * len(walks)),
        squeeze=False, layout="constrained",
    )  # fmt: skip
    for line, (run, walk) in zip(panels, walks, strict=True):
        tell(line[0], run, walk)
        for n, axes in enumerate(line[1:]):
            if n < len(walk.pictures):
                draw_view(axes, walk, n)
            else:
                axes.remove()
    return figure


def tell(axes: Axes, run: Run, walk: Episode) -> None:
    """Who walked, what was to be counted, and what came of it."""
    axes.axis("off")
    asked, said = f"{GOALS[walk.scene.goal]}s:", f"said {walk.guess}, true {walk.scene.label}"
    text = f"{name_of(run)}\n\n{asked}\n{said}"
    verdict, colour = verdict_of(walk)
    axes.text(0.0, 0.62, text, fontsize=7.5, va="center", transform=axes.transAxes)
    axes.text(0.0, 0.2, verdict, fontsize=7.5, color=colour, transform=axes.transAxes)


def name_of(run: Run) -> str:
    walker = run.settings["walker"]
    return run.settings["reward"] if walker == "learned" else f"{walker} (yardstick)"


def verdict_of(walk: Episode) -> tuple[str, str]:
    if walk.guess != walk.scene.label:
        return "wrong", WRONG
    return ("right, all seen", "black") if walk.founded else ("right, not all seen", GUESSED)


def draw_view(axes: Axes, walk: Episode, n: int) -> None:
    """A view, the goal cubes it shows above and the action that follows below."""
    axes.imshow(walk.pictures[n])
    axes.set(xticks=[], yticks=[])
    axes.set_title(f"{walk.seen[n]} of {walk.scene.label} to be seen", fontsize=6, pad=2)
    axes.set_xlabel(walk.actions[n], fontsize=7.5, labelpad=2)


def save_film(runs: Sequence[Run], episodes: Sequence[Sequence[Episode]], path: Path) -> None:
    """A row for each run, a column for each scene, all walking at the same time."""
    rows, columns = len(runs), len(episodes[0])
    figure, panels = plt.subplots(
        rows, columns, figsize=(1.9 * columns, 2.4 * rows), squeeze=False, layout="constrained"
    )
    longest = max(len(walk.pictures) for row in episodes for walk in row)

    def draw(frame: int) -> list:
        for run, line, row in zip(runs, panels, episodes, strict=True):
            for axes, walk in zip(line, row, strict=True):
                axes.clear()
                n = min(frame, len(walk.pictures) - 1)
                draw_view(axes, walk, n)
                said = f"said {walk.guess}" if frame >= len(walk.pictures) else "said ?"
                truth = f"{GOALS[walk.scene.goal]}s: {said}, true {walk.scene.label}"
                axes.set_title(truth, fontsize=6, pad=2)
            line[0].set_ylabel(name_of(run), fontsize=7)
        return []

    animation = FuncAnimation(figure, draw, frames=longest + 3)
    animation.save(path, writer=PillowWriter(fps=2), dpi=80)
    plt.close(figure)
