"""What the discriminator remembers, with any core and however places are told."""

import pytest
import torch
from torch.nn import functional

from irrl.tasks.digits.extensions.places import light_of
from tests.tasks.digits.episodes import episode, small


def plain_states(discriminator, trajectory):
    """The same forward pass as anyone would write it, for autograd."""
    d, cache = discriminator, trajectory.cache
    if d.config.core == "map":
        return plain_map(d, trajectory)
    state, states = torch.zeros_like(cache.states[0]), []
    for glimpse, place in zip(cache.glimpses, cache.places, strict=True):
        driven = d.core.from_glimpse(d.glimpse_network(glimpse, place))
        kept = d.core.from_state(state)
        if d.config.core == "rnn":
            state = functional.relu(driven + kept)
        else:
            (dr, du, dn), (kr, ku, kn) = driven.chunk(3, 1), kept.chunk(3, 1)
            reset, update = torch.sigmoid(dr + kr), torch.sigmoid(du + ku)
            state = (1 - update) * torch.tanh(dn + reset * kn) + update * state
        states.append(state)
    return torch.stack(states)


def plain_map(discriminator, trajectory):
    """A glimpse counts by its place as seen from where the map is read."""
    d, cache = discriminator, trajectory.cache
    seen, states = functional.relu(d.what(cache.glimpses)), []
    for t in range(trajectory.glimpses):
        centre = light_of(cache).centre[t] if d.object_centred else torch.zeros(2).double()
        phase = (trajectory.locations[: t + 1] - centre) @ d.frequencies
        even = (seen[: t + 1] * phase.cos()).sum(0)
        odd = (seen[: t + 1] * phase.sin()).sum(0)
        around = torch.cat([even, odd], 1) / trajectory.glimpses**0.5
        states.append(functional.relu(d.read(around)))
    return torch.stack(states)


@pytest.mark.parametrize("core", ["rnn", "gru", "map"])
@pytest.mark.parametrize("features", [0, 3])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("which", [slice(None), slice(-1, None)])
def test_states_and_their_gradient_equal_those_of_autograd(core, features, centred, which):
    config = small(core=core, location_features=features, object_centred=centred)
    discriminator, *_, trajectory = episode(config)
    manual = discriminator.states(trajectory.cache, which)
    plain = plain_states(discriminator, trajectory)[which]
    torch.testing.assert_close(manual, plain)
    weights = torch.randn_like(plain)
    trunk = [p for n, p in discriminator.named_parameters() if not n.startswith("classifier")]
    grads = torch.autograd.grad((manual * weights).sum(), trunk)
    expected = torch.autograd.grad((plain * weights).sum(), trunk)
    for grad, wanted in zip(grads, expected, strict=True):
        torch.testing.assert_close(grad, wanted)


def test_the_gru_is_that_of_pytorch():
    config = small(core="gru")
    discriminator, *_, trajectory = episode(config)
    cell = torch.nn.GRUCell(config.width, config.width).double()
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    layers = (discriminator.core.from_glimpse, discriminator.core.from_state)
    values = [layer.weight for layer in layers] + [layer.bias for layer in layers]
    cell.load_state_dict({n: v.detach() for n, v in zip(names, values, strict=True)})
    cache = trajectory.cache
    state = torch.zeros_like(cache.states[0])
    for features, found in zip(cache.inner[1], cache.states, strict=True):
        state = cell(features, state)
        torch.testing.assert_close(found, state.detach())
