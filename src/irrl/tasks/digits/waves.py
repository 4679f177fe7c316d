"""Maps of what was seen where, made of waves over the canvas.

A unit of a map has a wave vector k. A glimpse at l of which it sees v adds v (cos k·l, sin k·l);
the sum over glimpses is a Fourier sketch of the canvas. Turned by the phase k·c it reads as seen
from c: what lies in which direction from there, wherever that is.
"""

import math

import numpy as np
import torch
from torch import Tensor


def wave_vectors(rng: np.random.Generator, lengths: np.ndarray) -> Tensor:
    """Vectors (2, count) of these lengths, in all directions."""
    angle = rng.uniform(0.0, 2.0 * math.pi, len(lengths))
    return torch.tensor(np.stack([lengths * np.cos(angle), lengths * np.sin(angle)])).float()


def phases_at(waves: Tensor, location: Tensor, out: Tensor | None = None) -> Tensor:
    """Cosine and sine of each wave at a place, one behind the other."""
    phase = location @ waves
    return torch.cat([phase.cos(), phase.sin()], dim=-1, out=out)


def noted(seen: Tensor, phases: Tensor) -> Tensor:
    """What a glimpse adds to a map: each wave, as much as was seen."""
    return torch.cat([seen, seen], dim=-1) * phases


def read_from(notes: Tensor, phases: Tensor) -> tuple[Tensor, Tensor]:
    """A map as seen from the place with these phases: its even and its odd half."""
    cosine, sine = phases.chunk(2, dim=-1)
    even, odd = notes.chunk(2, dim=-1)
    return even * cosine + odd * sine, odd * cosine - even * sine


def octaves(count: int) -> Tensor:
    """Frequencies, each twice the one before; the first turns by half a circle over the canvas."""
    return 0.5 * math.pi * 2.0 ** torch.arange(count)


def features_of(place: Tensor, frequencies: Tensor) -> Tensor:
    """Coordinates, and sines and cosines of them."""
    if len(frequencies) == 0:
        return place
    phase = (place[..., None] * frequencies).flatten(-2)
    return torch.cat([place, phase.sin(), phase.cos()], dim=-1)
