"""Files that are there whole or not at all, and folders that one process at a time may use."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from irrl.errors import UserError

try:
    import fcntl
except ImportError:  # Windows: runs work there, unguarded
    fcntl = None  # type: ignore[assignment]

PATIENCE = 2.0  # seconds in which a process that was killed lets go of its folder


def to_json_bytes(value: Any) -> bytes:
    return (json.dumps(value, indent=1, allow_nan=False) + "\n").encode()


def write_synced(path: Path, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def write_atomic(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    write_synced(temporary, content)
    temporary.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    if os.name == "nt":
        return  # Windows cannot open a folder; its rename is durable by itself
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read {path}: {error}") from None


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
