"""Where the policy goes, when it stops, and what it knows."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from irrl.tasks.digits.by_hand import Bounded
from irrl.tasks.digits.discriminator import make_discriminator
from irrl.tasks.digits.policy import Policy, covered_by
from irrl.tasks.digits.rollout import Draws, rollout
from irrl.tasks.digits.waves import phases_at, read_from

from tests.tasks.digits.episodes import episode, episode_of, small


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
    left = trajectory.memory.left[:-1]
    anchor = policy.anchor(locations[:-1], centres[:-1], left, torch.empty_like(locations[:-1]))
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
    images = torch.randint(256, (4, 30, 30))
    coins = torch.full((5, 4), 0.9)
    coins[0, 1], coins[3, 2], coins[4, 2] = 0.1, 0.1, 0.1
    draws = Draws(torch.zeros(4, 2), torch.zeros(5, 4, 2), coins, coins[:, :0])
    trajectory = rollout(discriminator, policy, images, draws.first, 6, draws, 0.1)
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
        assert stop.tolist() == pytest.approx([0.99] * 3)
        policy.act.bias[2] = -1e6
        _, stop = policy(torch.zeros(3, config.locator_width), torch.zeros(3, 2))
        assert stop.tolist() == pytest.approx([0.01] * 3)


def test_what_reached_a_bound_can_return():
    value = torch.tensor([-5.0, -5.0, 5.0, 5.0, 1.0, 1.0], requires_grad=True)
    bounded = Bounded.apply(value, 2.0)
    assert bounded.tolist() == [-2.0, -2.0, 2.0, 2.0, 1.0, 1.0]
    loss = bounded @ torch.tensor([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])  # a step goes down and up
    loss.backward()
    assert value.grad.tolist() == [0.0, -1.0, 1.0, 0.0, 1.0, -1.0]


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
    discriminator, policy, images, trajectory = episode(config)
    first = trajectory.locations[0]
    calm = rollout(discriminator, policy, images, first, config.steps)
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


def plain_cover(policy, trajectory):
    """For each action, episode and place of the grid: what earlier glimpses have shown of it."""
    cover, size = torch.zeros(*trajectory.choices.shape, len(policy.grid)).double(), 2 * 4 / 30
    for t, n in np.ndindex(*trajectory.choices.shape):
        for place, way in enumerate(policy.grid):
            there = (trajectory.anchors[t, n] + way).clamp(-1, 1)
            for here in trajectory.locations[: t + 1, n]:
                shared = (1 - (there - here).abs() / size).clamp(min=0)
                cover[t, n, place] += shared[0] * shared[1]
    return cover


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
        cover = [] if policy.shun is None else [plain_cover(policy, trajectory)]
        parts += [torch.stack(around), *cover, places, clock]
    known = torch.cat(parts, dim=-1)
    glance = [] if policy.glance is None else [policy.glance(known)]
    if policy.alike is not None:
        glance[0] = glance[0] + functional.linear(known, policy.asked())
    if policy.shun is not None:
        against = policy.inhibition * policy.shun.exp() * cover[0]
        glance[0] = glance[0] - functional.pad(against, (0, int(policy.stops)))
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
        {**CENTRED, "inhibition": 2.0, "model": "dt-ram"},
        {**CENTRED, "equivariant": True, "inhibition": 0.5, "baseline_width": 4},
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
    assert ("shun" in touched) == (config.inhibition > 0)


def test_what_a_glimpse_covers_of_the_places_of_a_grid():
    side = torch.tensor([-0.5, 0.0, 0.5])
    looked = torch.tensor([[[0.0, 0.0]], [[0.6, -0.45]], [[0.0, 0.05]]])  # of one episode
    (found,) = covered_by(looked, torch.zeros(1, 2), side, 0.2)
    expected = torch.zeros(3, 3)  # columns first
    expected[1, 1] = 1.0 + 0.75
    expected[2, 0] = 0.5 * 0.75
    torch.testing.assert_close(found.view(3, 3), expected)
    (beyond,) = covered_by(torch.tensor([[[1.0, 0.0]]]), torch.tensor([[0.9, 0.0]]), side, 0.2)
    assert beyond.view(3, 3)[:, 1].tolist() == pytest.approx([0.0, 0.5, 1.0])  # cut at the border


def test_inhibition_keeps_a_policy_that_knows_nothing_else_from_looking_twice():
    config = small(policy_memory=3, grid=3, inhibition=1.0, steps=9)
    discriminator, policy, images, sampled = episode(config)
    for layer in (policy.act, policy.glance):
        for parameter in layer.parameters():
            parameter.data.zero_()
    calm = rollout(discriminator, policy, images, sampled.locations[0], config.steps)
    assert all(len(set(choices.tolist())) == 8 for choices in calm.choices.T)


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
