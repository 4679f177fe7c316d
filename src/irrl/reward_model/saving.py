"""A reward model to and from arrays and JSON, and one file of both. Nothing in it is code."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from safetensors.numpy import save as to_safetensors

from irrl.errors import UserError
from irrl.nn.models import Arrays
from irrl.reward_model import kinds
from irrl.reward_model.alike import require_alike
from irrl.reward_model.discriminator import Discriminator, Make
from irrl.reward_model.spaces import from_json, to_json
from irrl.reward_model.store import EpisodeStore
from irrl.reward_model.visits import Visits, make_visits
from irrl.runs.checkpoint import ARRAYS_BYTES, arrays_of
from irrl.runs.files import write_atomic
from irrl.runs.reading import parse_json, read_plain

if TYPE_CHECKING:
    from irrl.reward_model.model import RewardModel

SomeModel = TypeVar("SomeModel", bound="RewardModel")

HEADER, DIGEST = "irrl", "sha256"
WEIGHTS = ("members.", "features.", "adam.")
STORES = ("store", "held_out")


# --- to ---


def to_checkpoint(model: "RewardModel", store: bool = True) -> tuple[Arrays, dict[str, Any]]:
    """All that a model is, as arrays and JSON; the stored episodes too, unless left out."""
    arrays = {"label_counts": model.label_counts.copy(), **model.discriminator.to_arrays(store)}
    for name in STORES if store else ():
        kept = getattr(model, name).to_arrays()
        arrays |= {f"{name}.{key}": array for key, array in kept.items()}
    if model.visits is not None:
        arrays |= {f"visits.{name}": array for name, array in model.visits.to_arrays().items()}
    oracle = model.oracle
    if oracle is not None:
        arrays |= {f"oracle.{name}": array for name, array in oracle.to_arrays(False).items()}
    return arrays, {
        "parts": to_json(model.parts),
        "labels": kinds.to_json(model.labels),
        "settings": model.settings.to_json(),
        "own": model.discriminator.is_own,
        "oracle": oracle and {"settings": oracle.settings.to_json(), "own": oracle.is_own},
        "counts": [model.updates, *(model.new if store else (0, 0))],
        "has_store": store,
    }


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


# --- from ---


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


def load(
    kind: type[SomeModel], path: Path, discriminator: Make, oracle: SomeModel | None
) -> SomeModel:
    """A reward model from a file, with modules of the user's given again."""
    arrays, state = read(path)
    try:
        parts, labels = from_json(state["parts"]), kinds.from_json(state["labels"])
        its_oracle = state["oracle"]
        if state["own"] and discriminator is None:
            raise UserError("it has a discriminator of its own: give that module again")
        if its_oracle and its_oracle["own"] and oracle is None:
            raise UserError("its oracle has a discriminator of its own: give that model again")
        if its_oracle and oracle is None:
            oracle = kind(parts, labels, **its_oracle["settings"])
        model = kind(parts, labels, discriminator, oracle, **state["settings"])
        model.restore(arrays, state)
    except (KeyError, TypeError, AttributeError) as error:
        reason = str(error).partition("\n")[0]
        raise UserError(f"{path} is a damaged reward model: {reason}") from None
    except (MemoryError, RuntimeError, ValueError) as error:  # also sizes nobody has room for
        reason = str(error).partition("\n")[0]
        raise UserError(f"{path} cannot be loaded: {reason}") from None
    return model


def restore(model: "RewardModel", arrays: Arrays, state: Mapping[str, Any]) -> None:
    """Make a model what a checkpoint holds; where that cannot be, it stays as it was."""
    try:
        _require_alike(model, state)
        updates, *new = (int(count) for count in state["counts"])
        if len(new) != 2 or min(updates, *new) < 0:
            raise UserError("the saved reward model is damaged: its counts do not fit")
        has_store = bool(state["has_store"])
        counts = _label_counts(model, arrays)
        visits = _visits(model, arrays)
        stores = {name: _store(model, name, arrays if has_store else None) for name in STORES}
        before = model.discriminator.to_arrays()
        try:
            _refill(model.discriminator, arrays, has_store)
            if model.oracle is not None:
                _refill(model.oracle, _below("oracle.", arrays), False)
        except ValueError:
            model.discriminator.restore(before)
            raise
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(f"the saved reward model is damaged: {error}") from None
    model.store, model.held_out, model.visits = stores["store"], stores["held_out"], visits
    model.label_counts, model.updates, model.new = counts, updates, (new[0], new[1])
    model.revision += 1


def _require_alike(model: "RewardModel", state: Mapping[str, Any]) -> None:
    labels = kinds.from_json(state["labels"])
    require_alike(model, from_json(state["parts"]), labels, "the saved reward model")
    judge, its = model.settings.judge, state["settings"]["judge"]
    if judge != its:
        raise UserError(f"the saved reward model judges {its!r}, this one {judge!r}")
    if state["own"] != model.discriminator.is_own:
        with_own = "was saved with a discriminator of its own: give that module again"
        without = "was saved with the default discriminator: leave yours out"
        raise UserError(f"the saved reward model {with_own if state['own'] else without}")
    if (state["oracle"] is None) != (model.oracle is None):
        does = "pays by an oracle" if state["oracle"] else "has no oracle"
        raise UserError(f"the saved reward model {does}, unlike this one")


def _label_counts(model: "RewardModel", arrays: Arrays) -> np.ndarray:
    counts = arrays["label_counts"]
    if counts.shape != (model.kind.counts_size,) or counts.dtype != np.int64 or (counts < 0).any():
        raise UserError("the saved reward model is damaged: its label_counts do not fit")
    return counts.copy()


def _visits(model: "RewardModel", arrays: Arrays) -> Visits | None:
    made = make_visits(model.parts, model.settings)
    if made is not None:
        made.restore(_below("visits.", arrays))
    return made


def _store(model: "RewardModel", name: str, arrays: Arrays | None) -> EpisodeStore:
    made = model.make_store(getattr(model, name).capacity)
    if arrays is not None:
        made.restore(_below(f"{name}.", arrays))
        try:
            model.kind.accept(made.labels)
        except UserError as error:
            raise UserError(f"stored episodes are damaged: {error}") from None
    return made


def _refill(discriminator: Discriminator, arrays: Arrays, optimiser: bool) -> None:
    expected = set(discriminator.to_arrays(optimiser))
    given = {name for name in arrays if name.startswith(WEIGHTS)}
    if odd := sorted(expected ^ given):
        raise UserError(
            "the saved reward model has another discriminator: "
            f"{odd[0]} is only in {'it' if odd[0] in given else 'this one'}"
        )
    discriminator.restore(arrays, optimiser)


def _below(prefix: str, arrays: Mapping[str, Any]) -> dict[str, Any]:
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
