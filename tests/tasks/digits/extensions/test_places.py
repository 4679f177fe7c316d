"""How places are told."""

import numpy as np
import pytest
import torch

from irrl.tasks.digits.extensions.fourier import features_of, octaves
from irrl.tasks.digits.extensions.places import light_of
from irrl.tasks.digits.models import make_discriminator
from tests.tasks.digits.episodes import episode, small


def test_places_are_told_by_sines_and_cosines():
    place = features_of(torch.tensor([0.5, -1.0]).double(), octaves(2).double())
    phases = [0.25 * np.pi, 0.5 * np.pi, -0.5 * np.pi, -np.pi]
    np.testing.assert_allclose(place, [0.5, -1.0, *np.sin(phases), *np.cos(phases)], atol=1e-7)


def test_places_are_told_from_the_centre_of_what_was_seen():
    config = small(object_centred=True, glimpses=6)
    *_, trajectory = episode(config)
    cache = trajectory.cache
    for t in range(config.glimpses):
        seen = cache.glimpses[: t + 1].clamp(min=0).mean(-1, keepdim=True)
        locations = trajectory.locations[: t + 1]
        centre = (seen * locations).sum(0) / seen.sum(0)
        expected = torch.cat([locations[t], locations[t] - centre], 1)
        torch.testing.assert_close(light_of(cache).centre[t], centre)
        torch.testing.assert_close(cache.places[t], expected)


def test_before_anything_was_seen_the_centre_is_that_of_the_canvas():
    config = small(object_centred=True)
    discriminator = make_discriminator(config)
    canvas = discriminator.retina.prepare(torch.zeros(2, 30, 30, dtype=torch.uint8))
    cache = discriminator.new_cache(config.glimpses, 2)
    with torch.no_grad():
        discriminator.look(cache, 0, canvas, torch.full((2, 2), 0.3))
    assert cache.places[0].tolist() == [pytest.approx([0.3] * 4)] * 2


@pytest.mark.parametrize(
    ("brightness", "counts_from"),
    [
        ([2.0, 0.0, 0.0, 3.0, 0.5], [0, 0, 0, 3, 3]),
        ([2.0, 0.0, 0.0, 0.9, 0.5], [0, 0, 0, 0, 0]),  # too little light for a new centre
        ([2.0, 0.0, 3.0, 0.0, 2.0], [0, 0, 0, 0, 0]),  # the old one is held
        ([0.2, 0.0, 1.5, 0.0, 1.0], [0, 0, 2, 2, 4]),
    ],
)
def test_light_found_after_the_centre_was_let_go_begins_a_new_one(brightness, counts_from):
    locations = torch.rand(5, 1, 2).double() * 2 - 1
    for forgets in (True, False):
        config = small(
            moves="centred",
            object_centred=True,
            centre_light=1.0,
            centre_fade=0.6,
            centre_forgets=forgets,
        )
        discriminator = make_discriminator(config).double()
        cache = discriminator.new_cache(config.glimpses, 1)
        cache.glimpses[:] = torch.tensor(brightness)[:, None, None]
        for t, first in enumerate(counts_from):
            with torch.no_grad():
                discriminator.remember(cache, t, locations[t])
            counted = slice(first if forgets else 0, t + 1)
            weights = torch.tensor(brightness[counted]).double()
            centre = (weights[:, None] * locations[counted, 0]).sum(0) / weights.sum()
            torch.testing.assert_close(light_of(cache).centre[t, 0], centre)
