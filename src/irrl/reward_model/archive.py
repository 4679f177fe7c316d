"""One file of arrays and JSON, and what goes wrong when a model is made from one.

Reward models and preference models are kept in the same form. Nothing in it is code.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save as to_safetensors

from irrl.errors import UserError
from irrl.nn.models import Arrays
from irrl.reward_model.ensemble import Ensemble
from irrl.runs.checkpoint import ARRAYS_BYTES, arrays_of
from irrl.runs.files import write_atomic
from irrl.runs.reading import parse_json, read_plain

HEADER, DIGEST = "irrl", "sha256"
WEIGHTS = ("members.", "features.", "adam.")
STORES = ("store", "held_out")


# --- files ---


def write(path: Path, arrays: Arrays, state: Mapping[str, Any]) -> None:
    """One file: safetensors, with JSON and a digest of all in its header."""
    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    said = json.dumps(state)
    header = {HEADER: said, DIGEST: _digest(contiguous, said)}
    write_atomic(path, to_safetensors(contiguous, header))


def _digest(arrays: Arrays, said: str) -> str:
    digest = hashlib.sha256(said.encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"\n{name} {array.dtype} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def read(path: Path) -> tuple[Arrays, dict[str, Any]]:
    """What `write` wrote; raises where a file is damaged or of something else."""
    try:
        content = read_plain(path.resolve(), ARRAYS_BYTES)
        arrays = arrays_of(path, content)
        header = parse_json(content[8 : 8 + int.from_bytes(content[:8], "little")])
        said, digest = (header.get("__metadata__", {}).get(key) for key in (HEADER, DIGEST))
        state = parse_json(said.encode()) if said else None
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise UserError(f"{path} is not a saved reward model: {reason}") from None
    if not isinstance(state, dict):
        raise UserError(f"{path} is not a saved reward model: its header says nothing of one")
    if digest != _digest(arrays, said):
        raise UserError(f"{path} was altered: it has not the SHA-256 that it names")
    return arrays, state


# --- models ---


@contextmanager
def loading(path: Path, what: str) -> Iterator[None]:
    """Whatever is wrong with a file of a model, in one line that names it."""
    try:
        yield
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is a damaged {what}: {_first_line(error)}") from None
    except (MemoryError, RuntimeError, ValueError) as error:  # also sizes nobody has room for
        raise UserError(f"{path} cannot be loaded: {_first_line(error)}") from None


@contextmanager
def restoring(what: str, *ensembles: Ensemble) -> Iterator[None]:
    """Networks that cannot be restored stay as they were; what is missing is said in one line."""
    before = [ensemble.to_arrays() for ensemble in ensembles]
    try:
        yield
    except Exception as error:
        for ensemble, arrays in zip(ensembles, before, strict=True):
            ensemble.restore(arrays)
        if isinstance(error, KeyError | TypeError | AttributeError):
            raise UserError(f"the saved {what} is damaged: {error}") from None
        raise


def refill(ensemble: Ensemble, arrays: Arrays, optimiser: bool, what: str) -> None:
    """Restore networks from arrays of just the same names."""
    expected = set(ensemble.to_arrays(optimiser))
    given = {name for name in arrays if name.startswith(WEIGHTS)}
    if odd := sorted(expected ^ given):
        raise UserError(
            f"the saved {what} has another {ensemble.word}: "
            f"{odd[0]} is only in {'it' if odd[0] in given else 'this one'}"
        )
    ensemble.restore(arrays, optimiser)


def stored_arrays(model: Any) -> Arrays:
    """What a model has stored to learn from."""
    kept = {name: getattr(model, name).to_arrays() for name in STORES}
    return {f"{name}.{key}": array for name in STORES for key, array in kept[name].items()}


def below(prefix: str, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """What has a prefix, without it."""
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
