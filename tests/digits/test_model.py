import numpy as np
import pytest
import torch
from torch.nn import functional

from irrl.tasks import make_config
from irrl.tasks.digits.config import DigitsConfig
from irrl.tasks.digits.discriminator import make_discriminator
from irrl.tasks.digits.policy import Policy
from irrl.tasks.digits.retina import Retina
from irrl.tasks.digits.rollout import Draws, rollout
from irrl.tasks.digits.waves import features_of, octaves, phases_at, read_from


def small(**settings):
    defaults = {"canvas_size": 30, "steps": 5, "width": 7, "glimpse_width": 6, "locator_width": 5}
    return DigitsConfig(**{**defaults, **settings})


def episode(config, batch=4, seed=0):
    """Models in double precision, and a sampled episode of random canvases."""
    torch.manual_seed(seed)
    return episode_of(config, make_discriminator(config).double(), Policy(config).double(), batch)


def episode_of(config, discriminator, policy, batch=4):
    canvas = discriminator.retina.prepare(torch.randint(256, (batch, 30, 30)))
    noise = torch.randn(config.steps - 1, batch, 2).double()
    coins = torch.rand(config.steps - 1, batch).double()
    lots = torch.rand(config.steps - 1, batch).double()
    draws = Draws(torch.rand(batch, 2).double() * 2 - 1, noise, coins, lots)
    trajectory = rollout(discriminator, policy, canvas, draws.first, config.steps, draws, 0.2)
    return discriminator, policy, canvas, trajectory


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
def test_states_and_their_gradient_equal_those_of_autograd(core, features, centred):
    config = small(core=core, location_features=features, object_centred=centred)
    discriminator, _, _, trajectory = episode(config)
    by_hand = discriminator.states(trajectory.memory)
    plain = plain_states(discriminator, trajectory)
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
    found = retina.look(retina.prepare(images), locations, torch.empty(6, scales * size**2))
    found = found.view(6, scales, size, size)
    normalised = (images.numpy() / 255 - 0.1307) / 0.3081
    for n in range(6):
        for k in range(scales):
            glimpse = naive_glimpse(normalised[n], *locations[n].tolist(), size * 2**k)
            pooled = glimpse.reshape(size, 2**k, size, 2**k).mean(axis=(1, 3))
            np.testing.assert_allclose(found[n, k], pooled, atol=1e-5)


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
    canvas = discriminator.retina.prepare(torch.zeros(2, 30, 30))
    memory = discriminator.blank(config.steps, 2)
    with torch.no_grad():
        discriminator.look(memory, 0, canvas, torch.full((2, 2), 0.3))
    assert memory.places[0].tolist() == [pytest.approx([0.3] * 4)] * 2


@pytest.mark.parametrize("moves", ["absolute", "relative", "centred"])
def test_moves(moves):
    config = small(moves=moves, stride=0.4, object_centred=True)
    _, policy, _, trajectory = episode(config)
    locations, centres = trajectory.locations, trajectory.memory.centres
    assert locations.abs().max() <= 1
    torch.testing.assert_close(locations[1:], trajectory.samples.clamp(-1, 1))
    from_where = {
        "absolute": torch.zeros_like(locations),
        "relative": locations,
        "centred": centres,
    }[moves][:-1]
    anchor = policy.anchor(locations[:-1], centres[:-1])
    mean, stop = policy(trajectory.mind.thought, anchor)
    assert stop is None
    assert (mean - from_where).abs().max() <= (1.0 if moves == "absolute" else 0.4)
    torch.manual_seed(0)
    make_discriminator(config), Policy(config), torch.randint(256, (4, 30, 30))
    noise = torch.randn(config.steps - 1, 4, 2).double()  # that of `episode`
    torch.testing.assert_close(trajectory.samples, mean + 0.2 * noise)


def test_dt_ram_stops_by_coins_and_at_the_end_by_force():
    config = small(model="dt-ram", steps=6)
    torch.manual_seed(1)
    discriminator, policy = make_discriminator(config), Policy(config)
    with torch.no_grad():
        policy.act.weight[2], policy.act.bias[2] = 0.0, 0.0  # a stop with probability one half
    canvas = discriminator.retina.prepare(torch.randint(256, (4, 30, 30)))
    coins = torch.full((5, 4), 0.9)
    coins[0, 1], coins[3, 2], coins[4, 2] = 0.1, 0.1, 0.1
    draws = Draws(torch.zeros(4, 2), torch.zeros(5, 4, 2), coins, coins[:, :0])
    trajectory = rollout(discriminator, policy, canvas, draws.first, 6, draws, 0.1)
    assert trajectory.lengths.tolist() == [6, 1, 4, 6]
    assert trajectory.stopped.sum(0).tolist() == [0, 1, 1, 0]
    assert trajectory.moved.sum(0).tolist() == [5, 0, 3, 5]
    picked = trajectory.last(torch.arange(6)[:, None].expand(6, 4))
    assert picked.tolist() == [5, 0, 3, 5]


