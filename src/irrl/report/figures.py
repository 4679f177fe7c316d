"""The paper's figures by name: what each needs, and how it is drawn from run folders.

Above the tasks, as the command line is: a figure of a task is drawn in that task's folder.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from irrl.errors import UserError
from irrl.noise import DeltaNoise
from irrl.analysis.plots import G_FUNCTIONS, curve_panels, noise_theory, reward_shapes
from irrl.analysis.compare import group_by_reward, is_yardstick, learning_curves, require_same_version
from irrl.rewards import REWARDS
from irrl.runs.run import Run
from irrl.tasks import MERIT, config_class, task_module
from irrl.tasks.digits.config import MODELS


class Request(NamedTuple):
    """What was asked for beside the name of a figure."""

    runs: list[Run]
    oracle: Path | None = None
    seed: int = 0


class Entry(NamedTuple):
    label: str  # in the paper
    needs: str
    draw: Callable[[Request], Figure]
    of_runs: bool = True


Groups = dict[str, list[Run]]


def task_of(runs: Sequence[Run], *allowed: str) -> str:
    """The one task of some runs, if it is one of those that a figure is made for."""
    tasks = sorted({run.task for run in runs})
    if len(tasks) > 1:
        raise UserError(f"runs of different tasks in one figure: {', '.join(tasks)}; draw each")
    if allowed and tasks[0] not in allowed:
        raise UserError(f"this figure is of {' or '.join(allowed)}, not of {tasks[0]}")
    require_same_version(runs)
    return tasks[0]


def alike(runs: Sequence[Run]) -> Groups:
    """Learned runs by reward, if they compare."""
    learned = [run for run in runs if not is_yardstick(run)]
    if not learned:
        raise UserError("there are only yardsticks, no runs that learned")
    task_module(learned[0].task, "figure").check_alike(learned)
    return group_by_reward(learned)


def draw(panels: dict[str, Groups], task: str) -> Figure:
    merit, step = MERIT[task], config_class(task).length
    curves = {
        title: {name: learning_curves(group, merit) for name, group in groups.items()}
        for title, groups in panels.items()
    }
    return curve_panels(curves, step, task_module(task, "figure").PANELS[merit])


# --- learning curves ---


def by_leak(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Runs whose reward carries a gradient into the discriminator apart from the others.

    A reward that has no gradient, such as accuracy, is the same in both.
    """
    leaked = [run for run in runs if run.settings.get("leak_reward_gradient")]
    others = [run for run in runs if run not in leaked]
    if not leaked:
        return {"": others}
    both = [run for run in others if REWARDS[run.settings["reward"]].shape is None]
    apart = {"": others} if len(others) > len(both) else {}
    return {**apart, "leaked": [*leaked, *both]}


def reward_comparison(request: Request) -> Figure:
    task = task_of(request.runs)
    if task != "digits":
        return draw({"": alike(request.runs)}, task)
    panels: Groups = {}
    for model in MODELS:
        of_model = [run for run in request.runs if run.settings["model"] == model]
        for how, runs in by_leak(of_model).items():
            if runs:
                panels[", ".join(filter(None, [model.upper(), how]))] = runs
    return draw({title: alike(runs) for title, runs in panels.items()}, task)


def oracle_reward(request: Request) -> Figure:
    task = task_of(request.runs, "digits", "counting")
    paid = [run for run in request.runs if run.settings.get("oracle")]
    online = [run for run in request.runs if run not in paid and not is_yardstick(run)]
    if not paid or not online:
        raise UserError("oracle-reward needs runs with --oracle and the same without")
    panels = {
        ", ".join(filter(None, [how, "dotted by oracle"])): alike([*runs, *paid])
        for how, runs in by_leak(online).items()
    }
    return draw(panels, task)


