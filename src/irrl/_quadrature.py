"""Integrals, roots and derivatives of functions of one number. Not public.

NumPy in double precision.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

REACH = 9.0
"""How many standard deviations of a normal distribution an integral looks at."""

legendre = lru_cache(maxsize=16)(np.polynomial.legendre.leggauss)


def roots(f: Callable[[Floats], Floats], grid: Floats) -> Floats:
    """Where a function changes its sign, by bisection."""
    above = f(grid) > 0.0
    start = np.flatnonzero(above[1:] != above[:-1])
    low, high, sign = grid[start], grid[start + 1], above[start]
    for _ in range(50):
        middle = 0.5 * (low + high)
        same = (f(middle) > 0.0) == sign
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    found: Floats = 0.5 * (low + high)
    return found


def crowded(low: Floats, high: Floats, nodes: int) -> tuple[Floats, Floats]:
    """Nodes and weights of an integral, many of them close to both ends."""
    u, weight = legendre(nodes)
    u = 0.5 * (u + 1.0)
    return low + (high - low) * u * u * (3.0 - 2.0 * u), (high - low) * 3.0 * u * (1.0 - u) * weight


def normal_rule(mean: float, std: float, nodes: int) -> tuple[Floats, Floats]:
    """Nodes and weights of a normal distribution, evenly dense."""
    if std == 0.0:
        return np.array([mean]), np.ones(1)
    z, weight = legendre(nodes)
    z = REACH * z
    weight = weight * np.exp(-0.5 * z**2)
    return mean + std * z, weight / weight.sum()


def differences(g: list[Floats]) -> tuple[Floats, Floats]:
    """First and second derivative from five points, in steps."""
    first = (8.0 * (g[3] - g[1]) - (g[4] - g[0])) / 12.0
    return first, (16.0 * (g[3] + g[1]) - (g[4] + g[0]) - 30.0 * g[2]) / 12.0