def test_stop_probabilities_are_bounded():
    config = small(model="dt-ram")
    policy = Policy(config)
    with torch.no_grad():
        policy.act.bias[2] = 1e6
        _, stop = policy(torch.zeros(3, config.locator_width), torch.zeros(3, 2))
        assert stop.tolist() == pytest.approx([0.999] * 3)
        policy.act.bias[2] = -1e6
        _, stop = policy(torch.zeros(3, config.locator_width), torch.zeros(3, 2))
        assert stop.tolist() == pytest.approx([0.001] * 3)


def test_places_of_a_grid_are_drawn_as_likely_as_they_are():
    config = small(grid=3, moves="relative", stride=0.2, steps=9)
    _, policy, _, trajectory = episode(config, batch=6)
    aim, _ = policy(trajectory.mind.thought, trajectory.locations[:-1])
    torch.testing.assert_close(aim.exp().sum(-1), torch.ones(8, 6).double())
    torch.manual_seed(0)
    make_discriminator(config), Policy(config), torch.randint(256, (6, 30, 30))
    noise = torch.randn(8, 6, 2).double()  # those of `episode`
    torch.rand(8, 6), (lots := torch.rand(8, 6).double())
    log_prob = policy.log_prob(aim, trajectory.samples, trajectory.choices, 0.2)
    for t, n in np.ndindex(8, 6):
        chosen = trajectory.choices[t, n].item()
        before = aim[t, n, :chosen].exp().sum()
        assert before <= lots[t, n] <= before + aim[t, n, chosen].exp()
        column, row = divmod(chosen, 3)
        place = torch.tensor([0.2 * (column - 1), 0.2 * (row - 1)]).double()
        expected = trajectory.locations[t, n] + place + 0.2 * noise[t, n]
        torch.testing.assert_close(trajectory.samples[t, n], expected)
        assert log_prob[t, n] == aim[t, n, chosen]


def test_without_chance_the_likeliest_place_of_a_grid_is_taken():
    config = small(grid=3, stride=0.5, model="dt-ram")
    discriminator, policy, canvas, trajectory = episode(config)
    first = trajectory.locations[0]
    calm = rollout(discriminator, policy, canvas, first, config.steps)
    aim, stop = policy(calm.mind.thought, torch.zeros(2))
    assert (calm.choices == aim.argmax(-1)).all()
    torch.testing.assert_close(calm.samples, policy.grid[calm.choices])
    assert aim.shape[-1] == 9 and stop.shape == aim.shape[:-1]


def test_moves_start_from_the_middle_again_where_too_little_light_is_left():
    config = small(
        moves="centred", object_centred=True, centre_light=1.8, centre_fade=0.5, policy_memory=3
    )
    _, policy, _, trajectory = episode(config)
    memory, left, held = trajectory.memory, torch.zeros(4, 1).double(), []
    for t in range(config.steps - 1):
        seen = memory.glimpses[t].clamp(min=0.0).mean(dim=1, keepdim=True)
        left = 0.5 * left + seen
        held.append(left >= 1.8)
        anchor = torch.where(held[t], memory.centres[t], 0.0)
        torch.testing.assert_close(trajectory.anchors[t], anchor)
        place = policy.place(trajectory.locations[t], memory.places[t], anchor)
        torch.testing.assert_close(place[:, 2:], trajectory.locations[t] - anchor)
    assert 0 < sum(h.sum() for h in held) < 4 * len(held)


@pytest.mark.parametrize("model", ["ram", "dt-ram"])
def test_an_equivariant_policy_asks_the_map_the_same_from_every_place_of_the_grid(model):
    config = small(
        grid=3, stride=0.3, policy_memory=4, equivariant=True, moves="relative", model=model
    )
    _, policy, _, trajectory = episode(config)
    with torch.no_grad():
        policy.alike.copy_(torch.randn(8))
        policy.act.weight.zero_()
    mind, locations = trajectory.mind, trajectory.locations[:-1]
    notes = (torch.cat([mind.seen, mind.seen], dim=-1) * mind.here).cumsum(0)
    own = functional.linear(mind.known, policy.glance.weight, policy.glance.bias) + policy.act.bias
    expected = []
    for place, way in enumerate(policy.grid):
        around = read_from(notes, phases_at(policy.waves, locations + way))
        expected.append(own[..., place] + around @ policy.alike)
    glances = functional.linear(mind.known, policy.glance.weight + policy.asked())
    hidden = torch.zeros_like(mind.known[..., : config.locator_width])
    thought = torch.cat([hidden, glances + policy.glance.bias], dim=-1)
    aim, stop = policy(thought, locations)
    torch.testing.assert_close(aim, torch.stack(expected, dim=-1).log_softmax(-1))
    if model == "dt-ram":
        torch.testing.assert_close(stop, torch.sigmoid(own[..., -1]))


