"""The tasks. Each is a folder with a ``config.py`` and a ``train.py``.

``train.py`` has ``train(config, run) -> summary`` and reads as the loop of the paper:
rollout, reward, policy, discriminator.
"""

import dataclasses
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

from irrl.runs.config import Config
from irrl.nn.distributed import current_world
from irrl.errors import UserError
from irrl.presets import DEFAULT_PRESET, PRESETS
from irrl.errors import unknown_name
from irrl.runs.run import Run
from irrl.tasks.counting.config import CountingConfig
from irrl.tasks.digits.config import DigitsConfig
from irrl.tasks.skills.config import SkillsConfig

CONFIGS: dict[str, type[Config]] = {
    "skills": SkillsConfig,
    "digits": DigitsConfig,
    "counting": CountingConfig,
}

MERIT = {"skills": "n_skills", "digits": "accuracy", "counting": "accuracy"}
"""The figure of merit of each task, as it is called in its metrics."""


def make_config(task: str, preset: str = DEFAULT_PRESET, **settings: Any) -> Config:
    """The configuration of a preset, with some settings changed."""
    cls = config_class(task)
    if preset not in PRESETS[task]:
        raise UserError(unknown_name("preset", preset, PRESETS[task]))
    return cls.from_settings({**PRESETS[task][preset].settings, **settings})


def open_run(folder: str | Path) -> Run:
    """Open a run whose configuration is one; settings that are missing have their defaults."""
    run = Run.open(folder)
    run.settings = dataclasses.asdict(config_of(run))
    return run


def config_of(run: Run) -> Config:
    """The configuration a run was made with."""
    return config_class(run.task).from_settings(run.settings)


def config_class(task: str) -> type[Config]:
    if task not in CONFIGS:
        raise UserError(unknown_name("task", task, CONFIGS))
    return CONFIGS[task]


def task_module(task: str, name: str) -> Any:
    """A module of a task, or one line that says what it needs."""
    try:
        return import_module(f"irrl.tasks.{task}.{name}")
    except ModuleNotFoundError as error:
        if error.name == f"irrl.tasks.{task}.{name}":
            raise UserError(f"{task} has nothing to {name}") from None
        if error.name == "torch":
            raise UserError(f"{task} needs PyTorch: pip install 'irrl[torch]'") from None
        raise


def check(config: Config) -> None:
    """Raise where training could not begin: data, device or oracle missing. Writes nothing."""
    task_module(config.task, "train").check(config)
    current_world().wait_for_all()


def train(run: Run) -> dict[str, Any]:
    """Train a run from where it stands to its end; a finished run is left as it is."""
    world = current_world()
    if world.once(lambda: run.is_finished):
        return world.once(run.summary)
    config = config_of(run)
    with run.exclusive() if world.is_first else nullcontext():
        return task_module(run.task, "train").train(config, run)


def evaluate(run: Run, changed: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
    """Step and metrics of the last checkpoint of a run. Reads only.

    ``changed`` has settings of the test that differ from those of the run.
    """
    config = dataclasses.replace(config_of(run), **(changed or {}))
    checkpoint = run.last_checkpoint()
    module = task_module(run.task, "evaluate")
    return checkpoint.step, module.evaluate_arrays(config, checkpoint.arrays)