def clipping(request: Request) -> Figure:
    task = task_of(request.runs)
    groups = alike(request.runs)
    pairs = [name for name in groups if f"clipped-{name}" in groups]
    if not pairs:
        raise UserError(
            "clipping needs runs of a reward and of its clipped form, such as linear and "
            f"clipped-linear; there are {', '.join(groups)}"
        )
    shown = {n: groups[n] for name in pairs for n in (name, f"clipped-{name}")}
    return draw({"dashed: not clipped": shown}, task)


def g_functions(request: Request) -> Figure:
    task = task_of(request.runs)
    groups = {n: g for n, g in alike(request.runs).items() if n in REWARDS and REWARDS[n].shape}
    if len(groups) < 2:
        raise UserError(
            "g-functions needs runs of two rewards or more that are functions of the posterior, "
            "such as clipped-linear and clipped-power-2"
        )
    return draw({"": groups}, task)


# --- what policies and discriminators do ---


def first_seeds(runs: Sequence[Run]) -> list[Run]:
    """One run of each reward and, of digits, of each model."""
    kinds: dict[tuple, Run] = {}
    for run in sorted(runs, key=lambda run: run.settings["seed"]):
        own = (run.settings.get(key) for key in ("model", "reward", "oracle", "walker"))
        kinds.setdefault(tuple(own), run)
    return list(kinds.values())


def occupancy(request: Request) -> Figure:
    task = task_of(request.runs, "skills")
    return task_module(task, "figure").occupancy_figure(request.runs)


def noise(request: Request) -> Figure:
    task = task_of(request.runs, "digits")
    if request.oracle is None:
        raise UserError("noise needs --oracle DIR, a converged run beside which noise is measured")
    module: Any = task_module(task, "measure")
    chosen = {run.settings["reward"]: run for run in reversed(first_seeds(request.runs))}
    found = {
        name: module.measure(run, request.oracle, images=1000, epochs=4)
        for name, run in sorted(chosen.items())
    }
    return module.violin_figure(found)


def case_study(request: Request, images: int | None = None) -> Figure:
    task = task_of(request.runs, "digits", "counting")
    several = {"digits": 8, "counting": 2}
    play = task_module(task, "play")
    return play.case_study(first_seeds(request.runs), images or several[task], request.seed)


FIGURES = {
    "reward-comparison": Entry(
        "fig:digit-recognition-baseline-comparison, fig:skill-discovery-baseline-comparison, "
        "fig:object-counting-baseline-comparison",
        "runs of one task, several rewards; of digits both models, and runs whose reward leaks a "
        "gradient, if given",
        reward_comparison,
    ),
    "oracle-reward": Entry(
        "fig:digit-recognition-reward-hacking-ram (and -ram-acc-and-log)",
        "digit or counting runs with --oracle, and the same without; a panel more for runs whose "
        "reward leaks a gradient",
        oracle_reward,
    ),
    "noise": Entry(
        "fig:noisy-visualization-log, -acc, -linear",
        "digit runs with their checkpoints, and --oracle DIR",
        noise,
    ),
    "clipping": Entry(
        "fig:skill-discovery-reward-clipping",
        "runs of one task: linear and clipped-linear, log and clipped-log",
        clipping,
    ),
    "reward-shapes": Entry(
        "fig:g-functions",
        "no runs",
        lambda request: reward_shapes([f"clipped-{name}" for name in G_FUNCTIONS], 0.1),
        of_runs=False,
    ),
    "g-functions": Entry(
        "fig:digit-recognition-g-functions-no-reward-hacking",
        "runs of one task, several functions of the posterior",
        g_functions,
    ),
    "occupancy": Entry(
        "fig:skill-discovery-state-occupancy",
        "skill runs with their checkpoints",
        occupancy,
    ),
    "case-study": Entry(
        "fig:case-study-digit-recognition, fig:object-counting-cases",
        "digit or counting runs with their checkpoints, and the data",
        case_study,
    ),
    "noise-theory": Entry(
        "Eq. 5 and 6 (not a figure there)",
        "no runs",
        lambda request: noise_theory(
            ("log", "root-2", "linear", "power-2", "power-6"), DeltaNoise("normal", 0.05), 0.1
        ),
        of_runs=False,
    ),
}
