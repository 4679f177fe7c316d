"""A preference model to and from arrays and JSON, which are kept as those of a reward model are."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from irrl.errors import UserError
from irrl.nn.models import Arrays
from irrl.preference_model.comparisons import ComparisonStore
from irrl.preference_model.scorer import Make
from irrl.reward_model import archive
from irrl.reward_model.spaces import Parts, from_json, require_stored, said_parts, to_json

if TYPE_CHECKING:
    from irrl.preference_model.model import PreferenceModel

SomeModel = TypeVar("SomeModel", bound="PreferenceModel")

KIND = "preferences"
WHAT = "preference model"
DAMAGED = f"the saved {WHAT} is damaged"


def to_checkpoint(model: "PreferenceModel", store: bool = True) -> tuple[Arrays, dict[str, Any]]:
    """All that a model is, as arrays and JSON; the stored comparisons too, unless left out."""
    arrays = model.scorer.to_arrays(store)
    if store:
        arrays |= archive.stored_arrays(model)
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
    arrays, state = archive.read(path)
    if state.get("kind") != KIND:
        raise UserError(f"{path} is no preference model: irrl.RewardModel.load reads it")
    with archive.loading(path, WHAT):
        if state["own"] and network is None:
            raise UserError("it has a network of its own: give what makes that again")
        model = kind(from_json(state["parts"]), network, **state["settings"])
        model.restore(arrays, state)
    return model


def restore(model: "PreferenceModel", arrays: Arrays, state: Mapping[str, Any]) -> None:
    """Make a model what a checkpoint holds; where that cannot be, it stays as it was."""
    with archive.restoring(WHAT, model.scorer):
        _require_alike(model, state)
        comparisons, updates, new = (int(count) for count in state["counts"])
        if min(comparisons, updates, new) < 0:
            raise UserError(f"{DAMAGED}: its counts do not fit")
        has_store = bool(state["has_store"])
        stores = {
            name: _store(model, name, arrays if has_store else None) for name in archive.STORES
        }
        references = _references(model, arrays) if state["has_references"] else None
        archive.refill(model.scorer, arrays, has_store, WHAT)
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
        made.restore(archive.below(f"{name}.", arrays))
    return made


def _references(model: "PreferenceModel", arrays: Arrays) -> Parts:
    found = {name: archive.below("references.", arrays)[name] for name in model.parts}
    require_stored(model.parts, found)
    if len({len(array) for array in found.values()} - {0}) != 1:
        raise UserError(f"{DAMAGED}: its references do not fit")
    return {name: np.array(array) for name, array in found.items()}
