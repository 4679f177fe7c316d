"""Statistics over seeds: small samples, so intervals always stand beside the numbers."""

import math
from collections.abc import Callable, Sequence
from functools import cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from irrl.analysis.curves import (
    FEW,
    Reached,
    area_under_curve,
    reached_estimate,
    short_number,
    steps_to,
)
from irrl.runs.seeding import stream
from irrl.runs.shown import shown_number

__all__ = [
    "FEW",
    "Estimate",
    "Reached",
    "area_under_curve",
    "bootstrap_estimate",
    "interquartile_mean",
    "mean_band",
    "mean_estimate",
    "permutation_test",
    "probability_of_improvement",
    "reach_of_mean",
    "reached_estimate",
    "short_number",
    "steps_to",
    "stratified_estimate",
    "t_quantile",
]


class Estimate(NamedTuple):
    """A statistic over seeds with its 95 % interval, which a single seed does not have.

    Example:
        >>> str(Estimate(89.7, 88.0, 91.3, seeds=5))
        '89.7 [88.0, 91.3]'
    """

    value: float
    low: float | None
    high: float | None
    seeds: int
    each: Sequence[float] = ()  # the seeds themselves, if there are few

    def __str__(self) -> str:
        value = shown_number(self.value)
        if self.each:
            each = [shown_number(x, self.value) for x in self.each]
            return value + f" ({', '.join(each)})" * (set(each) != {value})
        if self.low is None or self.high is None:
            return value
        low, high = (shown_number(x, self.value) for x in (self.low, self.high))
        return f"{value} [{low}, {high}]"

    @property
    def spread(self) -> tuple[float, float]:
        """The interval or, of few seeds, their range."""
        if self.each or self.low is None or self.high is None:
            return min(self.each, default=self.value), max(self.each, default=self.value)
        return self.low, self.high

    def to_json(self) -> dict[str, Any]:
        """By name."""
        return self._asdict()

    def within(self, low: float, high: float) -> "Estimate":
        """The same with an interval that does not leave the range of its quantity."""
        if self.low is None or self.high is None:
            return self
        return self._replace(low=max(self.low, low), high=min(self.high, high))


def interquartile_mean(values: NDArray, axis: int = -1) -> Any:
    """Mean of the middle half: the lowest and the highest quarter are left out.

    Where a quarter is not a whole number of values, those on the border count in part.

    Example:
        >>> float(interquartile_mean([1.0, 2.0, 4.0, 100.0]))
        3.0
    """
    ordered = np.sort(np.moveaxis(np.asarray(values, dtype=float), axis, -1), axis=-1)
    n = ordered.shape[-1]
    edges = np.arange(n + 1)
    overlap = np.clip(np.minimum(edges[1:], 0.75 * n) - np.maximum(edges[:-1], 0.25 * n), 0.0, 1.0)
    return ordered @ (overlap / overlap.sum())


def mean_estimate(values: ArrayLike, confidence: float = 0.95) -> Estimate:
    """Mean of one value per seed with its t interval.

    A percentile bootstrap of five seeds covers the mean in 83 % of cases where it promises 95;
    the t interval keeps its promise as far as seeds are normally distributed.

    Example:
        >>> str(mean_estimate([88.7, 88.1, 91.1, 89.5, 91.0]))
        '89.7 [88.0, 91.4]'
    """
    sample = _one_per_seed(values)
    middle = float(sample.mean())
    if sample.size == 1:
        return Estimate(middle, None, None, 1)
    reach = reach_of_mean(sample.size, confidence) * float(sample.std(ddof=1))
    each = tuple(sample.tolist()) if sample.size <= FEW else ()
    return Estimate(middle, middle - reach, middle + reach, sample.size, each)


def reach_of_mean(seeds: int, confidence: float = 0.95) -> float:
    """Half the t interval of a mean over seeds, in standard deviations: of tables and of bands.

    Example:
        >>> round(reach_of_mean(5), 2)
        1.24
    """
    return t_quantile(0.5 + 0.5 * confidence, seeds - 1) / math.sqrt(seeds)


def mean_band(values: ArrayLike, low: float, high: float) -> tuple[NDArray, NDArray]:
    """The interval of `mean_estimate` at each step of curves of shape (seeds, steps), in a range.

    A figure's bands then mean what the intervals of a table mean.

    Example:
        >>> low, high = mean_band([[0.0, 0.9], [0.0, 1.0], [0.0, 1.0], [0.0, 0.9]], 0.0, 1.0)
        >>> low.round(2).tolist(), high.tolist()
        ([0.0, 0.86], [0.0, 1.0])
    """
    curves = np.asarray(values, dtype=float)
    middle = curves.mean(axis=0)
    reach = reach_of_mean(len(curves)) * curves.std(axis=0, ddof=1)
    return np.maximum(middle - reach, low), np.minimum(middle + reach, high)


