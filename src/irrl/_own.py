"""A g of one's own: found by name, checked once, named. Not public; `irrl.reward` is."""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irrl.errors import UserError
from irrl.shapes import G_LOG_FLOOR, G

GRID: NDArray[np.float64] = np.concatenate(
    [[0.0], np.exp(np.linspace(G_LOG_FLOOR, np.log(0.01), 40)), np.linspace(0.02, 1.0, 99)]
)
"""Probabilities on which a g is checked: zero, some near it, and steps of a hundredth."""

MIDDLE = slice(70, 100)


def import_g(name: str) -> G:
    """The function that ``module:function`` names."""
    module, _, function = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
    except Exception as error:  # whatever a module does while it is imported
        raise UserError(
            f"cannot import module {module!r} of reward {name!r}: {first_line(error)}; "
            "is its folder on PYTHONPATH?"
        ) from None
    for part in function.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise UserError(f"module {module!r} has no function {function!r}") from None
    return callable_g(found, name)


def callable_g(found: Any, name: str) -> G:
    """The same object, if it can be a g."""
    if not callable(found) or isinstance(found, type):
        raise UserError(
            f"{name!r} must be a function of the probability, got {type(found).__name__}"
        )
    try:
        hash(found)
    except TypeError:
        raise UserError(f"{name!r} must be hashable, like a function") from None
    g: G = found
    return g


def name_of(g: Callable[..., Any]) -> str:
    """``module:qualname`` where that leads back to g, else the bare name; "g" for a lambda."""
    bare = getattr(g, "__name__", "g")
    qualname = getattr(g, "__qualname__", bare)
    name = f"{getattr(g, '__module__', None)}:{qualname}"
    try:
        if import_g(name) is g:
            return name
    except UserError:
        pass
    return "g" if bare == "<lambda>" else str(bare)


def check_g(g: G, name: str) -> tuple[float, float]:
    """Refuse a g that no reward can be made of; return g(0) and g(1).

    It must keep the shape, be finite above zero (at zero it may be minus infinity), also in
    single precision, and increase: it may be flat in places, never fall, and not be constant.
    """
    values = on_grid(g, name, GRID)
    single = on_grid(g, name, GRID.astype(np.float32))
    if np.isnan(values[0]) or values[0] == np.inf or not np.isfinite(values[1:]).all():
        raise UserError(f"{name!r} must be finite for probabilities above 0 up to 1")
    if not np.isfinite(single[1:]).all():
        raise UserError(
            f"{name!r} must be finite in single precision for probabilities down to "
            f"{np.exp(G_LOG_FLOOR):.2g}; bound the probability from below"
        )
    before, after = values[:-1], values[1:]
    falls = after < before - 1e-12 * np.abs(before)  # by more than it is rounded
    if falls.any() or not values[-1] > values[1]:
        where = f": it falls at {GRID[1:][falls][0]:.3g}" if falls.any() else ": it is constant"
        raise UserError(f"{name!r} must increase with the probability{where}")
    return float(values[0]), float(values[-1])


def on_grid(g: G, name: str, grid: NDArray[Any]) -> NDArray[Any]:
    """Values of g; refuse one that looks at more than one probability at a time."""
    some = grid[MIDDLE, None]
    try:
        with np.errstate(all="ignore"):
            values, column = np.asarray(g(grid.copy())), np.asarray(g(some.copy()))
    except Exception as error:  # whatever a function of others does
        raise UserError(f"{name!r} must take an array: {first_line(error)}") from None
    if values.shape != grid.shape or column.shape != some.shape:
        raise UserError(
            f"{name!r} must return an array of the shape it is given, got "
            f"{values.shape} for {grid.shape}"
        )
    if values.dtype.kind != "f":
        raise UserError(f"{name!r} must return floating numbers, got {values.dtype}")
    if not np.allclose(values[MIDDLE], column[:, 0], rtol=1e-4, equal_nan=True):
        raise UserError(f"{name!r} must be a function of each probability alone")
    return values


def first_line(error: Exception) -> str:
    """What an exception says, in one line."""
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
