"""What lies in a run folder, by name, and what a folder can be told from it without a task."""

import contextlib
import shlex
from pathlib import Path
from typing import Any

from irrl.errors import UserError, shown
from irrl.runs.files import is_leftover
from irrl.runs.reading import ROW_BYTES, Row, is_there, last_whole_row, read_object, read_plain

CONFIG = "config.json"
PROVENANCE = "provenance.json"
METRICS = "metrics.jsonl"
CHECKPOINTS = "checkpoints"
SUMMARY = "summary.json"

Settings = dict[str, Any]


def is_run(folder: str | Path) -> bool:
    return is_there(Path(folder) / CONFIG)


def is_finished(folder: str | Path) -> bool:
    return is_there(Path(folder) / SUMMARY)


def check_new(folder: Path) -> None:
    """Raise unless a run can be started in a folder."""
    if is_finished(folder):
        raise UserError(f"{folder} already holds a finished run; choose another folder")
    if is_run(folder):
        raise UserError(holds_a_run(folder))
    check_empty(folder)


def holds_a_run(folder: Path) -> str:
    return (
        f"{folder} already holds an unfinished run; go on with `{resume_command(folder)}`, "
        "or choose another folder"
    )


def check_empty(folder: Path) -> None:
    """Raise unless a run can be made in a folder."""
    if is_there(folder) and not folder.is_dir():
        raise UserError(f"{folder} is a file, not a folder; choose another folder")
    # A kill while a run was being made leaves no more than a temporary file.
    there = [p.name for p in folder.iterdir() if not is_leftover(p)] if folder.is_dir() else []
    if CONFIG in there:  # another process has just made one
        raise UserError(holds_a_run(folder))
    if there:
        raise UserError(f"{folder} is not empty and not a run; choose another folder")


def abandon(folder: Path) -> None:
    """Leave nothing behind of a run that was made, but has not begun."""
    if any(is_there(folder / name) for name in (METRICS, CHECKPOINTS, SUMMARY)):
        return
    for name in (PROVENANCE, CONFIG):
        (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # something else is in it
        folder.rmdir()


def read_settings(folder: str | Path) -> tuple[str, Settings]:
    """The task of a run and its settings, as they are written in its ``config.json``."""
    path = Path(folder) / CONFIG
    if not is_there(path):
        raise UserError(f"{folder} is not a run folder: it has no {CONFIG}")
    settings = read_object(path, "the configuration of a run")
    if not isinstance(settings.get("task"), str):
        raise UserError(
            f"{path} is not the configuration of a run: its task must be a name, got "
            f"{shown(settings.get('task'))}"
        )
    return settings.pop("task"), settings


def run_folders(paths: list[str]) -> list[Path]:
    """The folders of all runs at or below some folders, in order of their names."""
    found = []
    for path in map(Path, paths):
        if not path.is_dir():
            raise UserError(f"{path} is not a folder")
        folders = sorted(p.parent for p in path.rglob(CONFIG))
        if not folders:
            raise UserError(f"there is no run in {path}: no {CONFIG} at or below it")
        found += folders
    return found


def last_row(folder: Path) -> Row | None:
    """The newest whole row of a run that may be being written; None if there is none yet."""
    try:
        return last_whole_row(read_plain(folder / METRICS, ROW_BYTES, whole=False))
    except FileNotFoundError:
        return None


def resume_command(folder: Path) -> str:
    return f"irrl resume {shlex.quote(str(folder))}"
