"""Files that are there whole or not at all, and folders that one process at a time may use.

Nothing is ever written through a link: content goes to a new file of a name nobody can foresee,
which then takes the place of the old one.
"""

import contextlib
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from irrl.errors import UserError
from irrl.runs.reading import open_plain, read_json

__all__ = [
    "append",
    "exclusive",
    "is_leftover",
    "read_json",
    "remove_leftovers",
    "size_to_write",
    "sync_folder",
    "temporary_of",
    "to_json_bytes",
    "truncate",
    "write_atomic",
    "write_first",
    "write_synced",
    "written_beside",
]

try:
    import fcntl
except ImportError:  # Windows: runs work there, unguarded
    fcntl = None  # type: ignore[assignment]

PATIENCE = 2.0  # seconds in which a process that was killed lets go of its folder


def to_json_bytes(value: Any) -> bytes:
    return (json.dumps(value, indent=1, allow_nan=False) + "\n").encode()


# --- writing ---


def write_synced(path: Path, content: bytes) -> None:
    """Write a file that is not there yet."""
    with open(open_plain(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def write_atomic(path: Path, content: bytes) -> None:
    """Write a file, or put it in the place of the one that is there."""
    with _written(path, content) as temporary:
        temporary.replace(path)
        sync_folder(path.parent)


def write_first(path: Path, content: bytes) -> None:
    """Write a file that no other process has written: of several, one succeeds.

    For the others there is a FileExistsError.
    """
    with _written(path, content) as temporary:
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            write_synced(path, content)
        sync_folder(path.parent)


def append(path: Path, content: bytes, sync: bool = False) -> int:
    """Add to the end of a plain file, which may have to be made; returns its size."""
    with open(open_plain(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "ab") as file:
        file.write(content)
        file.flush()
        if sync:
            os.fsync(file.fileno())
        return os.fstat(file.fileno()).st_size


def size_to_write(path: Path) -> int:
    """The size of a plain file that may be written to."""
    handle = open_plain(path, os.O_WRONLY)
    try:
        return os.fstat(handle).st_size
    finally:
        os.close(handle)


def truncate(path: Path, size: int) -> None:
    """Cut a plain file to its first bytes."""
    handle = open_plain(path, os.O_WRONLY)
    try:
        os.ftruncate(handle, size)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    if os.name == "nt":
        return  # Windows cannot open a folder; its rename is durable by itself
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# --- temporary names ---

_LEFTOVER = re.compile(r"\.(.+)\.[0-9a-f]{16}\.tmp")


def temporary_of(path: Path) -> Path:
    """A name beside a file that nobody can foresee."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")


def is_leftover(path: Path, name: str | None = None) -> bool:
    """Whether something is what a kill left of writing, of a file of this name if one is given."""
    found = _LEFTOVER.fullmatch(path.name)
    return found is not None and name in (None, found[1])


def remove_leftovers(folder: Path) -> None:
    """Remove what kills have left in a folder that nobody else is writing to."""
    for path in filter(is_leftover, folder.iterdir() if folder.is_dir() else ()):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


@contextmanager
def written_beside(path: Path) -> Iterator[Path]:
    """A name, with the same ending, for what takes the place of a file when it is written."""
    temporary = temporary_of(path).with_suffix(path.suffix)
    try:
        yield temporary
        temporary.replace(path)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


@contextmanager
def _written(path: Path, content: bytes) -> Iterator[Path]:
    temporary = temporary_of(path)
    try:
        write_synced(temporary, content)
        yield temporary
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


# --- one at a time ---


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
