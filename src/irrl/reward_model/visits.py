"""How often what is judged was there before: counted by category, and in buckets of numbers."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from irrl.errors import UserError
from irrl.nn.models import Arrays
from irrl.reward_model.settings import Settings
from irrl.reward_model.spaces import Part, Parts

BUCKETS = 10  # of a bounded number, if their side is not said
FURTHEST = 2.0**53  # bucket of a number without bounds


class Visits:
    """Counts of observations, those of the same categories and buckets together.

    Args:
        parts: of what is counted: vectors and categories; images are refused.
        side: of a bucket, in units of the observation; None: a tenth of the range of each number.
    """

    def __init__(self, parts: Mapping[str, Part], side: float | None = None) -> None:
        self.parts = dict(parts)
        self._buckets = {n: _buckets(n, p, side) for n, p in parts.items() if not p.sizes}
        self.width = sum(math.prod(part.shape) for part in parts.values())
        self._counts: dict[bytes, int] = {}

    def __len__(self) -> int:
        """How many different ones there are."""
        return len(self._counts)

    def buckets(self, seen: Parts) -> np.ndarray:
        """The categories and buckets of n observations, whole numbers of shape ``(n, numbers)``."""
        found = []
        for name, part in self.parts.items():
            array = seen[name].reshape(len(seen[name]), -1)
            if not part.sizes:
                of = self._buckets[name]
                array = np.clip(np.floor((array - of.low) / of.sides), of.first, of.last)
            found.append(array.astype(np.int64))
        return np.ascontiguousarray(np.concatenate(found, axis=1))

    def add(self, seen: Parts) -> None:
        """Count observations, shape ``(n, ...)``."""
        kinds, counts = np.unique(self.buckets(seen), axis=0, return_counts=True)
        for kind, count in zip(kinds, counts.tolist(), strict=True):
            key = kind.tobytes()
            self._counts[key] = self._counts.get(key, 0) + count

    def of(self, seen: Parts) -> np.ndarray:
        """How often each of n observations was there before: shape ``(n,)``."""
        known = self._counts
        return np.array([known.get(row.tobytes(), 0) for row in self.buckets(seen)], np.int64)

    # --- to and from a checkpoint ---

    def to_arrays(self) -> Arrays:
        """All buckets that were visited, and how often."""
        kinds = np.frombuffer(b"".join(self._counts), np.int64).reshape(-1, self.width)
        return {"buckets": kinds.copy(), "counts": np.array(list(self._counts.values()), np.int64)}

    def restore(self, arrays: Arrays) -> None:
        """Become what `to_arrays` gave; raises where that cannot be."""
        kinds, counts = arrays["buckets"], arrays["counts"]
        fit = kinds.shape == (len(counts), self.width) and counts.ndim == 1
        whole = kinds.dtype == counts.dtype == np.int64
        if not fit or not whole or (counts < 1).any():
            raise UserError("the saved reward model is damaged: its visits do not fit")
        found = {row.tobytes(): n for row, n in zip(kinds, counts.tolist(), strict=True)}
        if len(found) != len(counts):
            raise UserError("the saved reward model is damaged: its visits do not fit")
        self._counts = found


def make_visits(parts: Mapping[str, Part], settings: Settings) -> Visits | None:
    """What counts visits for a reward model, where that has a bonus for them."""
    return Visits(parts, settings.bucket) if settings.counts_visits else None


def visits_bonus(visits: np.ndarray) -> np.ndarray:
    """One over the root of the visits, this one among them: 1 where nobody was before.

    Args:
        visits: how many there were before.

    Returns:
        Bonuses of their shape.

    Example:
        >>> visits_bonus(np.array([0, 3, 99])).tolist()
        [1.0, 0.5, 0.1]
    """
    return 1.0 / np.sqrt(1.0 + visits)


class _Buckets(NamedTuple):
    """Of each number of a part: what is before the first bucket is in that, too."""

    low: np.ndarray
    sides: np.ndarray
    first: float
    last: np.ndarray | float


def _buckets(name: str, part: Part, side: float | None) -> _Buckets:
    if part.is_image:
        raise UserError(f"bonus_for 'visits' counts vectors and categories; {name!r} is an image")
    size = math.prod(part.shape)
    if part.low is None or part.high is None:
        if side is None:
            raise UserError(
                f"bonus_for 'visits' counts buckets, and {name!r} has no bounds: say with `bucket` "
                "how long a side of one is"
            )
        return _Buckets(np.zeros(size), np.full(size, side), -FURTHEST, FURTHEST)
    low, high = np.array(part.low), np.array(part.high)
    ranges = np.where(high > low, high - low, 1.0)
    sides = ranges / BUCKETS if side is None else np.full(size, side)
    last = np.maximum(np.ceil(np.round(ranges / sides, 5)) - 1.0, 0.0)  # 0.3 / 0.1 is three
    return _Buckets(low, sides, 0.0, last)
