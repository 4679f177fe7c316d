"""Walks around the table, as a sheet and as an animation."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.animation import FuncAnimation
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from irrl.errors import UserError
from irrl.nn.models import device_to_look
from irrl.runs.seeding import stream
from irrl.tasks.cases import sample_cases
from irrl.tasks.contract import Played
from irrl.tasks.counting.data import Split, load_splits
from irrl.tasks.counting.evaluate import saw_all_goals
from irrl.tasks.counting.render import Renderer
from irrl.tasks.counting.rollout import Trajectory, rollout, sample_evaluation
from irrl.tasks.counting.scene import GOALS, Scene
from irrl.tasks.counting.state import CountingRun, restored_model

ACTION_NAMES = ("right →", "← left", "stop")
WRONG, GUESSED = "#FF1744", "#B26A00"
SCENES_IN_FIGURES = 2
LOOKED_AT = 256  # scenes among which agents may differ
FRAMES_PER_SECOND = 2
LAST_FRAMES = 3  # in which the answer stays


class Walk(NamedTuple):
    """One scene as one run walked around it."""

    scene: Scene
    pictures: list[np.ndarray]  # of the views taken
    seen: list[int]  # goal cubes to be seen in each
    actions: list[str]  # what followed each
    answer: int
    founded: bool  # whether every goal cube was to be seen in some view


# --- what the contract of a task asks for ---


def play(runs: Sequence[CountingRun], episodes: int, seed: int) -> Played:
    """How each run walks around the same scenes, sampled by the seed."""
    splits = splits_of(runs)
    smallest = min(map(len, splits))
    if episodes > smallest:
        raise UserError(
            f"episodes must be at most {smallest}, the evaluation scenes; got {episodes}"
        )
    scenes = np.sort(stream(seed, "evaluation").choice(smallest, episodes, replace=False))
    walks = pictured(splits, trajectories_of(runs, splits, scenes), range(episodes))
    return Played(plot_sheet(runs, walks), animate(runs, walks), FRAMES_PER_SECOND)


def case_study(runs: Sequence[CountingRun], seed: int) -> Figure:
    """The sheet (fig:object-counting-cases), of scenes on which agents that learned differ."""
    runs = [run for run in runs if run.config.learns_policy] or runs
    splits = splits_of(runs)
    scenes = np.arange(min(LOOKED_AT, *map(len, splits)))
    trajectories = trajectories_of(runs, splits, scenes)
    answers = [trajectory.log_count.argmax(dim=1).tolist() for trajectory in trajectories]
    chosen, how = sample_cases(answers, SCENES_IN_FIGURES, seed, "scenes")
    return plot_sheet(runs, pictured(splits, trajectories, chosen), how)


def report_picture(runs: Sequence[CountingRun]) -> Figure:
    return case_study(runs, seed=0)


# --- walking ---


def splits_of(runs: Sequence[CountingRun]) -> list[Split]:
    """The evaluation scenes of some runs, which must be the same."""
    splits = load_splits([run.config for run in runs], "eval")
    if len({split.sha256 for split in splits}) > 1:
        raise UserError("runs with different evaluation scenes cannot be compared")
    return splits


def trajectories_of(
    runs: Sequence[CountingRun], splits: Sequence[Split], scenes: np.ndarray
) -> list[Trajectory]:
    """How each run walks around the same scenes."""
    found = []
    for run, split in zip(runs, splits, strict=True):
        config = run.config
        model = restored_model(config, run.last_checkpoint().arrays, device_to_look(config.device))
        inputs = sample_evaluation(config, config.seed, scenes)
        found.append(rollout(model, split, inputs, greedy=True))
    return found


def pictured(
    splits: Sequence[Split], trajectories: Sequence[Trajectory], chosen: Sequence[int]
) -> list[list[Walk]]:
    """Some walks of each run, with pictures as large as they are rendered."""
    with Renderer() as renderer:
        return [
            walks_of(split, trajectory, chosen, renderer)
            for split, trajectory in zip(splits, trajectories, strict=True)
        ]


def walks_of(
    split: Split, trajectory: Trajectory, chosen: Sequence[int], renderer: Renderer
) -> list[Walk]:
    answers = trajectory.log_count.argmax(dim=1).tolist()
    founded = saw_all_goals(split.scenes, trajectory)
    walks = []
    for n in chosen:
        number = int(trajectory.scenes[n])
        scene = split.scenes.scene(number)
        length = int(trajectory.lengths[n])
        views = trajectory.views[:length, n].tolist()
        actions = [ACTION_NAMES[a] for a in trajectory.actions[:length, n].tolist()]
        renderer.place(scene)
        visible = split.scenes.seen[number] & split.scenes.is_goal[number]
        walks.append(
            Walk(
                scene,
                [renderer.render(view) for view in views],
                [int(visible[view].sum()) for view in views],
                actions + ["end"] * (length - len(actions)),
                answers[n],
                bool(founded[n]),
            )
        )
    return walks


# --- plotting ---


def plot_sheet(
    runs: Sequence[CountingRun], walks: Sequence[Sequence[Walk]], title: str = ""
) -> Figure:
    """A row for each walk; walks of all runs around the same scene stand together."""
    rows = [
        (run, walk)
        for around_one in zip(*walks, strict=True)
        for run, walk in zip(runs, around_one, strict=True)
    ]
    columns = 1 + max(len(walk.pictures) for _, walk in rows)
    figure = Figure(figsize=(1.75 * columns, 1.95 * len(rows)), layout="constrained")
    panels = figure.subplots(len(rows), columns, squeeze=False)
    for line, (run, walk) in zip(panels, rows, strict=True):
        plot_answer(line[0], run, walk)
        for n, axes in enumerate(line[1:]):
            if n < len(walk.pictures):
                plot_view(axes, walk, n)
            else:
                axes.remove()
    figure.suptitle(title, fontsize=9)
    return figure


def plot_answer(axes: Axes, run: CountingRun, walk: Walk) -> None:
    """Which run it was, what was to be counted, and what came of it."""
    axes.axis("off")
    asked, said = f"{GOALS[walk.scene.goal]}s:", f"said {walk.answer}, true {walk.scene.label}"
    text = f"{name_of(run)}\n\n{asked}\n{said}"
    verdict, colour = verdict_of(walk)
    axes.text(0.0, 0.62, text, fontsize=7.5, va="center", transform=axes.transAxes)
    axes.text(0.0, 0.2, verdict, fontsize=7.5, color=colour, transform=axes.transAxes)


def name_of(run: CountingRun) -> str:
    if run.config.learns_policy:
        return run.config.reward
    return f"{run.config.behaviour_policy} (scripted baseline)"


def verdict_of(walk: Walk) -> tuple[str, str]:
    if walk.answer != walk.scene.label:
        return "wrong", WRONG
    return ("right, all seen", "black") if walk.founded else ("right, not all seen", GUESSED)


def plot_view(axes: Axes, walk: Walk, n: int) -> None:
    """A view, the goal cubes it shows above and the action that follows below."""
    axes.imshow(walk.pictures[n])
    axes.set(xticks=[], yticks=[])
    axes.set_title(f"{walk.seen[n]} of {walk.scene.label} to be seen", fontsize=6, pad=2)
    axes.set_xlabel(walk.actions[n], fontsize=7.5, labelpad=2)


def animate(runs: Sequence[CountingRun], walks: Sequence[Sequence[Walk]]) -> FuncAnimation:
    """A row for each run, a column for each scene, all walking at the same time."""
    rows, columns = len(runs), len(walks[0])
    figure = Figure(figsize=(1.9 * columns, 2.4 * rows), layout="constrained")
    FigureCanvasAgg(figure)  # an animation wants a canvas before it is saved
    panels = figure.subplots(rows, columns, squeeze=False)
    longest = max(len(walk.pictures) for row in walks for walk in row)

    def plot_frame(frame: int) -> list:
        for run, line, row in zip(runs, panels, walks, strict=True):
            for axes, walk in zip(line, row, strict=True):
                axes.clear()
                plot_view(axes, walk, min(frame, len(walk.pictures) - 1))
                said = f"said {walk.answer}" if frame >= len(walk.pictures) else "said ?"
                truth = f"{GOALS[walk.scene.goal]}s: {said}, true {walk.scene.label}"
                axes.set_title(truth, fontsize=6, pad=2)
            line[0].set_ylabel(name_of(run), fontsize=7)
        return []

    return FuncAnimation(figure, plot_frame, frames=longest + LAST_FRAMES)