@pytest.mark.parametrize("moves", ["absolute", "relative", "centred"])
def test_the_policys_map_tells_what_lies_where_from_the_start_of_a_move(moves):
    config = small(policy_memory=3, moves=moves, object_centred=moves == "centred")
    _, policy, _, trajectory = episode(config)
    known = trajectory.mind.known
    seen = functional.relu(policy.what(trajectory.memory.glimpses))
    for t in range(config.steps - 1):
        starts = {
            "absolute": torch.zeros(4, 2).double(),
            "relative": trajectory.locations[t],
            "centred": trajectory.memory.centres[t],
        }
        way = trajectory.locations[: t + 1] - starts[moves]  # (t + 1, batch, 2)
        phase = way @ policy.waves
        even, odd = known[t, :, 7:10], known[t, :, 10:13]
        torch.testing.assert_close(even, (seen[: t + 1] * phase.cos()).sum(0))
        torch.testing.assert_close(odd, (seen[: t + 1] * phase.sin()).sum(0))
    torch.testing.assert_close(known[..., 13:15], trajectory.locations[:-1])


def plain_thoughts(policy, trajectory):
    """All layers that read what the policy knows, as anyone would write them, for autograd."""
    memory, anchors = trajectory.memory, trajectory.anchors
    locations, parts = trajectory.locations[:-1], [memory.states[:-1]]
    if policy.what is not None:
        seen = functional.relu(policy.what(memory.glimpses[:-1]))
        around = []
        for t, anchor in enumerate(anchors):
            phase = (locations[: t + 1] - anchor) @ policy.waves
            waves = torch.cat([phase.cos(), phase.sin()], dim=-1)
            around.append((torch.cat([seen, seen], dim=-1)[: t + 1] * waves).sum(0))
        places = policy.place(locations, memory.places[:-1], anchors)
        clock = policy.clock.expand(-1, locations.shape[1], -1)
        parts += [torch.stack(around), places, clock]
    known = torch.cat(parts, dim=-1)
    glance = [] if policy.glance is None else [policy.glance(known)]
    if policy.alike is not None:
        glance[0] = glance[0] + functional.linear(known, policy.asked())
    last = policy.expect if policy.foresee is None else policy.foresee
    return known, torch.cat([functional.relu(policy.hidden(known)), *glance, last(known)], dim=-1)


CENTRED = {"moves": "centred", "object_centred": True, "policy_memory": 3, "grid": 3}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"policy_memory": 3, "location_features": 2, "baseline_width": 4},
        {"grid": 3, "moves": "relative", "model": "dt-ram"},
        {**CENTRED, "equivariant": True, "baseline_width": 4, "model": "dt-ram"},
        {**CENTRED, "equivariant": True, "centre_light": 1.8, "centre_fade": 0.5},
    ],
)
def test_thoughts_and_their_gradient_equal_those_of_autograd(settings):
    config = small(**settings)
    discriminator, policy, _, trajectory = episode(config)
    if config.equivariant:
        with torch.no_grad():
            policy.alike.copy_(torch.randn(6))
        *_, trajectory = episode_of(config, discriminator, policy)
    known, plain = plain_thoughts(policy, trajectory)
    torch.testing.assert_close(trajectory.mind.known, known)
    both = policy.recall(trajectory.mind, trajectory.memory.glimpses[:-1])
    recalled = torch.cat(both, dim=-1)
    torch.testing.assert_close(recalled, plain)
    weights, parameters = torch.randn_like(plain), list(policy.parameters())
    expected, found = (
        torch.autograd.grad(
            (x * weights).sum(), parameters, materialize_grads=True, allow_unused=True
        )
        for x in (plain, recalled)
    )
    for one, other in zip(expected, found, strict=True):
        torch.testing.assert_close(other, one)
    touched = {
        name for (name, _), g in zip(policy.named_parameters(), found, strict=True) if g.any()
    }
    assert {"hidden.weight", "hidden.bias"} <= touched
    assert ("alike" in touched) == config.equivariant


@pytest.mark.parametrize("settings", [{"policy_memory": 3}, CENTRED])
def test_a_rollout_goes_where_its_thoughts_say(settings):
    config = small(**settings)
    _, policy, _, trajectory = episode(config)
    mean, _ = policy(trajectory.mind.thought, trajectory.anchors)
    if config.grid > 0:
        mean = trajectory.anchors + policy.grid[trajectory.choices]
    torch.manual_seed(0)
    make_discriminator(config), Policy(config), torch.randint(256, (4, 30, 30))
    noise = torch.randn(config.steps - 1, 4, 2).double()  # that of `episode`
    torch.testing.assert_close(trajectory.samples, mean + 0.2 * noise)


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
