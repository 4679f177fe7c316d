"""Places told by more than their coordinates: Fourier features, and from the centre of light."""

from typing import NamedTuple

import torch
from torch import Tensor

from irrl.tasks.digits.discriminator import EpisodeCache, Places, Step
from irrl.tasks.digits.extensions.config import DigitsConfig
from irrl.tasks.digits.extensions.fourier import features_from, features_of, octaves


class Light(NamedTuple):
    """The brightness of an episode so far; the last axis has these sizes: 3, 1, 2."""

    total: Tensor  # brightness, and its sums over columns and rows
    left: Tensor  # what fading leaves of the brightness: it holds the centre
    centre: Tensor  # the mean location, weighted by brightness


def light_of(part: Step | EpisodeCache) -> Light:
    """What `ObjectCentredPlaces` wrote of a step, or of a whole episode."""
    return Light(*part.place_inner)


class FourierPlaces(Places):
    """Tells a place by its coordinates and by sines and cosines of them."""

    frequencies: Tensor

    def __init__(self, config: DigitsConfig) -> None:
        super().__init__()
        self.features = features_of_place(config)
        octave = octaves(config.location_features)
        self.register_buffer("frequencies", octave, persistent=False)

    def write(self, cache: EpisodeCache, t: int, location: Tensor) -> None:
        cache.steps[t].place.copy_(features_of(location, self.frequencies))


class ObjectCentredPlaces(FourierPlaces):
    """Tells a place on the canvas, and from the centre of what was seen.

    That centre is the mean of all locations so far, weighted by their brightness. An object then
    looks much the same wherever it lies. If old light is forgotten, light that is found while too
    little of it is left to hold the centre begins a new one.
    """

    inner_sizes = (3, 1, 2)

    def __init__(self, config: DigitsConfig) -> None:
        super().__init__(config)
        self.fade, self.enough = config.centre_fade, config.centre_light
        self.forgets = config.centre_forgets

    def write(self, cache: EpisodeCache, t: int, location: Tensor) -> None:
        now = cache.steps[t]
        total, left, centre = now.place_inner
        seen = now.glimpse.clamp(min=0.0).mean(dim=1, keepdim=True)
        torch.cat([seen, seen * location], dim=1, out=total)
        left.copy_(seen)
        if t > 0:
            total_before, left_before, _ = cache.steps[t - 1].place_inner
            left.add_(self.fade * left_before)
            if self.forgets:
                new = (left_before < self.enough) & (seen >= self.enough)
                total_before = torch.where(new, 0.0, total_before)
            total.add_(total_before)
        centre.copy_(centre_of(total))
        now.place.copy_(features_from(location, centre, self.frequencies))


def features_of_place(config: DigitsConfig) -> int:
    """How many numbers tell a place."""
    return (2 + 4 * config.location_features) * (1 + config.object_centred)


def centre_of(total: Tensor) -> Tensor:
    """The mean location, weighted by brightness; the middle of the canvas if all was dark."""
    brightness, sums = total.split([1, 2], dim=-1)
    return torch.where(brightness > 0, sums / brightness.clamp(min=1e-6), 0.0)
