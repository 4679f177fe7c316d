"""Observations as named parts: arrays that can be stored, normalised and read by networks.

A dictionary of observations has a part for each of its entries, nested ones by a path such as
``camera/left``; any other observation is the single part `WHOLE`.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

WHOLE = "observation"

Parts = dict[str, np.ndarray]


class Part(NamedTuple):
    """One entry of an observation.

    ``sizes`` are those of categories, empty where the part holds numbers; ``low`` and ``high`` are
    the bounds of numbers, None where there are none.
    """

    shape: tuple[int, ...]
    dtype: str
    sizes: tuple[int, ...] = ()
    start: int = 0  # of the only category
    low: tuple[float, ...] | None = None
    high: tuple[float, ...] | None = None

    @property
    def is_image(self) -> bool:
        """Numbers in two dimensions, or in three: a picture and its channels."""
        return not self.sizes and len(self.shape) in (2, 3)


# --- spaces ---


def parts_of(space: spaces.Space[Any]) -> dict[str, Part]:
    """The parts of a space; raises where a discriminator cannot read one."""
    if not isinstance(space, spaces.Dict):
        return {WHOLE: _part(WHOLE, space)}
    found: dict[str, Part] = {}
    for name, inner in space.spaces.items():
        if isinstance(inner, spaces.Dict):
            found |= {f"{name}/{below}": part for below, part in parts_of(inner).items()}
        else:
            found[str(name)] = _part(str(name), inner)
    if not found:
        raise ValueError("observation_space is an empty dictionary: there is nothing to judge")
    return found


def _part(name: str, space: spaces.Space[Any]) -> Part:
    if isinstance(space, spaces.Box):
        low, high = _bounds(space)
        return Part(tuple(space.shape), str(space.dtype), low=low, high=high)
    if isinstance(space, spaces.Discrete):
        return Part((), "int64", sizes=(int(space.n),), start=int(space.start))
    if isinstance(space, spaces.MultiDiscrete):
        return Part(tuple(space.shape), "int64", sizes=tuple(map(int, space.nvec.ravel())))
    if isinstance(space, spaces.MultiBinary):
        size = int(np.prod(space.shape))
        return Part(tuple(space.shape), "int8", low=(0.0,) * size, high=(1.0,) * size)
    raise ValueError(
        f"observation_space: a discriminator cannot read {name!r}, a {type(space).__name__}; it "
        "reads Box, Discrete, MultiDiscrete, MultiBinary and dictionaries of these"
    )


def _bounds(space: spaces.Box) -> tuple[Any, Any]:
    low, high = space.low.astype(float).ravel(), space.high.astype(float).ravel()
    if len(space.shape) > 1 or not (np.isfinite(low).all() and np.isfinite(high).all()):
        return None, None
    return tuple(map(float, low)), tuple(map(float, high))


def to_json(parts: Mapping[str, Part]) -> dict[str, Any]:
    """Parts as JSON has them."""
    return {name: part._asdict() for name, part in parts.items()}


def from_json(record: Mapping[str, Any]) -> dict[str, Part]:
    """Parts as `to_json` wrote them."""

    def read(value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    return {
        name: Part(**{key: read(value) for key, value in fields.items()})
        for name, fields in record.items()
    }


# --- observations ---


def to_parts(parts: Mapping[str, Part], observations: Any, lead: tuple[int, ...]) -> Parts:
    """Observations with some leading axes as arrays by part; raises unless they fit and are finite.

    Args:
        parts: of their space.
        observations: an array, or a dictionary of arrays.
        lead: the leading axes, such as ``(n,)`` for one observation of each environment.
    """
    found = {}
    for name, part in parts.items():
        array = np.asarray(_entry(observations, name))
        if array.shape != lead + part.shape:
            raise ValueError(
                f"observation {name!r} has shape {array.shape}, expected {lead + part.shape}"
            )
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"observation {name!r} holds NaN or infinity")
        if part.sizes:
            array = array - part.start
            if (array < 0).any() or (array >= np.reshape(part.sizes, part.shape)).any():
                raise ValueError(f"observation {name!r} lies outside of its space")
        found[name] = array.astype(part.dtype, copy=False)
    return found


def _entry(observations: Any, name: str) -> Any:
    if not isinstance(observations, Mapping):
        return observations
    if name in observations:
        return observations[name]
    first, _, rest = name.partition("/")
    if not rest or first not in observations:
        raise ValueError(f"observations have no {name!r}, only {', '.join(map(str, observations))}")
    return _entry(observations[first], rest)
