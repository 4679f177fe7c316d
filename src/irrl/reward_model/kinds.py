"""The kinds of labels there are: classes and numbers."""

from collections.abc import Mapping
from typing import Any

from irrl.errors import UserError
from irrl.reward_model.classes import Classes
from irrl.reward_model.continuous import Continuous
from irrl.reward_model.numbers import Numbers
from irrl.reward_model.settings import Settings

Kind = Classes | Numbers


def kind_of(labels: Any, settings: Settings) -> Kind:
    """How labels are read, learned and paid for; an error where there are none such."""
    if isinstance(labels, Continuous):
        return Numbers(labels, settings)
    return Classes(labels, settings)


def to_json(labels: int | Continuous) -> Any:
    """What labels are, as JSON has it."""
    return labels.to_json() if isinstance(labels, Continuous) else labels


def from_json(record: Any) -> int | Continuous:
    """What `to_json` gave."""
    try:
        return Continuous.from_json(record) if isinstance(record, Mapping) else record
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"the saved reward model is damaged: its labels: {error}") from None
