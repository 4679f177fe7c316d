"""What the discriminator sees, remembers and is told of places."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from irrl.tasks import make_config
from irrl.tasks.digits.config import DigitsConfig
from irrl.tasks.digits.discriminator import make_discriminator
from irrl.tasks.digits.policy import Policy
from irrl.tasks.digits.retina import Retina
from irrl.tasks.digits.waves import features_of, octaves

from tests.tasks.digits.episodes import episode, small


def plain_states(discriminator, trajectory):
    """The same forward pass as anyone would write it, for autograd."""
    d, memory = discriminator, trajectory.memory
    if d.config.core == "map":
        return plain_map(d, trajectory)
    state, states = torch.zeros_like(memory.states[0]), []
    for glimpse, place in zip(memory.glimpses, memory.places, strict=True):
        both = torch.cat([functional.relu(d.what(glimpse)), functional.relu(d.where(place))], 1)
        driven = d.from_glimpse(functional.relu(d.glimpse(both)))
        kept = d.from_state(state)
        if d.core == "rnn":
            state = functional.relu(driven + kept)
        else:
            (dr, du, dn), (kr, ku, kn) = driven.chunk(3, 1), kept.chunk(3, 1)
            reset, update = torch.sigmoid(dr + kr), torch.sigmoid(du + ku)
            state = (1 - update) * torch.tanh(dn + reset * kn) + update * state
        states.append(state)
    return torch.stack(states)


def plain_map(discriminator, trajectory):
    """A glimpse counts by its place as seen from where the map is read."""
    d, memory = discriminator, trajectory.memory
    seen, states = functional.relu(d.what(memory.glimpses)), []
    for t in range(trajectory.steps):
        centre = memory.centres[t] if d.object_centred else torch.zeros(2).double()
        phase = (trajectory.locations[: t + 1] - centre) @ d.waves
        even = (seen[: t + 1] * phase.cos()).sum(0)
        odd = (seen[: t + 1] * phase.sin()).sum(0)
        around = torch.cat([even, odd], 1) / trajectory.steps**0.5
        states.append(functional.relu(d.read(around)))
    return torch.stack(states)


@pytest.mark.parametrize("core", ["rnn", "gru", "map"])
@pytest.mark.parametrize("features", [0, 3])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("which", [slice(None), slice(-1, None)])
def test_states_and_their_gradient_equal_those_of_autograd(core, features, centred, which):
    config = small(core=core, location_features=features, object_centred=centred)
    discriminator, _, _, trajectory = episode(config)
    by_hand = discriminator.states(trajectory.memory, which)
    plain = plain_states(discriminator, trajectory)[which]
    torch.testing.assert_close(by_hand, plain)
    weights = torch.randn_like(plain)
    trunk = [p for n, p in discriminator.named_parameters() if not n.startswith("classify")]
    grads = torch.autograd.grad((by_hand * weights).sum(), trunk)
    expected = torch.autograd.grad((plain * weights).sum(), trunk)
    for grad, wanted in zip(grads, expected, strict=True):
        torch.testing.assert_close(grad, wanted)


def test_the_gru_is_that_of_pytorch():
    config = small(core="gru")
    discriminator, _, _, trajectory = episode(config)
    cell = torch.nn.GRUCell(config.width, config.width).double()
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    layers = (discriminator.from_glimpse, discriminator.from_state)
    values = [layer.weight for layer in layers] + [layer.bias for layer in layers]
    cell.load_state_dict({n: v.detach() for n, v in zip(names, values, strict=True)})
    state = torch.zeros_like(trajectory.memory.states[0])
    for features, found in zip(trajectory.memory.inner[1], trajectory.memory.states, strict=True):
        state = cell(features, state)
        torch.testing.assert_close(found, state.detach())


def test_the_glimpse_layer_is_the_sum_of_the_papers_two():
    config = small()
    discriminator, *_ = episode(config)
    what, where = torch.rand(2, 3, config.glimpse_width).double()
    first, second = discriminator.glimpse.weight.split(config.glimpse_width, dim=1)
    expected = what @ first.t() + where @ second.t() + discriminator.glimpse.bias
    torch.testing.assert_close(discriminator.glimpse(torch.cat([what, where], 1)), expected)


def naive_glimpse(image, column, row, side):
    """Pixels around a point, zero outside, by counting."""
    size = len(image)
    rows = [int(0.5 * (row + 1) * size) - side // 2 + i for i in range(side)]
    columns = [int(0.5 * (column + 1) * size) - side // 2 + j for j in range(side)]
    return np.array(
        [[image[i, j] if 0 <= i < size and 0 <= j < size else 0.0 for j in columns] for i in rows]
    )


@pytest.mark.parametrize(("size", "scales"), [(4, 1), (5, 1), (12, 3), (1, 2)])
def test_glimpses_are_the_pixels_around_a_place(size, scales):
    config = DigitsConfig(glimpse_size=size, scales=scales)
    retina = Retina(config)
    images = torch.randint(256, (6, 60, 60), dtype=torch.uint8)
    corners = torch.tensor([[-1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [0.0, 0.0]])
    locations = torch.cat([corners, torch.rand(2, 2) * 2 - 1])
    compiled = retina.look(retina.prepare(images), locations, torch.empty(6, scales * size**2))
    gathered = torch.cat(retina.gather(retina.with_margin(images), locations), dim=1)
    normalised = (images.numpy() / 255 - 0.1307) / 0.3081
    for n in range(6):
        for k in range(scales):
            glimpse = naive_glimpse(normalised[n], *locations[n].tolist(), size * 2**k)
            pooled = glimpse.reshape(size, 2**k, size, 2**k).mean(axis=(1, 3))
            for found in (compiled, gathered):  # on a processor, on an accelerator
                found = found.view(6, scales, size, size)[n, k]
                np.testing.assert_allclose(found, pooled, atol=1e-5)


def test_what_is_not_a_number_looks_at_the_corner():
    retina = Retina(DigitsConfig())
    images = torch.randint(256, (1, 60, 60), dtype=torch.uint8)
    nowhere, corner = torch.full((1, 2), torch.nan), torch.full((1, 2), -1.0)
    seen = [retina.look(images, place, torch.empty(1, 16)) for place in (nowhere, corner)]
    gathered = torch.cat(retina.gather(retina.with_margin(images), nowhere), dim=1)
    torch.testing.assert_close(seen[0], seen[1])
    torch.testing.assert_close(seen[0], gathered)


def test_places_are_told_by_waves():
    place = features_of(torch.tensor([0.5, -1.0]).double(), octaves(2).double())
    phases = [0.25 * np.pi, 0.5 * np.pi, -0.5 * np.pi, -np.pi]
    np.testing.assert_allclose(place, [0.5, -1.0, *np.sin(phases), *np.cos(phases)], atol=1e-7)


def test_places_are_told_from_the_centre_of_what_was_seen():
    config = small(object_centred=True, steps=6)
    _, _, _, trajectory = episode(config)
    memory = trajectory.memory
    for t in range(config.steps):
        seen = memory.glimpses[: t + 1].clamp(min=0).mean(-1, keepdim=True)
        locations = trajectory.locations[: t + 1]
        centre = (seen * locations).sum(0) / seen.sum(0)
        expected = torch.cat([locations[t], locations[t] - centre], 1)
        torch.testing.assert_close(memory.centres[t], centre)
        torch.testing.assert_close(memory.places[t], expected)


def test_before_anything_was_seen_the_centre_is_that_of_the_canvas():
    config = small(object_centred=True)
    discriminator = make_discriminator(config)
    canvas = discriminator.retina.prepare(torch.zeros(2, 30, 30, dtype=torch.uint8))
    memory = discriminator.blank(config.steps, 2)
    with torch.no_grad():
        discriminator.look(memory, 0, canvas, torch.full((2, 2), 0.3))
    assert memory.places[0].tolist() == [pytest.approx([0.3] * 4)] * 2


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
        memory = discriminator.blank(config.steps, 1)
        memory.glimpses[:] = torch.tensor(brightness)[:, None, None]
        for t, first in enumerate(counts_from):
            with torch.no_grad():
                discriminator.remember(memory, t, locations[t])
            counted = slice(first if forgets else 0, t + 1)
            weights = torch.tensor(brightness[counted]).double()
            centre = (weights[:, None] * locations[counted, 0]).sum(0) / weights.sum()
            torch.testing.assert_close(memory.centres[t, 0], centre)


def test_the_papers_sizes():
    config = make_config("digits", "paper")
    discriminator, policy = make_discriminator(config), Policy(config)
    shapes = {n: tuple(p.shape) for n, p in [*discriminator.named_parameters()] if "weight" in n}
    assert shapes == {
        "what.weight": (128, 16),
        "where.weight": (128, 2),
        "glimpse.weight": (256, 256),
        "from_glimpse.weight": (256, 256),
        "from_state.weight": (256, 256),
        "classify.weight": (10, 256),
    }
    shapes = {n: tuple(p.shape) for n, p in policy.named_parameters() if "weight" in n}
    assert shapes == {
        "hidden.weight": (128, 256), "act.weight": (2, 128), "expect.weight": (1, 256),
    }  # fmt: skip
