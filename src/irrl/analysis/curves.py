"""Learning curves over seeds: their area, and how soon they reach a threshold."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

FEW = 3
"""So many seeds or fewer are shown one by one: their interval would say little of them."""


def area_under_curve(steps: ArrayLike, values: ArrayLike) -> Any:
    """Mean height of curves over their steps, by trapezoids: in units of the values.

    ``values`` has shape (..., steps); one number for each curve.

    Example:
        >>> float(area_under_curve([0, 10, 30], [0.0, 80.0, 80.0]))
        66.66666666666667
    """
    x, y = _curve(steps, values)
    if x.size == 1:
        return y[..., 0]
    return np.sum(0.5 * (y[..., 1:] + y[..., :-1]) * np.diff(x), axis=-1) / (x[-1] - x[0])


def steps_to(threshold: float, steps: ArrayLike, values: ArrayLike) -> float | None:
    """Steps after which a curve first reaches a threshold, None if it never does.

    Between two evaluations the curve is taken as a straight line.

    Example:
        >>> steps_to(60.0, [0, 10, 30], [0.0, 80.0, 90.0])
        7.5
    """
    x, y = _curve(steps, values)
    if not (y >= threshold).any():
        return None
    n = int(np.argmax(y >= threshold))
    if n == 0:
        return float(x[0])
    share = (threshold - y[n - 1]) / (y[n] - y[n - 1])
    return float(x[n - 1] + share * (x[n] - x[n - 1]))


class Reached(NamedTuple):
    """Median over seeds of the steps to a threshold; None stands for never.

    Example:
        >>> str(reached_estimate([61_500, 70_000, 65_000, None, 62_000]))
        '65k [61.5k, never] (4 of 5)'
    """

    median: float | None
    low: float | None
    high: float | None
    reached: int
    seeds: int

    def __str__(self) -> str:
        share = f"({self.reached} of {self.seeds})"
        if self.median is None:
            return f"{'never for most' if self.reached else 'never'} {share}"
        middle = short_number(self.median)
        ends = ["never" if end is None else short_number(end) for end in (self.low, self.high)]
        if self.seeds <= FEW:  # they are the ends, and of three the median as well
            each = {1: [middle], 2: ends, 3: [ends[0], middle, ends[1]]}[self.seeds]
            return f"{', '.join(each)} {share}"
        return f"{middle} [{', '.join(ends)}] {share}"

    def to_json(self) -> dict[str, Any]:
        """By name."""
        return self._asdict()


def reached_estimate(steps: Sequence[float | None], confidence: float = 0.95) -> Reached:
    """Median steps over seeds, of which some never arrive: they count as later than all others.

    A mean over those that arrive would flatter; a median of all is right as long as half arrive.
    The interval is between two of the ordered seeds, whatever their distribution. Below six seeds
    it is their whole range, which holds the median in 75 % of cases for three, 94 % for five.

    Example:
        >>> reached_estimate([7.5, None, 9.0]).reached
        2
    """
    if not steps:
        raise ValueError("steps must hold one number, or None, per seed")
    ordered = np.sort([math.inf if s is None else s for s in steps])
    n, k = ordered.size, 1
    while 2.0 * _binomial_up_to(k, n) <= 1.0 - confidence:
        k += 1
    middle = 0.5 * (ordered[(n - 1) // 2] + ordered[n // 2])
    median, low, high = (_finite(x) for x in (middle, ordered[k - 1], ordered[-k]))
    return Reached(median, low, high, int(np.isfinite(ordered).sum()), n)


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _binomial_up_to(k: int, n: int) -> float:
    """Probability of at most k heads in n tosses."""
    return sum(math.comb(n, i) for i in range(k + 1)) / 2.0**n


def short_number(value: float) -> str:
    """A count of steps in few letters.

    Example:
        >>> short_number(474), short_number(61_500), short_number(1.2e6)
        ('474', '61.5k', '1.2M')
    """
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if value >= 0.9995 * size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def _curve(steps: ArrayLike, values: ArrayLike) -> tuple[NDArray, NDArray]:
    x, y = np.asarray(steps, dtype=float), np.asarray(values, dtype=float)
    if x.ndim != 1 or x.size == 0 or y.shape[-1:] != x.shape:
        raise ValueError(f"values must have one number per step, got {y.shape} for {x.shape}")
    if np.any(np.diff(x) <= 0) or not np.isfinite(y).all():
        raise ValueError("steps must increase, and values be finite")
    return x, y
