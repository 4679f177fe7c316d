"""Settings of a preference model: checked when they are made, kept as JSON."""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from irrl.errors import UserError, unknown_name
from irrl.reward_model.normalise import PIXELS
from irrl.rewards import REWARDS, Reward
from irrl.rewards import reward as find_reward

SCORE = "score"  # the raw score: no reward of the library, the control beside them


@dataclass(frozen=True)
class PreferenceSettings:
    """How a preference model scores, pays and learns.

    Attributes:
        reward: a name of `irrl.REWARDS`, paid on the two-label posterior against references, or
            ``"module:function"``; or ``"score"``, the raw score less the mean of the references',
            which is what is usually paid: scores of Bradley and Terry have no zero of their own.
        references: how many stored steps are drawn, anew with every update, to compare with where
            none are given.
        judge_error: share of answers taken for those of a coin, as Christiano et al. (2017) do: a
            judge that errs cannot drive scores to infinity.
        ensemble: number of networks, read as their mixture; 2 for ``"disdain"``.
        width: units of the default network's layers.
        pixels: how the default network sees images, as for a reward model.
        frequencies: of Fourier features of small vectors, for the default network.
        normalise: whether a network of one's own is shown normalised observations.
        learning_rate: of Adam.
        weight_decay: of Adam, on all weights of the networks.
        batch_size: comparisons in a batch.
        samples_per_comparison: how many comparisons are learned from for each new one.
        store: how many of the newest comparisons are kept to learn from.
        held_out: share of comparisons that are never learned from, by which overfitting shows.
        seed: of the first weights, of all batches and of the references.
        device: of PyTorch.

    Example:
        >>> PreferenceSettings(reward="disdain").ensemble
        2
    """

    reward: str = "linear"
    references: int = 64
    judge_error: float = 0.1
    ensemble: int | None = None
    width: int = 128
    pixels: str = "contrast"
    frequencies: int = 3
    normalise: bool = True
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    batch_size: int = 64
    samples_per_comparison: int = 100
    store: int = 10_000
    held_out: float = 0.1
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        """Settle what was left open, then check."""
        needed = self.reward_fn
        least = 2 if needed is not None and needed.needs_ensemble else 1
        if self.ensemble is None:
            object.__setattr__(self, "ensemble", least)
        self._require(
            "references ensemble width batch_size samples_per_comparison store",
            lambda v: isinstance(v, int) and v >= 1,
            "a whole number, at least 1",
        )
        if (self.ensemble or 1) < least:
            raise UserError("ensemble must be 2 or more: one network cannot disagree")
        self._require(
            "frequencies seed",
            lambda v: isinstance(v, int) and 0 <= v < 2**63,
            "a whole number, zero or more",
        )
        self._require("learning_rate", lambda v: 0 < v < math.inf, "positive")
        self._require("weight_decay", lambda v: 0 <= v < math.inf, "zero or positive")
        self._require("judge_error held_out", lambda v: 0 <= v < 1, "at least 0 and below 1")
        if not isinstance(self.normalise, bool):
            raise UserError(f"normalise must be True or False, got {self.normalise!r}")
        if self.pixels not in PIXELS:
            raise UserError(unknown_name("pixels", self.pixels, PIXELS))

    @property
    def reward_fn(self) -> Reward | None:
        """The reward of that name; None where the raw score is paid."""
        if self.reward == SCORE:
            return None
        if not isinstance(self.reward, str) or (
            ":" not in self.reward and self.reward not in REWARDS
        ):
            raise UserError(unknown_name("reward", self.reward, [SCORE, *REWARDS]))
        return find_reward(self.reward, validate=False)

    def to_json(self) -> dict[str, Any]:
        """All settings by name."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "PreferenceSettings":
        """Settings of names and values; an unknown name is an error."""
        known = [field.name for field in dataclasses.fields(cls)]
        for name in record:
            if name not in known:
                raise UserError(unknown_name("setting of a preference model", name, known))
        return cls(**record)

    def _require(self, names: str, holds: Callable[[Any], bool], expected: str) -> None:
        for name in names.split():
            value = getattr(self, name)
            if not isinstance(value, int | float) or isinstance(value, bool) or not holds(value):
                raise UserError(f"{name} must be {expected}, got {value!r}")
