"""A run is a folder that explains itself.

config.json       the settings, complete
provenance.json   version, commit, libraries, machine, command, and every resumption
metrics.jsonl     one row per evaluation, append only; free of clocks, so equal runs are
                  equal byte for byte
checkpoints/      <step>/ and `last`
summary.json      written last: its presence means done
"""

import hashlib
import json
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Generic, TypeVar

from irrl.errors import UserError, shown
from irrl.runs.bookkeeping import (
    bookkeeping_of,
    check_known_metrics,
    check_settings,
    known_metrics,
)
from irrl.runs.checkpoint import (
    Checkpoint,
    last_checkpoint,
    load_checkpoint,
    save_checkpoint,
    some_checkpoints,
)
from irrl.runs.config import Config
from irrl.runs.files import (
    append,
    exclusive,
    remove_leftovers,
    size_to_write,
    to_json_bytes,
    truncate,
    write_atomic,
    write_first,
)
from irrl.runs.folder import (
    CHECKPOINTS,
    CONFIG,
    METRICS,
    PROVENANCE,
    SUMMARY,
    Settings,
    check_empty,
    check_new,
    holds_a_run,
    is_finished,
    is_run,
    last_row,
    read_settings,
    resume_command,
    run_folders,
)
from irrl.runs.provenance import provenance, read_provenance
from irrl.runs.reading import (
    METRICS_BYTES,
    Row,
    is_number,
    is_there,
    parse_rows,
    read_plain,
    require_row,
)
from irrl.runs.seal import check_metrics, read_summary, sealed

__all__ = [
    "CHECKPOINTS",
    "CONFIG",
    "METRICS",
    "PROVENANCE",
    "SUMMARY",
    "Row",
    "Run",
    "Settings",
    "check_empty",
    "check_new",
    "is_finished",
    "is_run",
    "last_row",
    "read_settings",
    "resume_command",
    "run_folders",
]

SomeConfig = TypeVar("SomeConfig", bound=Config)


