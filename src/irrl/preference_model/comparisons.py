"""Comparisons that were kept: pairs of segments, side by side, and which was the better one."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from irrl.errors import UserError
from irrl.reward_model.spaces import Part, Parts
from irrl.reward_model.store import Batch, EpisodeStore

WIN, TIE, LOSS = 2, 1, 0  # points of a segment in its comparison


class Pairs(NamedTuple):
    """Comparisons: segments side by side, all first ones and then all second ones."""

    segments: Batch  # of 2 n segments; their labels are points
    answers: np.ndarray  # (n,), 1 where the first is better, 0 where the second, 1/2 where neither


class ComparisonStore:
    """The newest comparisons, up to a number of them. Both segments of a pair lie next to it."""

    def __init__(self, parts: Mapping[str, Part], capacity: int) -> None:
        self.capacity = capacity
        self.segments = EpisodeStore(parts, 2 * capacity)

    def __len__(self) -> int:
        return len(self.segments) // 2

    def add(self, first: Parts, second: Parts, answer: float) -> None:
        """Take in one comparison."""
        both = {name: np.concatenate([first[name], second[name]]) for name in first}
        lengths = [len(next(iter(segment.values()))) for segment in (first, second)]
        points = [round(2 * answer), round(2 * (1 - answer))]
        self.segments.add(both, np.array(lengths), np.array(points))

    def pairs(self, which: np.ndarray) -> Pairs:
        """Some comparisons, by their places in the store."""
        segments = self.segments.episodes(np.concatenate([2 * which, 2 * which + 1]))
        return Pairs(segments, segments.labels[: len(which)] / WIN)

    def newest(self, count: int) -> Pairs:
        """The last few."""
        return self.pairs(np.arange(max(0, len(self) - count), len(self)))

    def steps(self, which: np.ndarray) -> Parts:
        """Some steps of all segments, by their places: shape ``(n, ...)``."""
        return {name: a[0] for name, a in self.segments.states(which).observations.items()}

    # --- to and from a checkpoint ---

    def to_arrays(self) -> dict[str, np.ndarray]:
        """All of it by name."""
        return self.segments.to_arrays()

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Become what `to_arrays` gave; raises where that cannot be."""
        self.segments.restore(arrays)
        points = self.segments.labels
        whole = len(points) % 2 == 0 and np.isin(points, (WIN, TIE, LOSS)).all()
        if not whole or (points[0::2] + points[1::2] != WIN).any():
            raise UserError("stored comparisons are damaged: their answers do not fit")


def require_answer(better: Any) -> float:
    """The answer of a judge as a number; raises unless it is one of three."""
    number = isinstance(better, int | float | np.integer | np.floating | np.bool_)
    if not number or math.isnan(better) or float(better) not in (0.0, 0.5, 1.0):
        raise UserError(
            "better must be 1 where the first is better, 0 where the second is, or 0.5 where "
            f"neither is, got {better!r}"
        )
    return float(better)


def are_same(first: Parts, second: Parts) -> bool:
    """Whether two segments are one and the same."""
    return all(np.array_equal(first[name], second[name]) for name in first)


def require_different(first: Parts, second: Parts) -> None:
    """Raise where a pair compares a thing with itself: no answer could teach anything."""
    if are_same(first, second):
        raise UserError("second is the same as first: a pair must compare two different things")
