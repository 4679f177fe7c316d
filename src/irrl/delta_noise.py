"""The noise of a discriminator: delta in q = p + delta, where p is the true posterior.

NumPy in double precision.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from irrl.errors import unknown_name

Floats = NDArray[np.float64]

DENSITIES: dict[str, Callable[[Floats], Floats]] = {
    "normal": lambda z: np.exp(-0.5 * z**2),
    "laplace": lambda z: np.exp(-math.sqrt(2.0) * np.abs(z)),
    "uniform": lambda z: (np.abs(z) <= math.sqrt(3.0)).astype(float),
}
"""Densities of delta / scale, up to a factor, each of unit standard deviation."""

_TAIL = {"normal": 10.0, "laplace": 26.0, "uniform": math.sqrt(3.0)}
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(160)


@dataclass(frozen=True)
class Moments:
    """Moments of the discriminator noise delta, about zero.

    Example:
        >>> Moments(mean=0.5, second=1.0, third=0.0, fourth=3.0).variance
        0.75
    """

    mean: float
    second: float
    third: float
    fourth: float

    @property
    def variance(self) -> float:
        """Var[delta]."""
        return self.second - self.mean**2

    @property
    def variance_of_square(self) -> float:
        """Var[delta^2]."""
        return self.fourth - self.second**2

    @property
    def covariance_with_square(self) -> float:
        """Cov[delta, delta^2], zero for symmetric noise of zero mean."""
        return self.third - self.mean * self.second


@dataclass(frozen=True)
class DeltaNoise:
    """Zero-mean symmetric noise of a family and scale, cut to where p + delta is a probability.

    The cut is what makes noise near p = 0 or p = 1 neither symmetric nor centred.

    Attributes:
        family: a name of ``DENSITIES``.
        scale: the standard deviation before the cut.

    Example:
        >>> round(DeltaNoise("normal", 0.01).moments(0.5).variance, 8)
        0.0001
    """

    family: str = "normal"
    scale: float = 0.05

    def __post_init__(self) -> None:
        """Check family and scale."""
        if self.family not in DENSITIES:
            raise ValueError(unknown_name("noise family", self.family, DENSITIES))
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise ValueError(f"scale must be a positive number, got {self.scale}")

    def quadrature(self, posterior: float, kinks: tuple[float, ...] = ()) -> tuple[Floats, Floats]:
        """Nodes q and normalised weights of a rule for the distribution of q = p + delta.

        Composite Gauss-Legendre, split at the centre of the noise and at ``kinks`` of the
        integrand; nodes crowd towards 0, where logarithms and roots are singular.
        """
        require_probability("posterior", posterior)
        reach = _TAIL[self.family] * self.scale
        low, high = max(0.0, posterior - reach), min(1.0, posterior + reach)
        inner = sorted({posterior, *kinks})
        edges = [low, *(k for k in inner if low < k < high), high]
        nodes, weights = [], []
        for a, b in itertools.pairwise(edges):
            u = 0.5 * (_NODES + 1.0)
            nodes.append(a + (b - a) * u**4)
            weights.append((b - a) * 4.0 * u**3 * 0.5 * _WEIGHTS)
        q = np.concatenate(nodes)
        mass = np.concatenate(weights) * DENSITIES[self.family]((q - posterior) / self.scale)
        return q, mass / mass.sum()

    def moments(self, posterior: float) -> Moments:
        """Moments of delta at a true posterior."""
        q, mass = self.quadrature(posterior)
        delta = q - posterior
        return Moments(*(float(np.sum(mass * delta**n)) for n in (1, 2, 3, 4)))


def require_probability(name: str, value: float) -> None:
    """Refuse a number that is not strictly between 0 and 1.

    Args:
        name: what the number is called.
        value: the number.

    Returns:
        Nothing.

    Example:
        >>> require_probability("prior", 1.0)
        Traceback (most recent call last):
            ...
        ValueError: prior must lie strictly between 0 and 1, got 1.0
    """
    if not 0.0 < value < 1.0:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {value}")
