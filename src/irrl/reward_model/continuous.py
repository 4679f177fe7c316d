"""Continuous labels: what they are, and the density that a discriminator gives for them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from irrl.densities import Normal, Uniform
from irrl.errors import UserError, unknown_name

if TYPE_CHECKING:  # which loads torch
    from irrl.reward_model.settings import Settings

DENSITIES = ("normal", "bins")
PRIORS: dict[str, type[Normal] | type[Uniform]] = {"normal": Normal, "uniform": Uniform}
REACH = 5.0  # prior standard deviations that bins reach to, where the prior has no ends


@dataclass(frozen=True)
class Continuous:
    """Labels that are numbers: give this to a `RewardModel` as its ``labels``.

    Attributes:
        shape: of a label: ``()`` for a single number, ``(2,)`` for a place in the plane.
        prior: their distribution before anything was seen: an `irrl.densities.Uniform` or a
            `Normal`, of numbers or of arrays with that shape.
        density: what the discriminator gives: ``"normal"``, a mean and a standard deviation for
            each dimension, or ``"bins"``, a histogram that learns from soft targets (HL-Gauss).
        bins: how many, for each dimension.
        smoothing: of their targets, in widths of a bin.
        moves: whether there is a label for each observation, as for a place that an agent leaves,
            in place of one for each episode. It is told with the step that follows: the label in
            the ``info`` of a step is that of the observation before it, as ap_gym has it.

    Example:
        >>> from irrl.densities import Uniform
        >>> place = Continuous((2,), Uniform(-1.0, 1.0))
        >>> place.size, place.prior.high
        (2, (1.0, 1.0))
    """

    shape: tuple[int, ...]
    prior: Normal | Uniform
    density: str = "normal"
    bins: int = 32
    smoothing: float = 0.75
    moves: bool = False

    def __post_init__(self) -> None:
        """Check, and keep numbers only: two that say the same are the same."""
        shape = (self.shape,) if isinstance(self.shape, int) else self.shape
        if not isinstance(shape, tuple | list) or not all(map(_is_size, shape)):
            raise UserError(f"shape must have positive whole numbers, got {self.shape!r}")
        object.__setattr__(self, "shape", tuple(int(n) for n in shape))
        if not isinstance(self.prior, Normal | Uniform):
            raise UserError(
                "prior must be a Normal or a Uniform of irrl.densities, got "
                f"{type(self.prior).__name__}"
            )
        object.__setattr__(self, "prior", self._plain_prior())
        if self.density not in DENSITIES:
            raise UserError(unknown_name("density", self.density, DENSITIES))
        if not _is_size(self.bins) or self.bins < 2:
            raise UserError(f"bins must be a whole number, at least 2, got {self.bins!r}")
        if not isinstance(self.smoothing, int | float) or not 1e-3 <= self.smoothing <= 1e3:
            raise UserError(f"smoothing must lie within 0.001 and 1000, got {self.smoothing!r}")
        if not isinstance(self.moves, bool):
            raise UserError(f"moves must be True or False, got {self.moves!r}")

    def _plain_prior(self) -> Normal | Uniform:
        """The prior with a number for each dimension; refused if that cannot be."""
        found = {}
        for name, given in self.prior.arrays().items():
            try:
                array = np.broadcast_to(np.asarray(given, np.float32), self.shape).ravel()
            except (TypeError, ValueError):
                raise UserError(
                    f"prior.{name} does not fit labels of shape {self.shape}: got {given!r}"
                ) from None
            found[name] = tuple(float(x) for x in array)
        plain = type(self.prior)(**found)
        plain.accept(np, "prior", np.zeros(self.size, np.float32), True)
        return plain

    @property
    def size(self) -> int:
        """How many numbers a label has."""
        return int(np.prod(self.shape, dtype=int))

    def ends(self) -> np.ndarray:
        """Where bins begin and end, shape ``(2, D)``."""
        if isinstance(self.prior, Uniform):
            return np.array([self.prior.low, self.prior.high], np.float32)
        mean, std = (np.array(x, np.float32) for x in (self.prior.mean, self.prior.std))
        return np.stack([mean - REACH * std, mean + REACH * std])

    def to_json(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        name = next(name for name, kind in PRIORS.items() if isinstance(self.prior, kind))
        prior = {key: list(numbers) for key, numbers in self.prior.arrays().items()}
        return {
            "shape": list(self.shape),
            "prior": {"name": name, **prior},
            "density": self.density,
            "bins": self.bins,
            "smoothing": self.smoothing,
            "moves": self.moves,
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """What `to_json` gave."""
        prior = dict(record["prior"])
        kind = PRIORS[prior.pop("name")]
        shape = tuple(record["shape"])
        arrays = {name: np.reshape(numbers, shape) for name, numbers in prior.items()}
        return cls(**{**record, "shape": shape, "prior": kind(**arrays)})


def require_together(labels: Continuous, settings: "Settings") -> None:
    """Raise where settings of a reward model do not go with these labels."""
    if settings.prior != "uniform":
        raise UserError("prior is for classes: that of continuous labels is in irrl.Continuous")
    if labels.moves and settings.judge == "final":
        raise UserError("judge 'final' does not go with labels that move: take 'trajectory'")
    if settings.bonus_kind != "log" and labels.density != "bins":
        raise UserError("bonus_kind 'quadratic' is for classes and bins: take density='bins'")
    if settings.beta_nll and labels.density == "bins":
        raise UserError("beta_nll goes with density 'normal', not with bins")


def _is_size(n: Any) -> bool:
    return isinstance(n, int | np.integer) and not isinstance(n, bool) and bool(n >= 1)
