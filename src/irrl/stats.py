"""Statistics over seeds: small samples, so intervals always stand beside the numbers."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from irrl.seeding import stream


class Estimate(NamedTuple):
    """A statistic over seeds with its 95 % interval, which a single seed does not have."""

    value: float
    low: float | None
    high: float | None
    seeds: int

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return f"{self.value:.1f}"
        return f"{self.value:.1f} [{self.low:.1f}, {self.high:.1f}]"

    def to_json(self) -> dict[str, Any]:
        return self._asdict()


def interquartile_mean(values: NDArray, axis: int = -1) -> Any:
    """Mean of the middle half: the lowest and the highest quarter are left out.

    Where a quarter is not a whole number of values, those on the border count in part.
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
    """
    sample = _one_per_seed(values)
    middle = float(sample.mean())
    if sample.size == 1:
        return Estimate(middle, None, None, 1)
    error = float(sample.std(ddof=1)) / math.sqrt(sample.size)
    reach = t_quantile(0.5 + 0.5 * confidence, sample.size - 1) * error
    return Estimate(middle, middle - reach, middle + reach, sample.size)


def bootstrap_estimate(
    values: ArrayLike,
    statistic: Callable[[NDArray], Any] = interquartile_mean,
    confidence: float = 0.95,
    resamples: int = 10_000,
) -> Estimate:
    """A statistic of one value per seed with its percentile bootstrap interval.

    For many seeds: below about ten the interval is too narrow. The resampling is seeded, so
    the same values always give the same interval.
    """
    sample = _one_per_seed(values)
    if sample.size == 1:
        return Estimate(float(statistic(sample)), None, None, 1)
    picks = stream(0, "evaluation").integers(sample.size, size=(resamples, sample.size))
    tail = 50.0 * (1.0 - confidence)
    low, high = np.percentile(statistic(sample[picks]), [tail, 100.0 - tail])
    return Estimate(float(statistic(sample)), float(low), float(high), sample.size)


def t_quantile(probability: float, freedom: int) -> float:
    """Quantile of Student's t, by integrating and inverting its density."""
    angle = np.linspace(0.0, math.pi / 2, 20_001)  # t = sqrt(freedom) tan(angle)
    density = np.cos(angle) ** (freedom - 1)
    area = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))])
    wanted = (2.0 * probability - 1.0) * area[-1]
    return math.sqrt(freedom) * math.tan(float(np.interp(wanted, area, angle)))


def _one_per_seed(values: ArrayLike) -> NDArray[np.float64]:
    sample = np.asarray(values, dtype=float)
    if sample.ndim != 1 or sample.size == 0:
        raise ValueError(f"values must hold one number per seed, got shape {sample.shape}")
    if np.isnan(sample).any():
        raise ValueError("values contains NaN")
    return sample
