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
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

from irrl.checkpoint import (
    Checkpoint,
    last_checkpoint,
    save_checkpoint,
    to_json_bytes,
    write_atomic,
)
from irrl.config import Config
from irrl.distributed import current_world
from irrl.errors import UserError

try:
    import fcntl
except ImportError:  # Windows: runs work there, unguarded
    fcntl = None  # type: ignore[assignment]

CONFIG = "config.json"
PROVENANCE = "provenance.json"
METRICS = "metrics.jsonl"
CHECKPOINTS = "checkpoints"
SUMMARY = "summary.json"
LONGEST_ROW = 1 << 16
PATIENCE = 2.0  # seconds in which a process that was killed lets go of its folder
LIBRARIES = (
    "numpy", "numba", "array-api-compat", "safetensors", "gymnasium", "torch", "jax", "mujoco",
)  # fmt: skip

Row = dict[str, Any]
Settings = dict[str, Any]


class Run:
    """An open run folder. Make one with ``Run.create``, ``Run.open`` or ``Run.create_or_open``.

    ``listeners`` are called with each row as it is logged: progress displays, TensorBoard.
    """

    def __init__(self, folder: Path, task: str, settings: Settings) -> None:
        self.folder = folder
        self.task = task
        self.settings = settings
        self.listeners: list[Callable[[Row], None]] = []
        self._started = time.perf_counter()
        self._seconds_before = 0.0

    @classmethod
    def create(cls, folder: str | Path, config: Config) -> "Run":
        """Start a new run in a folder that is empty or not there yet."""
        folder = Path(folder)
        if (folder / CONFIG).exists():
            if (folder / SUMMARY).exists():
                raise UserError(f"{folder} already holds a finished run; choose another folder")
            raise UserError(
                f"{folder} already holds an unfinished run; go on with `{resume_command(folder)}`, "
                "or choose another folder"
            )
        cls._check_empty(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / CONFIG, to_json_bytes(config.to_json()))
        write_atomic(folder / PROVENANCE, to_json_bytes({**provenance(), "resumed": []}))
        return cls.open(folder)

    @classmethod
    def open(cls, folder: str | Path) -> "Run":
        """Open a run that exists, finished or not."""
        folder = Path(folder)
        if not (folder / CONFIG).is_file():
            raise UserError(f"{folder} is not a run folder: it has no {CONFIG}")
        settings = read_json(folder / CONFIG)
        if not isinstance(settings, dict) or not isinstance(settings.get("task"), str):
            raise UserError(f"{folder / CONFIG} is not the configuration of a run")
        return cls(folder, settings.pop("task"), settings)

    @classmethod
    def create_or_open(cls, folder: str | Path, config: Config) -> "Run":
        """Start a run, or go on with one of the same configuration."""
        cls.check(folder, config)
        return cls.open(folder) if (Path(folder) / CONFIG).exists() else cls.create(folder, config)

    @classmethod
    def check(cls, folder: str | Path, config: Config) -> None:
        """Raise where ``create_or_open`` would; write nothing.

        A setting that is younger than the run that is there has its default.
        """
        folder = Path(folder)
        if not (folder / CONFIG).exists():
            return cls._check_empty(folder)
        run = cls.open(folder)
        there, wanted = {"task": run.task, **run.settings}, config.to_json()
        if run.task == config.task:
            there = type(config).from_settings(run.settings).to_json()
        changed = [key for key in wanted if there.get(key) != wanted[key]]
        if changed:
            raise UserError(
                f"{folder} already holds a run with another {', '.join(changed)}; "
                "choose another folder"
            )
        return None

    @staticmethod
    def _check_empty(folder: Path) -> None:
        if folder.exists() and not folder.is_dir():
            raise UserError(f"{folder} is a file, not a folder; choose another folder")
        # A kill while a run was being made leaves no more than a temporary file.
        if folder.exists() and any(p.name != f".{CONFIG}.tmp" for p in folder.iterdir()):
            raise UserError(f"{folder} is not empty and not a run; choose another folder")

    def exclusive(self) -> AbstractContextManager[None]:
        """Keep other processes from training the same run at the same time."""
        return exclusive(self.folder, "trained")

    @property
    def is_finished(self) -> bool:
        return (self.folder / SUMMARY).exists()

    @property
    def seconds(self) -> float:
        """Time spent on this run so far, over all its resumptions."""
        return self._seconds_before + time.perf_counter() - self._started

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
        keep, seconds = self._bookkeeping(checkpoint) if checkpoint else (0, 0.0)
        if checkpoint and size < keep:
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

    def _bookkeeping(self, checkpoint: Checkpoint) -> tuple[int, float]:
        try:
            return int(checkpoint.state["metrics_bytes"]), float(checkpoint.state["seconds"])
        except (KeyError, TypeError, ValueError):
            raise UserError(
                f"damaged checkpoint: step {checkpoint.step} of {self.folder} does not know its "
                "metrics; remove it and the 'last' file beside it to fall back on an earlier one"
            ) from None

    def log(self, row: Row) -> None:
        """Append one row to the metrics."""
        line = json.dumps(row, allow_nan=False) + "\n"
        with open(self.folder / METRICS, "a", encoding="utf-8") as file:
            file.write(line)
        for listener in self.listeners:
            listener(row)

    def save(self, step: int, arrays: dict[str, Any], state: dict[str, Any]) -> None:
        """Write a checkpoint from which ``restore`` continues exactly."""
        with open(self.folder / METRICS, "ab") as file:
            os.fsync(file.fileno())
            metrics_bytes = file.tell()
        bookkeeping = {"metrics_bytes": metrics_bytes, "seconds": self.seconds}
        checkpoint = Checkpoint(step, arrays, {**state, **bookkeeping})
        save_checkpoint(self.folder / CHECKPOINTS, checkpoint)

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

    def _note_resumption(self, step: int) -> None:
        record = self.provenance()
        resumed = [*record.get("resumed", []), {"step": step, **provenance()}]
        write_atomic(self.folder / PROVENANCE, to_json_bytes({**record, "resumed": resumed}))


