"""A preference model to and from arrays and JSON, and one file of both. Nothing in it is code."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from irrl.errors import UserError
from irrl.nn.models import Arrays
from irrl.preference_model.comparisons import ComparisonStore
from irrl.preference_model.scorer import Make
from irrl.reward_model.saving import read, write
from irrl.reward_model.spaces import Parts, from_json, require_stored, said_parts, to_json

if TYPE_CHECKING:
    from irrl.preference_model.model import PreferenceModel

__all__ = ["load", "restore", "to_checkpoint", "write"]

SomeModel = TypeVar("SomeModel", bound="PreferenceModel")

KIND = "preferences"
STORES = ("store", "held_out")
WEIGHTS = ("members.", "features.", "adam.")
DAMAGED = "the saved preference model is damaged"


def to_checkpoint(model: "PreferenceModel", store: bool = True) -> tuple[Arrays, dict[str, Any]]:
    """All that a model is, as arrays and JSON; the stored comparisons too, unless left out."""
    arrays = model.scorer.to_arrays(store)
    for name in STORES if store else ():
        arrays |= {f"{name}.{k}": a for k, a in getattr(model, name).to_arrays().items()}
    if model.references is not None:
        arrays |= {f"references.{name}": array for name, array in model.references.items()}
    return arrays, {
        "kind": KIND,
        "parts": to_json(model.parts),
        "settings": model.settings.to_json(),
        "own": model.scorer.is_own,
        "counts": [model.comparisons, model.updates, model.new if store else 0],
        "has_references": model.references is not None,
        "has_store": store,
    }


def load(kind: type[SomeModel], path: Path, network: Make) -> SomeModel:
    """A preference model from a file, with a network of the user's given again."""
    arrays, state = read(path)
    if state.get("kind") != KIND:
        raise UserError(f"{path} is no preference model: irrl.RewardModel.load reads it")
    try:
        if state["own"] and network is None:
            raise UserError("it has a network of its own: give what makes that again")
        model = kind(from_json(state["parts"]), network, **state["settings"])
        model.restore(arrays, state)
    except (KeyError, TypeError, AttributeError) as error:
        reason = str(error).partition("\n")[0]
        raise UserError(f"{path} is a damaged preference model: {reason}") from None
    except (MemoryError, RuntimeError, ValueError) as error:  # also sizes nobody has room for
        reason = str(error).partition("\n")[0]
        raise UserError(f"{path} cannot be loaded: {reason}") from None
    return model


def restore(model: "PreferenceModel", arrays: Arrays, state: Mapping[str, Any]) -> None:
    """Make a model what a checkpoint holds; where that cannot be, it stays as it was."""
    try:
        _require_alike(model, state)
        comparisons, updates, new = (int(count) for count in state["counts"])
        if min(comparisons, updates, new) < 0:
            raise UserError(f"{DAMAGED}: its counts do not fit")
        has_store = bool(state["has_store"])
        stores = {name: _store(model, name, arrays if has_store else None) for name in STORES}
        references = _references(model, arrays) if state["has_references"] else None
        before = model.scorer.to_arrays()
        try:
            _refill(model, arrays, has_store)
        except ValueError:
            model.scorer.restore(before)
            raise
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{DAMAGED}: {error}") from None
    model.store, model.held_out, model.references = stores["store"], stores["held_out"], references
    model.comparisons, model.updates, model.new = comparisons, updates, new


def _require_alike(model: "PreferenceModel", state: Mapping[str, Any]) -> None:
    parts = from_json(state["parts"])
    if parts != model.parts:
        raise UserError(
            f"the saved preference model is of another observation space: {said_parts(parts)}, "
            f"expected {said_parts(model.parts)}"
        )
    if state["own"] != model.scorer.is_own:
        with_own = "was saved with a network of its own: give what makes that again"
        without = "was saved with the default network: leave yours out"
        raise UserError(f"the saved preference model {with_own if state['own'] else without}")


def _store(model: "PreferenceModel", name: str, arrays: Arrays | None) -> ComparisonStore:
    made = ComparisonStore(model.parts, getattr(model, name).capacity)
    if arrays is not None:
        made.restore(_below(f"{name}.", arrays))
    return made


def _references(model: "PreferenceModel", arrays: Arrays) -> Parts:
    found = {name: _below("references.", arrays)[name] for name in model.parts}
    require_stored(model.parts, found)
    if len({len(array) for array in found.values()} - {0}) != 1:
        raise UserError(f"{DAMAGED}: its references do not fit")
    return {name: np.array(array) for name, array in found.items()}


def _refill(model: "PreferenceModel", arrays: Arrays, optimiser: bool) -> None:
    expected = set(model.scorer.to_arrays(optimiser))
    given = {name for name in arrays if name.startswith(WEIGHTS)}
    if odd := sorted(expected ^ given):
        raise UserError(
            "the saved preference model has another network: "
            f"{odd[0]} is only in {'it' if odd[0] in given else 'this one'}"
        )
    model.scorer.restore(arrays, optimiser)


def _below(prefix: str, arrays: Mapping[str, Any]) -> dict[str, Any]:
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