def bootstrap_estimate(
    values: ArrayLike,
    statistic: Callable[[NDArray], Any] = interquartile_mean,
    confidence: float = 0.95,
    resamples: int = 10_000,
) -> Estimate:
    """A statistic of one value per seed with its percentile bootstrap interval.

    For many seeds: below about ten the interval is too narrow. The resampling is seeded, so
    the same values always give the same interval.

    Example:
        >>> bootstrap_estimate([1.0, 2.0, 4.0, 100.0]).value
        3.0
    """
    sample = _one_per_seed(values)
    if sample.size == 1:
        return Estimate(float(statistic(sample)), None, None, 1)
    picks = stream(0, "evaluation").integers(sample.size, size=(resamples, sample.size))
    tail = 50.0 * (1.0 - confidence)
    low, high = np.percentile(statistic(sample[picks]), [tail, 100.0 - tail])
    return Estimate(float(statistic(sample)), float(low), float(high), sample.size)


def stratified_estimate(
    groups: Sequence[ArrayLike],
    statistic: Callable[[NDArray], Any] = interquartile_mean,
    confidence: float = 0.95,
    resamples: int = 10_000,
) -> Estimate:
    """A statistic over the seeds of several tasks; each task keeps its seeds in the bootstrap.

    Values must be on one scale, such as shares of a number known for each task.

    Example:
        >>> stratified_estimate([[0.9, 0.8], [0.5, 0.6]]).seeds
        4
    """
    samples = [_one_per_seed(group) for group in groups]
    together = np.concatenate(samples)
    value = float(statistic(together))
    if max(map(len, samples)) == 1:  # nothing varies within a task
        return Estimate(value, None, None, together.size)
    random = stream(0, "evaluation")
    drawn = [s[random.integers(s.size, size=(resamples, s.size))] for s in samples]
    tail = 50.0 * (1.0 - confidence)
    low, high = np.percentile(statistic(np.concatenate(drawn, axis=1)), [tail, 100.0 - tail])
    return Estimate(value, float(low), float(high), together.size)


# --- is A above B? ---


def probability_of_improvement(
    a: ArrayLike, b: ArrayLike, confidence: float = 0.95, resamples: int = 10_000
) -> Estimate:
    """How often a seed of A is above a seed of B, ties as half, with its bootstrap interval.

    Mann and Whitney's U over the number of pairs. Where all of A is above all of B, no resample is
    otherwise: the interval shrinks to a point, and the permutation test says what that is worth.

    Example:
        >>> probability_of_improvement([3.0, 5.0], [1.0, 4.0]).value
        0.75
    """
    a, b = _one_per_seed(a), _one_per_seed(b)
    above = (a[:, None] > b) + 0.5 * (a[:, None] == b)  # pairs
    value, seeds = float(above.mean()), min(a.size, b.size)
    if seeds == 1:
        return Estimate(value, None, None, 1)
    random = stream(0, "evaluation")
    shares = [random.multinomial(n, np.full(n, 1.0 / n), size=resamples) / n for n in above.shape]
    tail = 50.0 * (1.0 - confidence)
    resampled = np.sum((shares[0] @ above) * shares[1], axis=1)
    low, high = np.percentile(resampled, [tail, 100.0 - tail])
    return Estimate(value, float(low), float(high), seeds)


EXACT_UP_TO = 20_000  # ways to deal the seeds: ten against six, eight against eight


def permutation_test(a: ArrayLike, b: ArrayLike, resamples: int = 20_000) -> float:
    """One-sided p of "A above B": how often chance alone puts the mean of A this far above B's.

    All ways to deal the values to A and B are counted where there are few enough; else a seeded
    sample of them, to which the one that was seen is added. Three seeds a side cannot get below
    1/20, five not below 1/252.

    Example:
        >>> permutation_test([4.0, 5.0, 6.0], [1.0, 2.0, 3.0])
        0.05
    """
    a, b = _one_per_seed(a), _one_per_seed(b)
    values, observed = np.concatenate([a, b]), float(a.sum())
    slack = 1e-9 * (1.0 + np.abs(values).sum())  # the same sum in another order
    ways = math.comb(values.size, a.size)
    if ways <= EXACT_UP_TO:
        picks = np.array(list(combinations(range(values.size), a.size)))
        return float(np.mean(values[picks].sum(axis=1) >= observed - slack))
    shuffled = stream(0, "evaluation").permuted(np.tile(values, (resamples, 1)), axis=1)
    sums = shuffled[:, : a.size].sum(axis=1)
    return float((1 + np.count_nonzero(sums >= observed - slack)) / (1 + resamples))


@cache
def t_quantile(probability: float, freedom: int) -> float:
    """Quantile of Student's t, by integrating and inverting its density.

    Example:
        >>> round(t_quantile(0.975, 4), 2)
        2.78
    """
    angle = np.linspace(0.0, math.pi / 2, 20_001)  # t = sqrt(freedom) tan(angle)
    density = np.cos(angle) ** (freedom - 1)
    area = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))])
    wanted = (2.0 * probability - 1.0) * area[-1]
    return math.sqrt(freedom) * math.tan(float(np.interp(wanted, area, angle)))


def _one_per_seed(values: ArrayLike) -> NDArray[np.float64]:
    sample = np.asarray(values, dtype=float)
    if sample.ndim != 1 or sample.size == 0:
        raise ValueError(f"values must hold one number per seed, got shape {sample.shape}")
    if not np.isfinite(sample).all():
        raise ValueError("values contains NaN or infinite numbers")
    return sample
