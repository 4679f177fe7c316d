"""A run is a folder that explains itself.

config.json       the settings, complete
provenance.json   version, commit, libraries, machine, command, and every resumption
metrics.jsonl     one row per evaluation, append only; free of clocks, so equal runs are
                  equal byte for byte
checkpoints/      <step>/ and `last`
summary.json      written last: its presence means done
"""

import json
import os
import shlex
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Generic, TypeVar

from irrl.errors import UserError
from irrl.runs.checkpoint import Checkpoint, last_checkpoint, save_checkpoint
from irrl.runs.config import Config, flag_name
from irrl.runs.files import exclusive, read_json, to_json_bytes, write_atomic
from irrl.runs.provenance import provenance

CONFIG = "config.json"
PROVENANCE = "provenance.json"
METRICS = "metrics.jsonl"
CHECKPOINTS = "checkpoints"
SUMMARY = "summary.json"
LONGEST_ROW = 1 << 16

Row = dict[str, Any]
Settings = dict[str, Any]
SomeConfig = TypeVar("SomeConfig", bound=Config)


class Run(Generic[SomeConfig]):
    """An open run folder: make one with ``Run.create``, open one with `irrl.tasks.open_run`.

    ``listeners`` are called with each row as it is logged: progress displays, TensorBoard.
    """

    def __init__(self, folder: str | Path, config: SomeConfig) -> None:
        self.folder = Path(folder)
        self.config = config
        self.settings: Settings = config.settings()
        self.listeners: list[Callable[[Row], None]] = []
        self._started = time.perf_counter()
        self._seconds_before = 0.0

    @property
    def task(self) -> str:
        return self.config.task

    @classmethod
    def create(
        cls, folder: str | Path, config: SomeConfig, package: str | None = None
    ) -> "Run[SomeConfig]":
        """Start a new run in a folder that is empty or not there yet.

        ``package`` is the one that the task is from, with its version.
        """
        folder = Path(folder)
        check_new(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / CONFIG, to_json_bytes(config.to_json()))
        made = {**provenance(), "task_package": package, "resumed": []}
        write_atomic(folder / PROVENANCE, to_json_bytes(made))
        return cls(folder, config)

    def exclusive(self) -> AbstractContextManager[None]:
        """Keep other processes from training the same run at the same time."""
        return exclusive(self.folder, "trained")

    @property
    def is_finished(self) -> bool:
        return is_finished(self.folder)

    @property
    def seconds(self) -> float:
        """Time spent on this run so far, over all its resumptions."""
        return self._seconds_before + time.perf_counter() - self._started

    # --- checkpoints ---

    def restore(self) -> Checkpoint | None:
        """Go back to the last checkpoint: returns it, and drops the metrics logged after it."""
        metrics = self.folder / METRICS
        size = metrics.stat().st_size if metrics.exists() else 0
        checkpoint = last_checkpoint(self.folder / CHECKPOINTS)
        if checkpoint is None and size > 0 and len(self.rows(complete=False)) > 1:
            raise UserError(
                f"{self.folder} has metrics but no checkpoint; put its {CHECKPOINTS}/ back, or "
                "start a new run"
            )
        keep, seconds = 0, 0.0
        if checkpoint is not None:
            keep, seconds = self._bookkeeping(checkpoint)
            self._check_settings(checkpoint)
        if checkpoint is not None and size < keep:
            raise UserError(
                f"{metrics} was cut: it holds {size} bytes, its checkpoint at step "
                f"{checkpoint.step} knows {keep}; put the file back, or start a new run"
            )
        if size > keep:
            os.truncate(metrics, keep)
        if checkpoint is not None:
            self._note_resumption(checkpoint.step)
        self._seconds_before, self._started = seconds, time.perf_counter()
        return checkpoint

    def last_checkpoint(self) -> Checkpoint:
        """The last checkpoint, to look at; a run without one is told to get it first."""
        checkpoint = last_checkpoint(self.folder / CHECKPOINTS)
        if checkpoint is None:
            raise UserError(
                f"{self.folder} has no checkpoint yet; `{resume_command(self.folder)}` first"
            )
        return checkpoint

    def save(self, step: int, arrays: dict[str, Any], state: dict[str, Any] | None = None) -> None:
        """Write a checkpoint from which ``restore`` continues exactly; the settings go in, too."""
        with open(self.folder / METRICS, "ab") as file:
            os.fsync(file.fileno())
            metrics_bytes = file.tell()
        bookkeeping = {
            "settings": self.settings,
            "metrics_bytes": metrics_bytes,
            "seconds": self.seconds,
        }
        checkpoint = Checkpoint(step, arrays, {**(state or {}), **bookkeeping})
        save_checkpoint(self.folder / CHECKPOINTS, checkpoint)

    def _bookkeeping(self, checkpoint: Checkpoint) -> tuple[int, float]:
        try:
            return int(checkpoint.state["metrics_bytes"]), float(checkpoint.state["seconds"])
        except (KeyError, TypeError, ValueError):
            raise UserError(
                f"damaged checkpoint: step {checkpoint.step} of {self.folder} does not know its "
                "metrics; remove it and the 'last' file beside it to fall back on an earlier one"
            ) from None

    def _check_settings(self, checkpoint: Checkpoint) -> None:
        """Raise if a checkpoint was made with other settings than those of ``config.json``."""
        its = checkpoint.state.get("settings")
        if not isinstance(its, dict):
            raise UserError(
                f"damaged checkpoint: step {checkpoint.step} of {self.folder} does not know its "
                "settings; remove it and the 'last' file beside it to fall back on an earlier one"
            )
        for name, value in self.settings.items():
            if name not in self.config.may_change and name in its and its[name] != value:
                raise UserError(
                    f"the checkpoint is of another configuration: its {flag_name(name)} is "
                    f"{its[name]!r}, {self.folder / CONFIG} says {value!r}; put the {CONFIG} of "
                    "the run back, or start a new run"
                )

    def _note_resumption(self, step: int) -> None:
        record = self.provenance()
        resumed = [*record.get("resumed", []), {"step": step, **provenance()}]
        write_atomic(self.folder / PROVENANCE, to_json_bytes({**record, "resumed": resumed}))

    # --- metrics ---

    def log(self, row: Row) -> None:
        """Append one row to the metrics."""
        line = json.dumps(row, allow_nan=False) + "\n"
        with open(self.folder / METRICS, "a", encoding="utf-8") as file:
            file.write(line)
        for listener in self.listeners:
            listener(row)

    def finish(self, summary: dict[str, Any]) -> dict[str, Any]:
        """Write the summary; from now on the run counts as done."""
        write_atomic(self.folder / SUMMARY, to_json_bytes(summary))
        return summary

    def rows(self, complete: bool = True) -> list[Row]:
        """The metrics, one dictionary per evaluation.

        A line that is cut or damaged is an error, or, if they need not be ``complete``, the end.
        """
        path = self.folder / METRICS
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        rows = []
        for number, line in enumerate(lines, start=1):
            row = _parse_row(line)
            if row is None and complete:
                mend = "put it back" if self.is_finished else f"`{resume_command(self.folder)}`"
                raise UserError(f"{path} is cut or damaged in line {number}; {mend} to mend it")
            if row is None:
                break
            rows.append(row)
        return rows

    def summary(self) -> dict[str, Any]:
        if not self.is_finished:
            raise UserError(f"{self.folder} is not finished; `{resume_command(self.folder)}` first")
        summary = read_json(self.folder / SUMMARY)
        if not isinstance(summary, dict):
            raise UserError(f"{self.folder / SUMMARY} is not the summary of a run")
        return summary

    def provenance(self) -> dict[str, Any]:
        """What the run was made with; empty if that was lost."""
        path = self.folder / PROVENANCE
        record = read_json(path) if path.exists() else {}
        return record if isinstance(record, dict) else {}