class Run(Generic[SomeConfig]):
    """An open run folder: make one with ``Run.create``, open one with `irrl.tasks.open_run`.

    ``listeners`` are called with each row as it is logged: progress displays, TensorBoard.

    Example:
        >>> import tempfile
        >>> config = type("Doors", (Config,), {"task": "doors", "length": "seed"})()
        >>> run = Run.create(Path(tempfile.mkdtemp()) / "run", config)
        >>> run.listeners.append(print)
        >>> run.log({"step": 0, "n_skills": 1.0})
        {'step': 0, 'n_skills': 1.0}
    """

    def __init__(self, folder: str | Path, config: SomeConfig) -> None:
        self.folder = Path(folder)
        self.config = config
        self.settings: Settings = config.settings()
        self.listeners: list[Callable[[Row], None]] = []
        self._started = time.perf_counter()
        self._seconds_before = 0.0
        self._provenance: dict[str, Any] | None = None
        self._summary: dict[str, Any] | None = None
        self._rows: list[Row] | None = None

    @property
    def task(self) -> str:
        """The name of its task."""
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
        try:
            write_first(folder / CONFIG, to_json_bytes(config.to_json()))
        except FileExistsError:
            raise UserError(holds_a_run(folder)) from None
        made = {**provenance(), "task_package": package, "resumed": []}
        write_atomic(folder / PROVENANCE, to_json_bytes(made))
        return cls(folder, config)

    def exclusive(self) -> AbstractContextManager[None]:
        """Keep other processes from training the same run at the same time."""
        return exclusive(self.folder, "trained")

    @property
    def is_finished(self) -> bool:
        """Whether there is a summary."""
        return is_finished(self.folder)

    @property
    def seconds(self) -> float:
        """Time spent on this run so far, over all its resumptions."""
        return self._seconds_before + time.perf_counter() - self._started

    # --- checkpoints ---

    def restore(self) -> Checkpoint | None:
        """Go back to the last checkpoint, which is returned; None before there is one."""
        checkpoint = self.resumable()
        self.go_back(checkpoint)
        return checkpoint

    def resumable(self) -> Checkpoint | None:
        """The last checkpoint, if the run can go on from it; None before there is one. Reads."""
        size = self._metrics_bytes()
        checkpoint = last_checkpoint(self.folder / CHECKPOINTS)
        if checkpoint is None and size > 0 and len(self.rows(complete=False)) > 1:
            raise UserError(
                f"{self.folder} has metrics but no checkpoint; put its {CHECKPOINTS}/ back, or "
                "start a new run"
            )
        if checkpoint is not None:
            check_settings(self.folder, self.config, checkpoint)
            check_known_metrics(self.folder, checkpoint, size)
            read_provenance(self.folder / PROVENANCE)
        return checkpoint

    def go_back(self, checkpoint: Checkpoint | None) -> None:
        """Drop what was logged after a checkpoint, and what kills have left; note the resumption.

        Only when all is prepared: a run that cannot go on stays as it is.
        """
        keep, seconds = known_metrics(self.folder, checkpoint) if checkpoint else (0, 0.0)
        for folder in (self.folder, self.folder / CHECKPOINTS):
            remove_leftovers(folder)
        if checkpoint is not None:
            self._note_resumption(checkpoint.step)
        if self._metrics_bytes() > keep:
            truncate(self.folder / METRICS, keep)
        self._seconds_before, self._started = seconds, time.perf_counter()

    def _metrics_bytes(self) -> int:
        path = self.folder / METRICS
        return size_to_write(path) if is_there(path) else 0

    def last_checkpoint(self) -> Checkpoint:
        """The last checkpoint, to look at; a run without one is told to get it first."""
        checkpoint = last_checkpoint(self.folder / CHECKPOINTS, self.is_finished)
        if checkpoint is None:
            raise UserError(
                f"{self.folder} has no checkpoint yet; `{resume_command(self.folder)}` first"
            )
        check_settings(self.folder, self.config, checkpoint)
        return checkpoint

    def some_checkpoints(self, count: int) -> list[Checkpoint]:
        """So many checkpoints, evenly from the first to the last, to look at."""
        chosen = [load_checkpoint(path) for path in some_checkpoints(self.folder, count)]
        for checkpoint in chosen:
            check_settings(self.folder, self.config, checkpoint)
        return chosen

    def save(self, step: int, arrays: dict[str, Any], state: dict[str, Any] | None = None) -> None:
        """Write a checkpoint from which ``restore`` continues exactly; the settings go in, too."""
        bookkeeping = {**bookkeeping_of(self.folder, self.settings), "seconds": self.seconds}
        checkpoint = Checkpoint(step, arrays, {**(state or {}), **bookkeeping})
        save_checkpoint(self.folder / CHECKPOINTS, checkpoint)

    def _note_resumption(self, step: int) -> None:
        record = read_provenance(self.folder / PROVENANCE)
        resumed = [*record.get("resumed", []), {"step": step, **provenance()}]
        write_atomic(self.folder / PROVENANCE, to_json_bytes({**record, "resumed": resumed}))

    # --- metrics ---

    def log(self, row: Row) -> None:
        """Append one row to the metrics: a step, and numbers by name."""
        try:
            require_row(row)
        except ValueError as error:
            raise UserError(f"a row of metrics cannot be logged: {error}") from None
        append(self.folder / METRICS, json.dumps(row, allow_nan=False).encode() + b"\n")
        for listener in self.listeners:
            listener(row)

    def rows(self, complete: bool = True) -> list[Row]:
        """The metrics, one dictionary per evaluation.

        A line that is cut or damaged is an error, or, if they need not be ``complete``, the end.
        """
        if self._rows is not None:
            return list(self._rows)
        path = self.folder / METRICS
        content = read_plain(path, METRICS_BYTES) if is_there(path) else b""
        rows: list[Row] = []
        try:
            rows.extend(parse_rows(content))
        except ValueError as error:
            if complete:
                mend = "put it back" if self.is_finished else f"`{resume_command(self.folder)}`"
                raise UserError(
                    f"{path} is cut or damaged in line {len(rows) + 1}; {mend} to mend it ({error})"
                ) from None
        if complete and self.is_finished:
            check_metrics(self.folder, hashlib.sha256(content).hexdigest())
            self._rows = list(rows)
        return rows

    # --- the end ---

    def finish(self, summary: dict[str, Any]) -> dict[str, Any]:
        """Write the summary; from now on the run counts as done."""
        content = sealed(self.folder, summary, self.config.may_change)
        write_atomic(self.folder / SUMMARY, to_json_bytes(content))
        return summary

    def summary(self) -> dict[str, Any]:
        """What a finished run came to."""
        if not self.is_finished:
            raise UserError(f"{self.folder} is not finished; `{resume_command(self.folder)}` first")
        if self._summary is None:
            self._summary = read_summary(self.folder, self.config.may_change)
        return dict(self._summary)

    def final(self, metric: str) -> float:
        """A number of the summary."""
        value: Any = self.summary().get(metric)
        if not is_number(value):
            raise UserError(
                f"{self.folder / SUMMARY} is damaged: {metric} must be a number, got "
                f"{shown(value)}; put the file back, or train the run anew"
            )
        return value

    def provenance(self) -> dict[str, Any]:
        """What the run was made with; empty if that was lost, which is told."""
        if self._provenance is None:
            try:
                self._provenance = read_provenance(self.folder / PROVENANCE)
            except UserError as error:
                print(f"irrl: {error}", file=sys.stderr)
                self._provenance = {}
        return self._provenance
