"""Tasks: found by entry point, so that anybody's package can add one; and what is done with them.

`irrl.tasks.contract` says what a task is. Each of ours is a folder whose ``train.py`` reads as the
loop of the paper: rollout, reward, policy, discriminator.
"""

import dataclasses
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from irrl.errors import UserError, unknown_name
from irrl.nn.distributed import current_world
from irrl.runs.checkpoint import Checkpoint
from irrl.runs.config import Config
from irrl.runs.folder import abandon
from irrl.runs.reading import Row
from irrl.runs.run import Run, check_empty, is_finished, is_run, read_settings, run_folders
from irrl.tasks.contract import DEFAULT_PRESET, Metrics, Task
from irrl.tasks.registry import explain_missing, find_task, package_of

# --- configurations ---


def make_config(task: str, preset: str = DEFAULT_PRESET, **settings: Any) -> Config:
    """The configuration of a preset, with some settings changed."""
    found = find_task(task)
    if preset not in found.presets:
        raise UserError(unknown_name("preset", preset, found.presets))
    return found.config.from_settings({**found.presets[preset].settings, **settings})


def task_of(config: Config) -> Task:
    """The task of a configuration, as its variant has it."""
    return find_task(config.task).for_variant(config.settings())


# --- run folders ---


def create_run(folder: str | Path, config: Config) -> Run:
    """Start a new run in a folder that is empty or not there yet."""
    return Run.create(folder, config, package_of(config.task))


def open_run(folder: str | Path) -> Run:
    """Open a run that exists; a setting that is younger than the run has its default."""
    task, settings = read_settings(folder)
    explain_missing(task, Path(folder))
    return Run(folder, find_task(task).config.from_settings(settings))


def open_runs(paths: list[str]) -> list[Run]:
    """All runs at or below some folders, in order of their names."""
    return [open_run(folder) for folder in run_folders(paths)]


def sound_runs(paths: list[str], finished: bool = False) -> tuple[list[Run], list[str]]:
    """Those of them that can be shown, each once, and a line about each of the others.

    Their files are read, so that what is damaged is told here, and does not spoil the rest. Each
    of the folders must have a run that can be shown, a ``finished`` one if that is asked for.
    """
    runs: dict[Path, Run] = {}
    left_out: list[str] = []
    for path in paths:
        folders = run_folders([path])
        if finished and not any(map(is_finished, folders)):
            raise UserError(f"there is no finished run in {path}; finish one, or leave it out")
        found = []
        for folder in folders:
            try:
                if finished and not is_finished(folder):
                    raise UserError(f"{folder} is not finished")
                found.append(checked_run(folder))
            except UserError as error:
                left_out.append(str(error))
        if not found:
            raise UserError(left_out[-1])
        runs |= {run.folder.resolve(): run for run in found}
    for line in left_out:
        print(f"irrl: left out: {line}", file=sys.stderr)
    return list(runs.values()), left_out


def checked_run(folder: str | Path) -> Run:
    """A run whose configuration, metrics and summary could be read."""
    run = open_run(folder)
    task = find_task(run.task).for_variant(run.settings)
    require_panels(run, task, run.rows())
    if run.is_finished:
        always = set(task.all_columns()) - set(task.optional)
        for metric in always | {task.primary.name}:
            run.final(metric)
    return run


def require_panels(run: Run, task: Task, rows: list[Row]) -> None:
    """Raise if a row of the metrics lacks what is drawn of a run."""
    for row in rows:
        for metric in task.all_panels():
            if metric not in row:
                raise UserError(f"{run.folder} lacks {metric} in its metrics at step {row['step']}")


def check_folder(folder: str | Path, config: Config) -> None:
    """Raise where a run can neither be started nor gone on with in a folder. Writes nothing."""
    if not is_run(folder):
        return check_empty(Path(folder))
    there, wanted = open_run(folder).config.to_json(), config.to_json()
    changed = [key for key in wanted if there.get(key) != wanted[key]]
    if changed:
        raise UserError(
            f"{folder} already holds a run with another {', '.join(changed)}; choose another folder"
        )
    return None


def one_task(runs: list[Run]) -> Task:
    """The task of some runs, which must be one."""
    names = sorted({run.task for run in runs})
    if len(names) != 1:
        raise UserError(f"runs of different tasks do not compare: {', '.join(names)}; take each")
    return find_task(names[0]).for_variant(runs[0].settings)


# --- training and evaluating ---


def check(config: Config) -> None:
    """Raise where training could not begin for want of data, device or oracle. Writes nothing."""
    find_task(config.task).check(config)
    current_world().wait_for_all()


def begin(folder: str | Path, config: Config) -> tuple[Run, Any]:
    """Prepare a new run, then make its folder: what cannot begin leaves nothing behind."""
    prepared = find_task(config.task).prepare(config, None)
    world = current_world()
    world.wait_for_all()
    return world.once(lambda: create_run(folder, config)), prepared


def train(run: Run, prepared: Any = None) -> Metrics:
    """Train a run from where it stands to its end; a finished run is left as it is.

    ``prepared`` is what `begin` gave for a new run: it need not be prepared twice.
    """
    task, world = find_task(run.task).for_variant(run.settings), current_world()
    if world.once(lambda: run.is_finished):
        return world.once(run.summary)
    with run.exclusive() if world.is_first else nullcontext():
        checkpoint = world.once(lambda: _resumable(run, task))
        is_new = prepared is not None and checkpoint is None
        if not is_new:
            prepared = task.prepare(run.config, checkpoint)
            world.wait_for_all()
        world.once(lambda: run.go_back(checkpoint))
        try:
            return task.train(run, prepared)
        except Exception:
            if is_new and world.is_first:
                abandon(run.folder)
            raise


def _resumable(run: Run, task: Task) -> Checkpoint | None:
    checkpoint = run.resumable()
    if checkpoint is not None:
        require_panels(run, task, run.rows(complete=False))
    return checkpoint


def train_in(folder: str | Path, config: Config) -> Metrics:
    """Start a run in a folder and train it, or go on with the one of this configuration there."""
    check_folder(folder, config)
    if is_run(folder):
        return train(open_run(folder))
    return train(*begin(folder, config))


def evaluate(run: Run, changed: dict[str, Any] | None = None) -> tuple[int, Metrics]:
    """Step and metrics of the last checkpoint of a run. Reads only.

    ``changed`` has settings of the test that differ from those of the run.
    """
    config = dataclasses.replace(run.config, **(changed or {}))
    checkpoint = run.last_checkpoint()
    return checkpoint.step, find_task(run.task).evaluate(config, checkpoint)
