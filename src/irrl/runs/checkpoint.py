"""A checkpoint is a folder: arrays as safetensors, everything else as JSON, no code.

It is written under a temporary name, synced and renamed, so a checkpoint either is whole or is
not there. ``state.json`` carries the digest of the arrays: damage is noticed, not loaded.
"""

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from irrl.errors import UserError
from irrl.runs.files import sync_folder, to_json_bytes, write_atomic, write_synced

ARRAYS = "arrays.safetensors"
STATE = "state.json"
LAST = "last"


@dataclass(frozen=True)
class Checkpoint:
    """What a run had at ``step``: named arrays and a JSON-like state."""

    step: int
    arrays: dict[str, np.ndarray]
    state: dict[str, Any]


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write ``folder/<step>`` and point ``folder/last`` to it."""
    folder.mkdir(exist_ok=True)
    name = f"{checkpoint.step:012d}"
    temporary = folder / f".{name}.tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    arrays = save({key: np.asarray(a, order="C") for key, a in checkpoint.arrays.items()})
    state = {
        "step": checkpoint.step,
        "arrays_sha256": hashlib.sha256(arrays).hexdigest(),
        "state": checkpoint.state,
    }
    write_synced(temporary / ARRAYS, arrays)
    write_synced(temporary / STATE, to_json_bytes(state))
    final = folder / name
    shutil.rmtree(final, ignore_errors=True)
    temporary.rename(final)
    sync_folder(folder)
    write_atomic(folder / LAST, name.encode() + b"\n")
    return final


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint folder, or say what is wrong with it."""
    advice = f"remove {path} and the 'last' file beside it to fall back on an earlier checkpoint"
    try:
        arrays = (path / ARRAYS).read_bytes()
        record = json.loads((path / STATE).read_bytes())
        step, digest, state = record["step"], record["arrays_sha256"], dict(record["state"])
    except FileNotFoundError as error:
        raise UserError(f"half a checkpoint: {error.filename} is missing; {advice}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"damaged checkpoint: {path / STATE} ({error}); {advice}") from None
    if hashlib.sha256(arrays).hexdigest() != digest:
        raise UserError(f"damaged checkpoint: {path / ARRAYS} was altered or cut; {advice}")
    try:
        return Checkpoint(step, load(arrays), state)
    except SafetensorError as error:
        raise UserError(f"damaged checkpoint: {path / ARRAYS} ({error}); {advice}") from None


def remove_checkpoint(path: Path) -> None:
    """Remove one whole: under another name first, so that no half of it is ever found."""
    aside = path.with_name(f".{path.name}.old")
    path.rename(aside)
    shutil.rmtree(aside)


def checkpoint_paths(folder: Path) -> list[Path]:
    """All checkpoints of a run, oldest first."""
    return sorted(p for p in folder.glob("[0-9]*") if p.is_dir())


def last_checkpoint(folder: Path) -> Checkpoint | None:
    """The checkpoint that ``last`` names; without that file, the newest one."""
    paths = checkpoint_paths(folder)
    try:
        name = (folder / LAST).read_bytes().decode(errors="replace").strip()
    except FileNotFoundError:
        return load_checkpoint(paths[-1]) if paths else None
    for path in paths:
        if path.name == name:
            return load_checkpoint(path)
    raise UserError(
        f"{folder / LAST} names no checkpoint that is there ({name!r}); remove that file to fall "
        "back on the newest one"
    )
