"""What evaluating needs of NumPy, with the arithmetic of `irrl.tasks.skills.arithmetic`.

NumPy adds, multiplies and compares alike everywhere; its exp, log, sums and products of matrices
differ with its version and the processor. As a module this is a library (``xp``) for rewards.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, types
from numpy import abs, finfo, max, maximum, minimum
from numpy.typing import NDArray

from irrl.tasks.skills import arithmetic

__all__ = [
    "abs", "exp", "expm1", "finfo", "log", "log1p", "max", "maximum", "mean", "minimum", "power",
    "product", "sum", "tanh", "total",
]  # fmt: skip

Floats = NDArray[np.float64]

_row, _rows = types.float64[::1], types.float64[:, ::1]


def _elementwise(function: Callable[[float], float], digest: str) -> Callable[[Any], Floats]:
    @njit(_row(_row), cache=True)
    def each(x):
        digest  # noqa: B018  (what Numba's cache is keyed on)
        found = np.empty_like(x)
        for n in range(x.size):
            found[n] = function(x[n])
        return found

    def over_array(x: Any) -> Floats:
        x = np.asarray(x, dtype=float)
        return each(np.ascontiguousarray(x).reshape(-1)).reshape(x.shape)

    return over_array


exp, expm1, log, log1p, tanh = (
    _elementwise(getattr(arithmetic, name), f"{name} {arithmetic.DIGEST}")
    for name in ("exp", "expm1", "log", "log1p", "tanh")
)


@njit(_row(_rows), cache=True)
def _row_totals(x):
    found = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            found[i] += x[i, j]
    return found


def sum(x: Any, axis: int = -1) -> Floats:
    """Sums over an axis, each from its first number to its last."""
    x = np.moveaxis(np.asarray(x, dtype=float), axis, -1)
    shape = x.shape[:-1]
    return _row_totals(np.ascontiguousarray(x).reshape(-1, x.shape[-1])).reshape(shape)


def mean(x: Any, axis: int = -1) -> Floats:
    return sum(x, axis) / np.shape(x)[axis]


def total(x: Any) -> float:
    """The sum of all numbers, row by row."""
    return float(sum(np.asarray(x, dtype=float).reshape(1, -1))[0])


def power(x: Floats, exponent: int) -> Floats:
    """A whole power, by multiplying."""
    found = np.ones_like(x)
    for _ in range(exponent):
        found = found * x
    return found


def product(x: Floats) -> Floats:
    """Products over the first axis."""
    found = np.ones(x.shape[1:])
    for row in x:
        found = found * row
    return found
