"""A checkpoint is a folder: arrays as safetensors, everything else as JSON, no code.

It is written under a temporary name, synced and renamed, so a checkpoint either is whole or is
not there. ``state.json`` carries the digests of the arrays and of itself: damage is noticed, not
loaded.
"""

import hashlib
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from irrl.errors import UserError, shown
from irrl.runs.files import sync_folder, temporary_of, to_json_bytes, write_atomic, write_synced
from irrl.runs.folder import CHECKPOINTS
from irrl.runs.reading import (
    digest_of,
    is_real_folder,
    is_step,
    is_there,
    read_object,
    read_plain,
    require_real_folder,
)

ARRAYS = "arrays.safetensors"
STATE = "state.json"
LAST = "last"
ARRAYS_BYTES = 1 << 32  # that a checkpoint has at most which does not know its size

_BY_STEP = re.compile(r"[0-9]{12,16}")
_KEYS = {"step", "arrays_sha256", "state"}
_SEAL = {"arrays_bytes", "sha256"}  # which checkpoints of before do not have


@dataclass(frozen=True)
class Checkpoint:
    """What a run had at ``step``: named arrays and a JSON-like state."""

    step: int
    arrays: dict[str, np.ndarray]
    state: dict[str, Any]


# --- writing ---


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write ``folder/<step>`` and point ``folder/last`` to it."""
    require_real_folder(folder)
    folder.mkdir(exist_ok=True)
    final = folder / f"{checkpoint.step:012d}"
    require_real_folder(final)
    temporary = temporary_of(final)
    temporary.mkdir()
    arrays = save({key: np.asarray(a, order="C") for key, a in checkpoint.arrays.items()})
    state = {
        "step": checkpoint.step,
        "arrays_bytes": len(arrays),
        "arrays_sha256": hashlib.sha256(arrays).hexdigest(),
        "state": checkpoint.state,
    }
    write_synced(temporary / ARRAYS, arrays)
    write_synced(temporary / STATE, to_json_bytes({**state, "sha256": digest_of(state)}))
    shutil.rmtree(final, ignore_errors=True)
    temporary.rename(final)
    sync_folder(folder)
    write_atomic(folder / LAST, final.name.encode() + b"\n")
    return final


# --- reading ---


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint folder, or say what is wrong with it."""
    try:
        record = _read_state(path)
        size = record.get("arrays_bytes", ARRAYS_BYTES)
        content = read_plain(path / ARRAYS, size)
        if hashlib.sha256(content).hexdigest() != record["arrays_sha256"]:
            raise ValueError(f"{path / ARRAYS} was altered or cut")
        return Checkpoint(record["step"], arrays_of(path / ARRAYS, content), record["state"])
    except FileNotFoundError as error:
        raise UserError(
            f"half a checkpoint: {error.filename} is missing; {_advice(path)}"
        ) from None
    except ValueError as error:
        raise UserError(f"damaged checkpoint: {error}; {_advice(path)}") from None


def _advice(path: Path) -> str:
    return f"remove {path} and the 'last' file beside it to fall back on an earlier checkpoint"


def _read_state(path: Path) -> dict[str, Any]:
    """What ``state.json`` says, if it is as it was written."""
    file = path / STATE
    if not is_there(file):
        raise FileNotFoundError(2, "missing", str(file))
    record = read_object(file, "the state of a checkpoint")
    if set(record) not in (_KEYS, _KEYS | _SEAL):
        raise ValueError(f"{file} has not the keys of a checkpoint")
    if not is_step(record["step"]) or not isinstance(record["state"], dict):
        raise ValueError(f"{file} has no step or no state")
    if f"{record['step']:012d}" != path.name:
        raise ValueError(f"{file} is of step {record['step']}, its folder of {path.name}")
    if "sha256" in record:
        said = record.pop("sha256")
        if digest_of(record) != said or not is_step(record["arrays_bytes"]):
            raise ValueError(f"{file} was altered: it has not the SHA-256 that it names")
    return record


def arrays_of(path: Path, content: bytes) -> dict[str, np.ndarray]:
    """The arrays in the content of a file; a ValueError where there are none, or NaN in one."""
    try:
        arrays = load(content)
    except (SafetensorError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{path} holds no arrays that can be read ({shown(error)})") from None
    for name, array in arrays.items():
        if array.dtype.kind == "f" and np.isnan(array).any():
            raise ValueError(f"{path} has NaN in {shown(name)}")
    return arrays


def remove_checkpoint(path: Path) -> None:
    """Remove one whole: under another name first, so that no half of it is ever found."""
    aside = temporary_of(path)
    path.rename(aside)
    shutil.rmtree(aside)


def checkpoint_paths(folder: Path) -> list[Path]:
    """All checkpoints of a run, oldest first."""
    require_real_folder(folder)
    found = folder.iterdir() if folder.is_dir() else ()
    named = (p for p in found if _BY_STEP.fullmatch(p.name) and is_real_folder(p))
    return sorted(named, key=lambda path: int(path.name))


def some_checkpoints(run_folder: Path, count: int) -> list[Path]:
    """So many of a run, evenly from the first to the last; all if there are fewer."""
    paths = checkpoint_paths(run_folder / CHECKPOINTS)
    if not paths:
        raise UserError(f"{run_folder} has no checkpoint to measure")
    chosen = np.linspace(0, len(paths) - 1, min(count, len(paths))).round().astype(int)
    return [paths[i] for i in np.unique(chosen)]


def last_checkpoint(folder: Path, finished: bool = False) -> Checkpoint | None:
    """The checkpoint that ``last`` names, of a finished run the newest; without that file, that."""
    paths = checkpoint_paths(folder)
    if not is_there(folder / LAST):
        return load_checkpoint(paths[-1]) if paths else None
    name = read_plain(folder / LAST, 64, whole=False).decode(errors="replace").strip()
    for path in paths:
        if path.name == name:
            if finished and path != paths[-1]:
                raise UserError(
                    f"{folder / LAST} names step {int(name)}, but the run is finished and has a "
                    f"checkpoint of step {int(paths[-1].name)}: remove that file to take it"
                )
            return load_checkpoint(path)
    raise UserError(
        f"{folder / LAST} names no checkpoint that is there ({name!r}); remove that file to fall "
        "back on the newest one"
    )
