"""Observations as named parts: arrays that can be stored, normalised and read by networks.

A dictionary of observations has a part for each of its entries, nested ones by a path such as
``camera/left``; any other observation is the single part `WHOLE`.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from irrl.errors import UserError

WHOLE = "observation"
FAR = 1e6  # bounds beyond say that there are none

Parts = dict[str, np.ndarray]


class Part(NamedTuple):
    """One entry of an observation.

    ``sizes`` are those of categories, empty where the part holds numbers; ``low`` and ``high`` are
    the bounds of numbers, None where there are none. Categories are kept as counted from zero.
    """

    shape: tuple[int, ...]
    dtype: str
    sizes: tuple[int, ...] = ()
    start: tuple[int, ...] = ()  # the first of each category
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
            new = {f"{name}/{below}": part for below, part in parts_of(inner).items()}
        else:
            new = {str(name): _part(str(name), inner)}
        if twice := set(new) & set(found):
            raise UserError(f"observation_space has two entries {min(twice)!r}")
        found |= new
    if not found:
        raise UserError("observation_space is an empty dictionary: there is nothing to judge")
    return found


def as_parts(observed: spaces.Space[Any] | Mapping[str, Part]) -> dict[str, Part]:
    """The parts of a space, or parts as they are."""
    if isinstance(observed, spaces.Space):
        return parts_of(observed)
    if not isinstance(observed, Mapping) or not observed:
        raise UserError(
            f"observation_space must be a Gymnasium space, got {type(observed).__name__}"
        )
    return dict(observed)


def said_parts(parts: Mapping[str, Part]) -> str:
    """Parts in words."""
    return ", ".join(f"{name} {part.shape}" for name, part in parts.items())


def _part(name: str, space: spaces.Space[Any]) -> Part:
    if isinstance(space, spaces.Box):
        low, high = _bounds(space)
        return Part(tuple(space.shape), str(space.dtype), low=low, high=high)
    if isinstance(space, spaces.Discrete):
        return Part((), "int64", sizes=(int(space.n),), start=(int(space.start),))
    if isinstance(space, spaces.MultiDiscrete):
        sizes, start = (tuple(map(int, x.ravel())) for x in (space.nvec, space.start))
        return Part(tuple(space.shape), "int64", sizes=sizes, start=start)
    if isinstance(space, spaces.MultiBinary):
        size = int(np.prod(space.shape))
        return Part(tuple(space.shape), "int8", low=(0.0,) * size, high=(1.0,) * size)
    raise UserError(
        f"observation_space: a discriminator cannot read {name!r}, a {type(space).__name__}; it "
        "reads Box, Discrete, MultiDiscrete, MultiBinary and dictionaries of these"
    )


def _bounds(space: spaces.Box) -> tuple[Any, Any]:
    low, high = space.low.astype(float).ravel(), space.high.astype(float).ravel()
    if len(space.shape) > 1 or not (np.abs([low, high]) < FAR).all():
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


def to_parts(
    parts: Mapping[str, Part],
    observations: Any,
    lead: tuple[int, ...],
    rows: np.ndarray | None = None,
    axis: str = "environment",
) -> Parts:
    """Observations with some leading axes as arrays by part; raises unless they fit and are finite.

    Args:
        parts: of their space.
        observations: an array, or a dictionary of arrays.
        lead: the leading axes, such as ``(n,)`` for one observation of each environment.
        rows: of the first axis, as a mask, those that are read; others are filled with one of them.
        axis: what the first axis is of, for messages.
    """
    found = {}
    for name, part in parts.items():
        array = np.asarray(_entry(observations, name))
        if array.shape != lead + part.shape:
            raise UserError(
                f"observation {name!r} has shape {array.shape}, expected {lead + part.shape}"
            )
        if rows is not None and not rows.all():
            array = array.copy()
            array[~rows] = array[rows.argmax()]
        found[name] = _cast(name, part, array, lambda bad: _where(bad, lead, rows, axis))
    return found


def _cast(name: str, part: Part, array: np.ndarray, where: Callable[[np.ndarray], str]) -> Any:
    """An array of the type of its part, writable; raises where that would change a number."""
    if array.dtype.kind not in "fiub":
        raise UserError(f"observation {name!r} holds {array.dtype}, no numbers")
    with np.errstate(over="ignore", invalid="ignore"):
        cast = np.require(array, part.dtype, ["C", "W"])
    if cast.dtype.kind == "f":
        finite = np.isfinite(cast)
        if not finite.all():
            raise UserError(f"observation {name!r} holds NaN or infinity{where(~finite)}")
    elif cast.dtype != array.dtype and not np.array_equal(cast, array):
        changed = where(cast != array)
        raise UserError(f"observation {name!r} holds what is no {part.dtype}{changed}")
    if part.sizes:
        cast = cast - np.reshape(part.start, part.shape)
        outside = (cast < 0) | (cast >= np.reshape(part.sizes, part.shape))
        if outside.any():
            raise UserError(f"observation {name!r} lies outside of its space{where(outside)}")
    return cast


def _where(bad: np.ndarray, lead: tuple[int, ...], rows: np.ndarray | None, axis: str) -> str:
    """The first culprit along the first axis, as words."""
    if not lead:
        return ""
    culprits = bad.reshape(lead[0], -1).any(axis=1)
    return f", {axis} {int((culprits if rows is None else culprits & rows).argmax())}"


def length_of(parts: Mapping[str, Part], observations: Any) -> int:
    """Of observations with one leading axis, how long it is."""
    shape = np.shape(_entry(observations, next(iter(parts))))
    if not shape or not shape[0]:
        raise UserError("an episode must have observations along its first axis, got none")
    return shape[0]


def require_stored(parts: Mapping[str, Part], stored: Mapping[str, np.ndarray]) -> None:
    """Raise unless arrays, shape ``(n, ...)``, hold what `to_parts` could have given."""
    for name, part in parts.items():
        array = stored[name]
        if array.shape[1:] != part.shape or array.dtype != np.dtype(part.dtype):
            raise UserError(f"stored observations {name!r} are of another space")
        outside = bool(part.sizes) and (
            (array < 0).any() or (array >= np.reshape(part.sizes, part.shape)).any()
        )
        if outside or not np.isfinite(array).all():
            raise UserError(f"stored observations {name!r} are damaged: no such values are there")


def _entry(observations: Any, name: str) -> Any:
    if not isinstance(observations, Mapping):
        if name != WHOLE:
            raise UserError(
                f"observations must be a dictionary with {name!r}, got "
                f"{type(observations).__name__}"
            )
        return observations
    if name in observations:
        return observations[name]
    first, _, rest = name.partition("/")
    if not rest or first not in observations:
        raise UserError(f"observations have no {name!r}, only {', '.join(map(str, observations))}")
    return _entry(observations[first], rest)
