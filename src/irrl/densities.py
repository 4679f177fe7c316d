"""Densities of a continuous label: what a reward model that regresses says, and its prior.

A label is a vector of D numbers, shape ``(..., D)``; a single number has D = 1. Three densities,
whose dimensions are independent of each other:

* `Normal`: a mean and a standard deviation for each dimension;
* `Binned`: probabilities of bins, as a classifier gives them, spread evenly over each bin;
* `Uniform`: a box; as a prior only.

Each has the four functions that the rewards of `irrl.density_rewards` are made of, one number for
each dimension: ``log_density(xp, y)``, ``mass(xp, low, high)``, ``crps(xp, y)`` and ``spread(xp)``,
its standard deviation; ``centre(xp)`` is its mean. They check nothing; ``accept`` does, and makes
constants of the numbers.

Sizes and scales must lie within 1e-12 and 1e12: so all that is computed is finite, in single
precision as well. Without checks what lies outside counts as the nearest of these.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Self

from irrl._accept import (
    LARGEST,
    SMALLEST,
    as_array,
    as_numbers,
    constant_log_probs,
    require_edges,
    require_log_probs,
)
from irrl._arrays import Array, has_values, without_gradient
from irrl._special import normal_density, normal_mass
from irrl.shapes import LOG_FLOOR

NO_DENSITY = 10.0 * LOG_FLOOR
"""The log-density of a label that cannot be."""

_SLACK = 1e-6  # of the width: a label on the border, rounded, is still inside


@dataclass(frozen=True)
class Normal:
    """A normal density with a diagonal covariance.

    Attributes:
        mean: shape ``(..., D)``; of a prior a number or ``(D,)`` will do.
        std: standard deviations, a shape that broadcasts to that of the mean.

    Example:
        >>> import numpy as np
        >>> round(float(Normal(0.0, 2.0).mass(np, -2.0, 2.0)), 4)
        0.6827
    """

    mean: Array
    std: Array

    def arrays(self) -> Mapping[str, Array]:
        """Its arrays by name."""
        return {"mean": self.mean, "std": self.std}

    def accept(self, xp: ModuleType, name: str, like: Array, validate: bool) -> Self:
        """The same with arrays of a library, without gradient; refused if that cannot be."""
        mean = as_numbers(xp, f"{name}.mean", self.mean, like, validate)
        std = as_numbers(xp, f"{name}.std", self.std, like, validate)
        if validate and has_values(std) and bool(xp.any(std < SMALLEST)):
            raise ValueError(f"{name}.std must be positive, at least {SMALLEST:g}")
        return type(self)(mean, xp.clip(std, SMALLEST, LARGEST))

    def batch_shape(self) -> tuple[int, ...]:
        """The shape of labels that it is for, or that broadcasts to it."""
        return tuple(self.mean.shape)

    def holds(self, xp: ModuleType, y: Array) -> Array:
        """Whether labels lie where it has a density: all do."""
        return y == y

    def centre(self, xp: ModuleType) -> Array:
        """Means."""
        return self.mean

    def spread(self, xp: ModuleType) -> Array:
        """Standard deviations."""
        return self.std

    def log_density(self, xp: ModuleType, y: Array) -> Array:
        """Of labels, for each dimension."""
        z = xp.clip((y - self.mean) / self.std, -LARGEST, LARGEST)
        return -0.5 * z * z - xp.log(self.std) - 0.5 * math.log(2.0 * math.pi)

    def mass(self, xp: ModuleType, low: Array, high: Array) -> Array:
        """Between two numbers, for each dimension."""
        return normal_mass(xp, (low - self.mean) / self.std, (high - self.mean) / self.std)

    def crps(self, xp: ModuleType, y: Array) -> Array:
        """Continuous ranked probability score, in units of the label, for each dimension."""
        away = xp.abs(y - self.mean)
        z = xp.clip(away / self.std, 0.0, LARGEST)
        at_z = 2.0 * normal_density(xp, z) - 1.0 / math.sqrt(math.pi)
        return away * normal_mass(xp, -z, z) + self.std * at_z


@dataclass(frozen=True)
class Uniform:
    """A uniform density on a box; a prior. Outside of the box there are no labels.

    Attributes:
        low: lower ends, a number or shape ``(D,)``.
        high: upper ends.

    Example:
        >>> import numpy as np
        >>> float(Uniform(-1.0, 1.0).mass(np, 0.5, 9.0))
        0.25
    """

    low: Array
    high: Array

    def arrays(self) -> Mapping[str, Array]:
        """Its arrays by name."""
        return {"low": self.low, "high": self.high}

    def accept(self, xp: ModuleType, name: str, like: Array, validate: bool) -> Self:
        """The same with arrays of a library, without gradient; refused if that cannot be."""
        low = as_numbers(xp, f"{name}.low", self.low, like, validate)
        high = as_numbers(xp, f"{name}.high", self.high, like, validate)
        values = validate and has_values(low) and has_values(high)
        if values and bool(xp.any(high - low < SMALLEST)):
            raise ValueError(f"{name}.high must be above {name}.low, by at least {SMALLEST:g}")
        return type(self)(low, high)

    def batch_shape(self) -> tuple[int, ...]:
        """The shape of labels that it is for, or that broadcasts to it."""
        return tuple(self.low.shape)

    def holds(self, xp: ModuleType, y: Array) -> Array:
        """Whether labels lie within the box."""
        slack = _SLACK * (self.high - self.low)
        return (y >= self.low - slack) & (y <= self.high + slack)

    def centre(self, xp: ModuleType) -> Array:
        """Means."""
        return 0.5 * (self.low + self.high)

    def spread(self, xp: ModuleType) -> Array:
        """Standard deviations."""
        return (self.high - self.low) / math.sqrt(12.0)

    def log_density(self, xp: ModuleType, y: Array) -> Array:
        """Of labels, for each dimension; far below any number outside of the box."""
        return xp.where(self.holds(xp, y), -xp.log(self.high - self.low), NO_DENSITY)

    def mass(self, xp: ModuleType, low: Array, high: Array) -> Array:
        """Between two numbers, for each dimension."""
        width = xp.minimum(high, self.high) - xp.maximum(low, self.low)
        return xp.maximum(width, 0.0) / (self.high - self.low)

    def crps(self, xp: ModuleType, y: Array) -> Array:
        """Continuous ranked probability score, in units of the label, for each dimension."""
        width = self.high - self.low
        inside = xp.minimum(xp.maximum(y, self.low), self.high)
        share = (inside - self.low) / width
        return width * (share * share - share + 1.0 / 3.0) + xp.abs(y - inside)


@dataclass(frozen=True)
class Binned:
    """Probabilities of bins, spread evenly over each of them: a histogram.

    Attributes:
        log_probs: log-probabilities, shape ``(..., D, B)``; of a prior ``(B,)`` or ``(D, B)``.
        edges: of the bins, increasing, shape ``(B + 1,)`` or ``(D, B + 1)``. Outside of them
            there are no labels.

    Example:
        >>> import numpy as np
        >>> halves = Binned(np.log([[0.75, 0.25]]), np.array([0.0, 1.0, 2.0]))
        >>> halves.mass(np, np.array([0.5]), np.array([1.5])).round(6).tolist()
        [0.5]
    """

    log_probs: Array
    edges: Array

    def arrays(self) -> Mapping[str, Array]:
        """Its arrays by name."""
        return {"log_probs": self.log_probs, "edges": self.edges}

    def accept(self, xp: ModuleType, name: str, like: Array, validate: bool) -> Self:
        """The same with arrays of a library, without gradient; refused if that cannot be."""
        given = without_gradient(self.log_probs)
        log_probs = as_array(xp, f"{name}.log_probs", given, like, "the others")
        require_log_probs(xp, f"{name}.log_probs", log_probs)
        values = validate and has_values(log_probs)
        log_probs = constant_log_probs(xp, f"{name}.log_probs", log_probs, values)
        edges = as_numbers(xp, f"{name}.edges", self.edges, like, validate)
        bins = log_probs.shape[-1]
        require_edges(xp, f"{name}.edges", edges, bins=bins, validate=validate)
        return type(self)(xp.astype(log_probs, edges.dtype), edges)

    def batch_shape(self) -> tuple[int, ...]:
        """The shape of labels that it is for, or that broadcasts to it."""
        return tuple(self.log_probs.shape[:-1])

    def holds(self, xp: ModuleType, y: Array) -> Array:
        """Whether labels lie within the edges."""
        slack = _SLACK * (self.edges[..., -1] - self.edges[..., 0])
        return (y >= self.edges[..., 0] - slack) & (y <= self.edges[..., -1] + slack)

    def centre(self, xp: ModuleType) -> Array:
        """Means."""
        middles = 0.5 * (self.edges[..., :-1] + self.edges[..., 1:])
        return xp.sum(xp.exp(self.log_probs) * middles, axis=-1)

    def spread(self, xp: ModuleType) -> Array:
        """Standard deviations."""
        low, high = self.edges[..., :-1], self.edges[..., 1:]
        probs, centre = xp.exp(self.log_probs), 0.5 * (low + high)
        away = centre - xp.sum(probs * centre, axis=-1, keepdims=True)
        return xp.sqrt(xp.sum(probs * (away * away + (high - low) ** 2 / 12.0), axis=-1))

    def log_density(self, xp: ModuleType, y: Array) -> Array:
        """Of labels, for each dimension; far below any number outside of the edges."""
        index = bin_index(xp, y, self.edges)[..., None]
        widths = self.edges[..., 1:] - self.edges[..., :-1]
        logs = xp.maximum(self.log_probs, NO_DENSITY) - xp.log(widths)
        logs = xp.broadcast_to(logs, (*index.shape[:-1], logs.shape[-1]))
        logs = xp.take_along_axis(logs, index, axis=-1)[..., 0]
        return xp.where(self.holds(xp, y), logs, NO_DENSITY)

    def mass(self, xp: ModuleType, low: Array, high: Array) -> Array:
        """Between two numbers, for each dimension."""
        start, end = self.edges[..., :-1], self.edges[..., 1:]
        overlap = xp.minimum(end, high[..., None]) - xp.maximum(start, low[..., None])
        share = xp.maximum(overlap, 0.0) / (end - start)
        return xp.sum(xp.exp(self.log_probs) * share, axis=-1)

    def crps(self, xp: ModuleType, y: Array) -> Array:
        """Continuous ranked probability score, in units of the label, for each dimension.

        The distribution function is a straight line in each bin, so the square of its distance
        from the step at the label is integrated exactly, bin by bin.
        """
        start, end = self.edges[..., :-1], self.edges[..., 1:]
        probs = xp.exp(self.log_probs)
        after = xp.cumulative_sum(probs, axis=-1)  # the distribution function at the end of a bin
        before = after - probs
        cut = xp.minimum(xp.maximum(y[..., None], start), end)
        at_cut = before + probs * (cut - start) / (end - start)
        left = (cut - start) * (before * before + before * at_cut + at_cut * at_cut)
        above, at_end = 1.0 - at_cut, 1.0 - after
        right = (end - cut) * (above * above + above * at_end + at_end * at_end)
        total = xp.sum(left + right, axis=-1) / 3.0
        outside = xp.maximum(self.edges[..., 0] - y, y - self.edges[..., -1])
        return total + xp.maximum(outside, 0.0)


Density = Normal | Uniform | Binned


def bin_index(xp: ModuleType, y: Array, edges: Array) -> Array:
    """The bin that each label lies in; a label on an edge belongs to the bin above it.

    Args:
        xp: the library of the arrays.
        y: labels, shape ``(..., D)``.
        edges: of the bins, shape ``(B + 1,)`` or ``(D, B + 1)``.

    Returns:
        Integers in ``0..B-1``, of the shape of ``y``; outside of the edges the nearest bin's.

    Example:
        >>> import numpy as np
        >>> bin_index(np, np.array([0.5, 1.0, 2.0]), np.array([0.0, 1.0, 2.0])).tolist()
        [0, 1, 1]
    """
    return xp.sum(xp.astype(y[..., None] >= edges[..., 1:-1], xp.int32), axis=-1)
