"""Fourier maps of what was seen where, and Fourier features of locations.

A unit of a map has a frequency vector k. A glimpse at l of which it sees v adds
v (cos k·l, sin k·l); the sum over glimpses is a Fourier sketch of the canvas. Turned by the phase
k·c it reads as seen from c: what lies in which direction from there, wherever that is.
"""

import math

import numpy as np
import torch
from torch import Tensor

from irrl.tasks.digits.manual_backward import through_relu

# --- maps ---


def frequency_vectors(rng: np.random.Generator, lengths: np.ndarray) -> Tensor:
    """Vectors (2, units) of these lengths, in all directions."""
    angle = rng.uniform(0.0, 2.0 * math.pi, len(lengths))
    return torch.tensor(np.stack([lengths * np.cos(angle), lengths * np.sin(angle)])).float()


def phases_at(frequencies: Tensor, location: Tensor, out: Tensor | None = None) -> Tensor:
    """Cosine and sine of the phase of each unit at a place, one behind the other."""
    phase = location @ frequencies
    return torch.cat([phase.cos(), phase.sin()], dim=-1, out=out)


def add_to_map(seen: Tensor, phases: Tensor, before: Tensor | None, out: Tensor) -> Tensor:
    """A map with one glimpse more: each unit counts as much as was seen."""
    torch.mul(torch.cat([seen, seen], dim=-1), phases, out=out)
    return out if before is None else out.add_(before)


def read_from(fourier_map: Tensor, phases: Tensor, out: Tensor | None = None) -> Tensor:
    """A map as seen from the place with these phases: its even half, then its odd half."""
    cosine, sine = phases.chunk(2, dim=-1)
    even, odd = fourier_map.chunk(2, dim=-1)
    return torch.cat([even * cosine + odd * sine, odd * cosine - even * sine], dim=-1, out=out)


def turn_back(view: Tensor, phases: Tensor) -> Tensor:
    """The inverse of `read_from`, and its transpose."""
    cosine, sine = phases.chunk(2, dim=-1)
    even, odd = view.chunk(2, dim=-1)
    return torch.cat([even * cosine - odd * sine, odd * cosine + even * sine], dim=-1)


def map_backward(grad: Tensor, here: Tensor, there: Tensor, seen: Tensor) -> Tensor:
    """From the gradient of what was read off a map to that of what the units see of a glimpse.

    All are (glimpses, batch, ...): ``here`` the phases where glimpses were taken, scaled as they
    were added, ``there`` those from where the map was read after each, ``seen`` the rectified
    units.
    """
    maps = turn_back(grad, there)
    for t in reversed(range(len(maps) - 1)):  # a glimpse stays in all maps that follow
        maps[t] += maps[t + 1]
    even, odd = maps.mul_(here).chunk(2, dim=-1)
    return through_relu(even + odd, seen)


# --- features of locations ---


def octaves(count: int) -> Tensor:
    """Frequencies, each twice the one before; the first turns by half a circle over the canvas."""
    return 0.5 * math.pi * 2.0 ** torch.arange(count)


def features_of(place: Tensor, frequencies: Tensor) -> Tensor:
    """Coordinates, and sines and cosines of them."""
    if frequencies.numel() == 0:
        return place
    phase = (place[..., None] * frequencies).flatten(-2)
    return torch.cat([place, phase.sin(), phase.cos()], dim=-1)


def features_from(place: Tensor, origin: Tensor, frequencies: Tensor) -> Tensor:
    """Those of a place on the canvas, then those of the way to it from an origin."""
    both = (features_of(x, frequencies) for x in (place, place - origin))
    return torch.cat(list(both), dim=-1)