@contextmanager
def exclusive(folder: Path, deed: str) -> Iterator[None]:
    """Keep other processes from doing the same in a folder at the same time."""
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        if not _locked(handle, time.monotonic() + PATIENCE):
            raise UserError(f"{folder} is being {deed} by another process")
        yield
    finally:
        os.close(handle)


def _locked(handle: int, deadline: float) -> bool:
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)


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


def find_runs(paths: list[str]) -> list[Run]:
    """All runs at or below some folders, in order of their names."""
    runs = []
    for path in map(Path, paths):
        if not path.is_dir():
            raise UserError(f"{path} is not a folder")
        folders = sorted(p.parent for p in path.rglob(CONFIG))
        if not folders:
            raise UserError(f"there is no run in {path}: no {CONFIG} at or below it")
        runs += [Run.open(folder) for folder in folders]
    return runs


def last_row(folder: Path) -> Row | None:
    """The newest whole row of a run that may be being written; None if there is none yet."""
    try:
        with open(folder / METRICS, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - LONGEST_ROW))
            lines = file.read().splitlines(keepends=True)
    except FileNotFoundError:
        return None
    return next((row for line in reversed(lines) if (row := _parse_row(line))), None)


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read {path}: {error}") from None


def provenance() -> dict[str, Any]:
    """What is needed to make the same numbers again."""
    in_repository = _git("ls-files", "--error-unmatch", __file__) is not None
    return {
        "irrl": _version("irrl"),
        "commit": _git("rev-parse", "HEAD") if in_repository else None,
        "dirty": bool(_git("status", "--porcelain", "--", ".")) if in_repository else None,
        "command": shlex.join(["irrl", *sys.argv[1:]]),
        "processes": current_world().size,
        "python": platform.python_version(),
        "libraries": {name: v for name in LIBRARIES if (v := _version(name)) is not None},
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "processor": _processor(),
            "cores": os.cpu_count(),
        },
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _git(*arguments: str) -> str | None:
    """What git says about the source of this package, None where it says nothing."""
    try:
        result = subprocess.run(
            ["git", "-C", str(Path(__file__).resolve().parent), *arguments],
            capture_output=True,
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout.strip() if result.returncode == 0 else None


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor()
