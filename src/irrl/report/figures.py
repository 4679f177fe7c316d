"""The paper's figures by name: what each needs, and how it is drawn from run folders.

Those that any task can have are here; a figure of one task is drawn in that task's folder.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from irrl.analysis.compare import (
    ORACLE,
    group_by_reward,
    is_baseline,
    label_of,
    learning_curves,
    require_comparable,
    require_same_version,
)
from irrl.analysis.comparison_plots import plot_panels
from irrl.analysis.noise import plot_violins
from irrl.analysis.plots import G_FUNCTIONS
from irrl.analysis.ranges import range_in
from irrl.analysis.reward_plots import THEORY, plot_noise_theory, plot_reward_shapes
from irrl.density_rewards import DENSITY_REWARDS
from irrl.errors import UserError, unknown_name
from irrl.noise import DeltaNoise
from irrl.rewards import REWARDS, reward
from irrl.runs.run import Run
from irrl.tasks import find_task, one_task
from irrl.tasks.contract import Task
from irrl.tasks.registry import all_tasks


class Request(NamedTuple):
    """What was asked for beside the name of a figure."""

    runs: list[Run]
    oracle: Path | None = None
    seed: int = 0


class Entry(NamedTuple):
    shows: str
    label: str  # number and label in the paper
    needs: str
    plot: Callable[[Request], Figure]
    of_runs: bool = True


Groups = dict[str, list[Run]]


def learned(runs: Sequence[Run], task: Task) -> Groups:
    """Learned runs by reward, if they compare."""
    found = [run for run in runs if not is_baseline(run)]
    if not found:
        raise UserError("there are only scripted baselines, no runs that learned")
    require_comparable(found, task)
    return group_by_reward(found)


def of_one_task(runs: list[Run]) -> Task:
    """The task of some runs, if they compare as far as task and version go."""
    task = one_task(runs)
    require_same_version(runs)
    return task


def plot_groups(panels: dict[str, Groups], task: Task) -> Figure:
    primary = task.primary
    curves = {
        title: {name: learning_curves(group, primary.name) for name, group in groups.items()}
        for title, groups in panels.items()
    }
    firsts = [group[0] for groups in panels.values() for group in groups.values()]
    ranges = [range_in(task, run.config, primary.name) for run in firsts]
    bounds = min(low for low, _ in ranges), max(high for _, high in ranges)
    return plot_panels(curves, task.config.length, primary, bounds)


# --- learning curves ---


def reward_comparison(request: Request) -> Figure:
    task = of_one_task(request.runs)
    panels = task.panels_of(request.runs)
    return plot_groups({title: learned(runs, task) for title, runs in panels.items()}, task)


def oracle_reward(request: Request) -> Figure:
    task = of_one_task(request.runs)
    judged = [run for run in request.runs if run.settings.get("oracle")]
    online = [run for run in request.runs if run not in judged and not is_baseline(run)]
    if not judged or not online:
        raise UserError("oracle-reward needs runs with --oracle and the same without")
    panels = {}
    for title, runs in task.panels_of(online).items():
        variant = task.variant(runs[0].settings)
        same = [run for run in judged if task.variant(run.settings) == variant]
        panels[", ".join(filter(None, [title, "dotted by oracle"]))] = learned([*runs, *same], task)
    return plot_groups(panels, task)


def clipping(request: Request) -> Figure:
    task = of_one_task(request.runs)
    groups = learned(request.runs, task)
    pairs = [name for name in groups if f"clipped-{name}" in groups]
    if not pairs:
        raise UserError(
            "clipping needs runs of a reward and of its clipped form, such as linear and "
            f"clipped-linear; there are {', '.join(groups)}"
        )
    shown = {n: groups[n] for name in pairs for n in (name, f"clipped-{name}")}
    return plot_groups({"dashed: not clipped": shown}, task)


def g_functions(request: Request) -> Figure:
    task = of_one_task(request.runs)
    found = learned(request.runs, task)
    groups = {n: g for n, g in found.items() if is_function_of_posterior(n)}
    if len(groups) < 2:
        raise UserError(
            "g-functions needs runs of two rewards or more that are functions of the posterior, "
            "such as clipped-linear and clipped-power-2"
        )
    return plot_groups({"": groups}, task)


def is_function_of_posterior(label: str) -> bool:
    if label in DENSITY_REWARDS and label not in REWARDS:
        return False
    return not label.endswith(ORACLE) and reward(label).of_posterior_alone


# --- what policies and discriminators do ---


def first_seeds(runs: Sequence[Run]) -> list[Run]:
    """One run of each variant of the task and of each reward."""
    kinds: dict[tuple[str, str], Run] = {}
    for run in sorted(runs, key=lambda run: run.settings["seed"]):
        kinds.setdefault((find_task(run.task).variant(run.settings), label_of(run)), run)
    return list(kinds.values())


def noise(request: Request) -> Figure:
    task = of_one_task(request.runs)
    if task.measure_noise is None:
        raise UserError(f"noise cannot be measured on runs of {task.name}")
    if request.oracle is None:
        raise UserError("noise needs --oracle DIR, a converged run beside which noise is measured")
    chosen = {run.settings["reward"]: run for run in reversed(first_seeds(request.runs))}
    found = {
        name: task.measure_noise(run, request.oracle, 1000, 4)
        for name, run in sorted(chosen.items())
    }
    return plot_violins(found, task.config.length)


GENERAL = {
    "reward-comparison": Entry(
        "learning curves of several rewards",
        "",
        "runs of one task, several rewards; a panel for each of its variants",
        reward_comparison,
    ),
    "oracle-reward": Entry(
        "learning curves by the discriminator in training and by a converged one",
        "",
        "runs with --oracle, and the same without",
        oracle_reward,
    ),
    "noise": Entry(
        "noise of the discriminator during training, as violins",
        "",
        "runs with their checkpoints, and --oracle DIR",
        noise,
    ),
    "clipping": Entry(
        "learning curves of rewards with and without clipping",
        "",
        "runs of one task: linear and clipped-linear, log and clipped-log",
        clipping,
    ),
    "reward-shapes": Entry(
        "rewards as functions of the posterior",
        "Figure 12, fig:g-functions",
        "no runs",
        lambda request: plot_reward_shapes([f"clipped-{name}" for name in G_FUNCTIONS], 0.1),
        of_runs=False,
    ),
    "g-functions": Entry(
        "learning curves of several functions of the posterior",
        "",
        "runs of one task, several functions of the posterior",
        g_functions,
    ),
    "noise-theory": Entry(
        "bias and std of rewards under noise, exact and to second order",
        "no figure there; Eq. 5 and 6",
        "no runs",
        lambda request: plot_noise_theory(THEORY, DeltaNoise("normal", 0.05), 0.1),
        of_runs=False,
    ),
}


def all_figures() -> dict[str, Entry]:
    """Every figure: those of any task with the tasks' labels, and those of single tasks."""
    tasks = all_tasks().values()
    found = {
        name: entry._replace(label=entry.label or _labels(name, tasks))
        for name, entry in GENERAL.items()
    }
    for name in dict.fromkeys(name for task in tasks for name in task.figures):
        able = [task for task in tasks if name in task.figures]
        found[name] = Entry(
            next((task.figures[name].shows for task in able if task.figures[name].shows), name),
            ", ".join(task.figures[name].paper for task in able),
            "; or ".join(task.figures[name].needs for task in able),
            lambda request, name=name: figure_of_task(name, request),  # type: ignore[misc]
        )
    return found


def _labels(name: str, tasks: Iterable[Task]) -> str:
    return ", ".join(task.paper_labels[name] for task in tasks if name in task.paper_labels)


def figure_of_task(name: str, request: Request) -> Figure:
    """A figure that only some tasks can draw."""
    task = of_one_task(request.runs)
    if name not in task.figures:
        able = [t.name for t in all_tasks().values() if name in t.figures]
        raise UserError(f"this figure is of {' or '.join(able)}, not of {task.name}")
    return task.figures[name].plot(first_seeds(request.runs), request.seed)


def find_figure(name: str) -> Entry:
    figures = all_figures()
    if name not in figures:
        raise UserError(unknown_name("figure", name, figures))
    return figures[name]
