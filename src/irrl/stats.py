"""Statistics over seeds: small samples, so intervals always stand beside the numbers."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from irrl.seeding import stream


class Estimate(NamedTuple):
    """A statistic over seeds with its bootstrap interval."""

    value: float
    low: float
    high: float
    seeds: int

    def __str__(self) -> str:
        return f"{self.value:.1f} [{self.low:.1f}, {self.high:.1f}]"

    def to_json(self) -> dict[str, Any]:
        return self._asdict()


def mean(values: NDArray, axis: int = -1) -> Any:
    return np.mean(values, axis=axis)


def interquartile_mean(values: NDArray, axis: int = -1) -> Any:
    """Mean of the middle half: the lowest and the highest quarter are left out.

    Where a quarter is not a whole number of values, those on the border count in part.
    """
    ordered = np.sort(np.moveaxis(np.asarray(values, dtype=float), axis, -1), axis=-1)
    n = ordered.shape[-1]
    edges = np.arange(n + 1)
    overlap = np.clip(np.minimum(edges[1:], 0.75 * n) - np.maximum(edges[:-1], 0.25 * n), 0.0, 1.0)
    return ordered @ (overlap / overlap.sum())


def estimate(
    values: ArrayLike,
    statistic: Callable[..., Any] = mean,
    confidence: float = 0.95,
    resamples: int = 10_000,
) -> Estimate:
    """A statistic of one value per seed, with a percentile bootstrap interval.

    The resampling is seeded: the same values always give the same interval.
    """
    sample = np.asarray(values, dtype=float)
    if sample.ndim != 1 or sample.size == 0:
        raise ValueError(f"values must hold one number per seed, got shape {sample.shape}")
    if np.isnan(sample).any():
        raise ValueError("values contains NaN")
    picks = stream(0, "evaluation").integers(sample.size, size=(resamples, sample.size))
    tail = 50.0 * (1.0 - confidence)
    low, high = np.percentile(statistic(sample[picks]), [tail, 100.0 - tail])
    return Estimate(float(statistic(sample)), float(low), float(high), sample.size)
