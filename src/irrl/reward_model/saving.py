"""A reward model to and from arrays and JSON, which `archive` keeps in one file."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from irrl.errors import UserError
from irrl.nn.models import Arrays
from irrl.reward_model import archive, kinds
from irrl.reward_model.alike import require_alike
from irrl.reward_model.discriminator import Make
from irrl.reward_model.spaces import from_json, to_json
from irrl.reward_model.store import EpisodeStore
from irrl.reward_model.visits import Visits, make_visits

if TYPE_CHECKING:
    from irrl.reward_model.model import RewardModel

SomeModel = TypeVar("SomeModel", bound="RewardModel")

WHAT = "reward model"


# --- to ---


def to_checkpoint(model: "RewardModel", store: bool = True) -> tuple[Arrays, dict[str, Any]]:
    """All that a model is, as arrays and JSON; the stored episodes too, unless left out."""
    arrays = {"label_counts": model.label_counts.copy(), **model.discriminator.to_arrays(store)}
    if store:
        arrays |= archive.stored_arrays(model)
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


# --- from ---


def load(
    kind: type[SomeModel], path: Path, discriminator: Make, oracle: SomeModel | None
) -> SomeModel:
    """A reward model from a file, with modules of the user's given again."""
    arrays, state = archive.read(path)
    with archive.loading(path, WHAT):
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
    return model


def restore(model: "RewardModel", arrays: Arrays, state: Mapping[str, Any]) -> None:
    """Make a model what a checkpoint holds; where that cannot be, it stays as it was."""
    judges = [model.discriminator, *([] if model.oracle is None else [model.oracle])]
    with archive.restoring(WHAT, *judges):
        _require_alike(model, state)
        updates, *new = (int(count) for count in state["counts"])
        if len(new) != 2 or min(updates, *new) < 0:
            raise UserError("the saved reward model is damaged: its counts do not fit")
        has_store = bool(state["has_store"])
        counts = _label_counts(model, arrays)
        visits = _visits(model, arrays)
        stores = {
            name: _store(model, name, arrays if has_store else None) for name in archive.STORES
        }
        archive.refill(model.discriminator, arrays, has_store, WHAT)
        if model.oracle is not None:
            archive.refill(model.oracle, archive.below("oracle.", arrays), False, WHAT)
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
        made.restore(archive.below("visits.", arrays))
    return made


def _store(model: "RewardModel", name: str, arrays: Arrays | None) -> EpisodeStore:
    made = model.make_store(getattr(model, name).capacity)
    if arrays is not None:
        made.restore(archive.below(f"{name}.", arrays))
        try:
            model.kind.accept(made.labels)
        except UserError as error:
            raise UserError(f"stored episodes are damaged: {error}") from None
    return made
