"""The one place where files of a run folder are read. None of them is trusted.

A link, a pipe or a device is refused: nothing outside a folder is read or written through it, and
nothing is waited for. Sizes, depths and numbers are bounded, whatever a file claims, and each
refusal is one line that names the file.
"""

import contextlib
import errno
import hashlib
import json
import math
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from irrl.errors import UserError, shown

JSON_BYTES = 16 << 20
METRICS_BYTES = 64 << 20
ROW_BYTES = 1 << 16
DEPTH = 32  # of lists and objects within each other
LARGEST = 1e150  # whose square is finite
MOST_STEPS = 10**15

Row = dict[str, Any]

_SAFE = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))


# --- plain files ---


def open_plain(path: Path, flags: int = os.O_RDONLY) -> int:
    """A descriptor of a plain file. To be written, it must not have a second name elsewhere."""
    try:
        if path.is_symlink():
            raise UserError(f"{path} is a link; put the file itself there")
        handle = os.open(path, flags | _SAFE, 0o666)
    except (OSError, ValueError) as error:
        if isinstance(error, UserError):
            raise
        if getattr(error, "errno", None) not in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise
        raise UserError(f"{path} is not a plain file; put the file itself there") from None
    status = os.fstat(handle)
    problem = ""
    if not stat.S_ISREG(status.st_mode):
        problem = "is not a plain file; put the file itself there"
    elif status.st_nlink > 1 and flags & (os.O_WRONLY | os.O_RDWR):
        problem = "has a second name (a hard link), which would change with it; put a copy there"
    if problem:
        os.close(handle)
        raise UserError(f"{path} {problem}")
    return handle


def read_plain(path: Path, most: int, whole: bool = True) -> bytes:
    """The content of a plain file of at most so many bytes; if not the whole, its end."""
    with open(open_plain(path), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > most and whole:
            raise UserError(f"{path} is too large: {size} bytes, expected at most {most}")
        file.seek(max(0, size - most))
        return file.read(most)


def sha256_of(path: Path, size: int) -> str:
    """The SHA-256 of the first bytes of a plain file, read piece by piece."""
    digest = hashlib.sha256()
    with open(open_plain(path), "rb") as file:
        while size > 0 and (piece := file.read(min(size, 1 << 20))):
            digest.update(piece)
            size -= len(piece)
    return digest.hexdigest()


def is_there(path: Path) -> bool:
    """Whether there is anything of this name, a link to nowhere included."""
    return os.path.lexists(path)


def is_real_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def require_real_folder(path: Path) -> None:
    """Raise if there is something of this name that is not a folder itself."""
    if is_there(path) and not is_real_folder(path):
        raise UserError(f"{path} is a link or a file, not a folder; put the folder itself there")


# --- JSON ---


def read_json(path: Path) -> Any:
    """The JSON in a plain file."""
    try:
        return parse_json(read_plain(path, JSON_BYTES))
    except UserError:
        raise
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read {path}: {error}") from None


def read_object(path: Path, what: str) -> dict[str, Any]:
    """The JSON object in a plain file; ``what`` it should be."""
    value = read_json(path)
    if not isinstance(value, dict):
        raise UserError(f"{path} is not {what}: expected a JSON object, got {shown(value)}")
    return value


def parse_json(content: bytes) -> Any:
    """JSON that is not too deep, and whose numbers are finite; else a ValueError."""
    try:
        value = json.loads(content, parse_float=_finite, parse_constant=_finite)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    _require_flat(value)
    return value


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a finite number")
    return number


def _require_flat(value: Any) -> None:
    layer = [value]
    for _ in range(DEPTH):
        layer = [x for x in layer if isinstance(x, list | dict)]
        if not layer:
            return
        layer = [y for x in layer for y in (x.values() if isinstance(x, dict) else x)]
    raise ValueError(f"it is nested more than {DEPTH} deep")


def digest_of(value: Any) -> str:
    """The SHA-256 of what a value is once it was written as JSON and read again."""
    again = json.loads(json.dumps(value, allow_nan=False))
    text = json.dumps(again, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


# --- numbers ---


def is_number(value: Any) -> bool:
    """Whether a value is a number that can be computed with, and drawn."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    largest = 2**63 - 1 if isinstance(value, int) else LARGEST  # NumPy has no wider whole numbers
    return -largest <= value <= largest


def is_step(value: Any) -> bool:
    """Whether a value can be how far a run has come."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_STEPS


# --- rows of metrics ---


def parse_row(line: bytes) -> Row:
    """A line of metrics.jsonl: a step, and numbers by name; else a ValueError."""
    if not line.endswith(b"\n"):
        raise ValueError("it has no end")
    if len(line) > ROW_BYTES:
        raise ValueError(f"it has {len(line)} bytes, expected at most {ROW_BYTES}")
    row = parse_json(line)
    if not isinstance(row, dict):
        raise ValueError(f"expected an object, got {shown(row)}")
    require_row(row)
    return row


def require_row(row: Row) -> None:
    """Raise a ValueError unless a row has a step, and numbers by name."""
    if not is_step(row.get("step")):
        raise ValueError(f"its step must be a whole number, got {shown(row.get('step'))}")
    for name, value in row.items():
        if not is_number(value):
            raise ValueError(f"{shown(name)} must be a finite number, got {shown(value)}")


def parse_rows(content: bytes) -> Iterator[Row]:
    """The rows of metrics.jsonl, whose steps increase; else a ValueError."""
    last = -1
    for line in content.splitlines(keepends=True):
        row = parse_row(line)
        if row["step"] <= last:
            raise ValueError(f"its step must be above {last}, got {row['step']}")
        last = row["step"]
        yield row


def last_whole_row(content: bytes) -> Row | None:
    """The newest row of metrics that may be being written."""
    for line in reversed(content.splitlines(keepends=True)):
        with contextlib.suppress(ValueError):
            return parse_row(line)
    return None
