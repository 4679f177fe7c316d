"""Which tasks are installed: entry points of the group ``irrl.tasks``, loaded when asked for."""

import sys
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from irrl.errors import UserError, shown, unknown_name
from irrl.runs.config import Config
from irrl.runs.provenance import read_provenance
from irrl.runs.run import PROVENANCE
from irrl.tasks.contract import DEFAULT_PRESET, Metric, Task

GROUP = "irrl.tasks"
OURS = "irrl"


@cache
def _offers() -> dict[str, list[EntryPoint]]:
    """Every entry point by its name, ours first."""
    found: dict[str, list[EntryPoint]] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: _package(entry) != OURS):
        same = found.setdefault(entry.name, [])
        if _package(entry) not in map(_package, same):  # one package may be on the path twice
            same.append(entry)
    return found


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "an unknown package"


def task_names() -> list[str]:
    """The names of all tasks that are installed. Loads none of them."""
    return list(_offers())


def find_task(name: str) -> Task:
    """The task of a name, or one line that says why there is none."""
    offers = _offers().get(name, [])
    if not offers:
        raise UserError(unknown_name("task", name, task_names()))
    if len(offers) > 1:
        packages = ", ".join(sorted(map(_package, offers)))
        raise UserError(f"several packages have a task {name!r}: {packages}; uninstall all but one")
    return _load(offers[0])


def all_tasks() -> dict[str, Task]:
    """All tasks that can be used; those that cannot are told of, and left out."""
    found = {}
    for name in task_names():
        try:
            found[name] = find_task(name)
        except UserError as error:
            print(f"irrl: {error}", file=sys.stderr)
    return found


@cache
def _load(entry: EntryPoint) -> Task:
    where = f"task {entry.name!r} of package {_package(entry)} ({entry.value})"
    try:
        task = entry.load()
    except Exception as error:
        said = " ".join(str(error).split())
        raise UserError(f"{where} cannot be loaded: {type(error).__name__}: {said}") from None
    problem = _breach(entry.name, task)
    if problem:
        raise UserError(f"{where} breaks the contract of a task: {problem}")
    return task


def _breach(name: str, task: object) -> str:
    """What is wrong with a task; empty if nothing is."""
    if not isinstance(task, Task):
        return f"it is a {type(task).__name__}, expected an irrl.tasks.contract.Task"
    if not (isinstance(task.config, type) and issubclass(task.config, Config)):
        return "its config is not derived from irrl.runs.config.Config"
    if not task.name == name == getattr(task.config, "task", None):
        return (
            f"its name is {task.name!r}, that of its config "
            f"{getattr(task.config, 'task', None)!r}, that of its entry point {name!r}"
        )
    if getattr(task.config, "length", None) not in task.config.__dataclass_fields__:
        return "the length of its config names none of its settings"
    if DEFAULT_PRESET not in task.presets:
        return f"it has no preset {DEFAULT_PRESET!r}"
    if not isinstance(task.primary, Metric):
        return "its primary metric is not an irrl.tasks.contract.Metric"
    for part in ("prepare", "train", "evaluate", "check"):
        if not callable(getattr(task, part)):
            return f"its {part} is not a function"
    return ""


# --- which package a run wants ---


def package_of(name: str) -> str | None:
    """Name and version of the package that has a task; None if that is not known."""
    for entry in _offers().get(name, []):
        if entry.dist is not None:
            return f"{entry.dist.name} {entry.dist.version}"
    return None


def explain_missing(name: str, folder: Path) -> None:
    """Raise if a run folder is of a task that is not installed, with the package that it wants."""
    if name in _offers():
        return
    package = read_provenance(folder / PROVENANCE).get("task_package")
    wanted = (
        f"it was made with {shown(package)}: install that"
        if package
        else "install the package it is from"
    )
    raise UserError(
        f"{folder} is a run of the task {shown(name)}, which is not installed; {wanted} "
        f"(installed: {', '.join(task_names())})"
    )