# --- folders ---


def is_run(folder: str | Path) -> bool:
    return (Path(folder) / CONFIG).is_file()


def is_finished(folder: str | Path) -> bool:
    return (Path(folder) / SUMMARY).exists()


def check_new(folder: Path) -> None:
    """Raise unless a run can be started in a folder."""
    if (folder / SUMMARY).exists():
        raise UserError(f"{folder} already holds a finished run; choose another folder")
    if (folder / CONFIG).exists():
        raise UserError(
            f"{folder} already holds an unfinished run; go on with `{resume_command(folder)}`, "
            "or choose another folder"
        )
    check_empty(folder)


def check_empty(folder: Path) -> None:
    """Raise unless a run can be made in a folder."""
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file, not a folder; choose another folder")
    # A kill while a run was being made leaves no more than a temporary file.
    if folder.exists() and any(p.name != f".{CONFIG}.tmp" for p in folder.iterdir()):
        raise UserError(f"{folder} is not empty and not a run; choose another folder")


def read_settings(folder: str | Path) -> tuple[str, Settings]:
    """The task of a run and its settings, as they are written in its ``config.json``."""
    path = Path(folder) / CONFIG
    if not path.is_file():
        raise UserError(f"{folder} is not a run folder: it has no {CONFIG}")
    settings = read_json(path)
    if not isinstance(settings, dict) or not isinstance(settings.get("task"), str):
        raise UserError(f"{path} is not the configuration of a run")
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
        with open(folder / METRICS, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - LONGEST_ROW))
            lines = file.read().splitlines(keepends=True)
    except FileNotFoundError:
        return None
    return next((row for line in reversed(lines) if (row := _parse_row(line))), None)


def _parse_row(line: bytes) -> Row | None:
    if not line.endswith(b"\n"):
        return None
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) and "step" in row else None


def resume_command(folder: Path) -> str:
    return f"irrl resume {shlex.quote(str(folder))}"
