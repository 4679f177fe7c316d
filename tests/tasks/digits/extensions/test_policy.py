"""Where a policy with a map of its own goes, and what it knows."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from irrl.tasks.digits.extensions.fourier import phases_at, read_from
from irrl.tasks.digits.extensions.grid import overlap_with
from irrl.tasks.digits.extensions.places import light_of
from irrl.tasks.digits.rollout import rollout
from tests.tasks.digits.episodes import episode, episode_of, small

CENTRED = {"moves": "centred", "object_centred": True, "policy_memory": 3, "grid": 3}


@pytest.mark.parametrize("moves", ["absolute", "relative", "centred"])
def test_moves(moves):
    config = small(moves=moves, stride=0.4, object_centred=True, policy_memory=3)
    _, policy, _, numbers, trajectory = episode(config)
    locations, cache = trajectory.locations, trajectory.policy_cache
    centres = light_of(trajectory.cache).centre
    assert locations.abs().max() <= 1
    torch.testing.assert_close(locations[1:], trajectory.samples.clamp(-1, 1))
    from_where = {
        "absolute": torch.zeros_like(locations),
        "relative": locations,
        "centred": centres,
    }[moves][:-1]
    torch.testing.assert_close(cache.anchors, from_where)
    mean, stop = policy.aims(cache.outputs, cache.anchors)
    assert stop is None
    assert (mean - from_where).abs().max() <= (1.0 if moves == "absolute" else 0.4)
    torch.testing.assert_close(trajectory.samples, mean + 0.2 * numbers.noise)


def test_places_of_a_grid_are_sampled_as_likely_as_they_are():
    config = small(grid=3, moves="relative", stride=0.2, glimpses=9)
    _, policy, _, numbers, trajectory = episode(config, batch=6)
    cache = trajectory.policy_cache
    actions = policy.actions(cache, trajectory.cache, trajectory.samples, 0.2)
    aim, uniform = actions.choice, numbers.place_uniform
    torch.testing.assert_close(aim.exp().sum(-1), torch.ones(8, 6).double())
    for t, n in np.ndindex(8, 6):
        chosen = cache.choices[t, n].item()
        before = aim[t, n, :chosen].exp().sum()
        assert before <= uniform[t, n] <= before + aim[t, n, chosen].exp()
        column, row = divmod(chosen, 3)
        place = torch.tensor([0.2 * (column - 1), 0.2 * (row - 1)]).double()
        expected = trajectory.locations[t, n] + place + 0.2 * numbers.noise[t, n]
        torch.testing.assert_close(trajectory.samples[t, n], expected)
        assert actions.location_log_prob[t, n] == aim[t, n, chosen]


def test_without_chance_the_likeliest_place_of_a_grid_is_taken():
    config = small(grid=3, stride=0.5, model="dt-ram")
    discriminator, policy, images, numbers, _ = episode(config)
    calm = rollout(discriminator, policy, images, numbers.first, config.glimpses)
    cache = calm.policy_cache
    aim, stop = policy.aims(cache.outputs, cache.anchors)
    assert (cache.choices == aim.argmax(-1)).all()
    torch.testing.assert_close(calm.samples, policy.grid.offsets[cache.choices])
    assert aim.shape[-1] == 9 and stop.shape == aim.shape[:-1]


def test_moves_start_from_the_middle_again_where_too_little_light_is_left():
    config = small(
        moves="centred", object_centred=True, centre_light=1.8, centre_fade=0.5, policy_memory=3
    )
    _, policy, *_, trajectory = episode(config)
    cache, left, held = trajectory.cache, torch.zeros(4, 1).double(), []
    for t in range(config.glimpses - 1):
        seen = cache.glimpses[t].clamp(min=0.0).mean(dim=1, keepdim=True)
        left = 0.5 * left + seen
        held.append(left >= 1.8)
        anchor = torch.where(held[t], light_of(cache).centre[t], 0.0)
        torch.testing.assert_close(trajectory.policy_cache.anchors[t], anchor)
        place = policy.place(trajectory.locations[t], cache.places[t], anchor)
        torch.testing.assert_close(place[:, 2:], trajectory.locations[t] - anchor)
    assert 0 < sum(h.sum() for h in held) < 4 * len(held)


@pytest.mark.parametrize("model", ["ram", "dt-ram"])
def test_an_equivariant_policy_asks_the_map_the_same_from_every_place_of_the_grid(model):
    config = small(
        grid=3, stride=0.3, policy_memory=4, equivariant=True, moves="relative", model=model
    )
    _, policy, *_, trajectory = episode(config)
    grid, out = policy.grid, policy.locator.out
    with torch.no_grad():
        grid.query.copy_(torch.randn(8))
        out.weight.zero_()
    cache, locations = trajectory.policy_cache, trajectory.locations[:-1]
    maps = (torch.cat([cache.seen, cache.seen], dim=-1) * cache.here).cumsum(0)
    own = grid.logits(cache.inputs) + out.bias
    expected = []
    for place, way in enumerate(grid.offsets):
        around = read_from(maps, phases_at(policy.frequencies, locations + way))
        expected.append(own[..., place] + around @ grid.query)
    logits = functional.linear(cache.inputs, grid.weight(policy.frequencies), grid.logits.bias)
    hidden = torch.zeros_like(cache.inputs[..., : config.locator_width])
    aim, stop = policy.aims(torch.cat([hidden, logits], dim=-1), locations)
    torch.testing.assert_close(aim, torch.stack(expected, dim=-1).log_softmax(-1))
    if model == "dt-ram":
        torch.testing.assert_close(stop, torch.sigmoid(own[..., -1]))


@pytest.mark.parametrize("moves", ["absolute", "relative", "centred"])
def test_the_policys_map_tells_what_lies_where_from_the_start_of_a_move(moves):
    config = small(policy_memory=3, moves=moves, object_centred=moves == "centred")
    _, policy, *_, trajectory = episode(config)
    inputs = trajectory.policy_cache.inputs
    seen = functional.relu(policy.map_encoder(trajectory.cache.glimpses))
    for t in range(config.glimpses - 1):
        starts = {
            "absolute": torch.zeros(4, 2).double(),
            "relative": trajectory.locations[t],
            "centred": trajectory.cache.place_inner[-1][t] if config.object_centred else None,
        }
        way = trajectory.locations[: t + 1] - starts[moves]  # (t + 1, batch, 2)
        phase = way @ policy.frequencies
        even, odd = inputs[t, :, 7:10], inputs[t, :, 10:13]
        torch.testing.assert_close(even, (seen[: t + 1] * phase.cos()).sum(0))
        torch.testing.assert_close(odd, (seen[: t + 1] * phase.sin()).sum(0))
    torch.testing.assert_close(inputs[..., 13:15], trajectory.locations[:-1])


def plain_overlap(policy, trajectory):
    """For each action, episode and place of the grid: what earlier glimpses have shown of it."""
    cache, offsets, size = trajectory.policy_cache, policy.grid.offsets, 2 * 4 / 30
    cover = torch.zeros(*cache.choices.shape, len(offsets)).double()
    for t, n in np.ndindex(*cache.choices.shape):
        for place, way in enumerate(offsets):
            there = (cache.anchors[t, n] + way).clamp(-1, 1)
            for here in trajectory.locations[: t + 1, n]:
                shared = (1 - (there - here).abs() / size).clamp(min=0)
                cover[t, n, place] += shared[0] * shared[1]
    return cover


def plain_outputs(policy, trajectory):
    """All layers that read what the policy knows, as anyone would write them, for autograd."""
    cache, anchors = trajectory.cache, trajectory.policy_cache.anchors
    locations, parts, grid = trajectory.locations[:-1], [cache.states[:-1]], policy.grid
    inhibits = grid is not None and grid.inhibition > 0
    if policy.map_encoder is not None:
        seen = functional.relu(policy.map_encoder(cache.glimpses[:-1]))
        around = []
        for t, anchor in enumerate(anchors):
            phase = (locations[: t + 1] - anchor) @ policy.frequencies
            phases = torch.cat([phase.cos(), phase.sin()], dim=-1)
            around.append((torch.cat([seen, seen], dim=-1)[: t + 1] * phases).sum(0))
        places = policy.place(locations, cache.places[:-1], anchors)
        clock = policy.clock.expand(-1, locations.shape[1], -1)
        overlap = [plain_overlap(policy, trajectory)] if inhibits else []
        parts += [torch.stack(around), *overlap, places, clock]
    inputs = torch.cat(parts, dim=-1)
    logits = [] if grid is None else [grid.logits(inputs)]
    if grid is not None and grid.query is not None:
        logits[0] = logits[0] + plain_query(policy, torch.stack(around))
    if inhibits:
        against = grid.inhibition * grid.inhibition_log_scale.exp() * overlap[0]
        logits[0] = logits[0] - functional.pad(against, (0, int(policy.locator.stops)))
    last = policy.baseline if policy.baseline_hidden is None else policy.baseline_hidden
    hidden = functional.relu(policy.locator.hidden(inputs))
    return inputs, torch.cat([hidden, *logits, last(inputs)], dim=-1)


def plain_query(policy, around):
    """The same query to the map as seen from each place of the grid; of a stop, none."""
    from_places = [
        read_from(around, phases_at(policy.frequencies, way)) @ policy.grid.query
        for way in policy.grid.offsets
    ]
    return functional.pad(torch.stack(from_places, dim=-1), (0, int(policy.locator.stops)))


@pytest.mark.parametrize(
    "settings",
    [
        {"moves": "relative"},
        {"policy_memory": 3, "location_features": 2, "baseline_width": 4},
        {"grid": 3, "moves": "relative", "model": "dt-ram"},
        {**CENTRED, "equivariant": True, "baseline_width": 4, "model": "dt-ram"},
        {**CENTRED, "equivariant": True, "centre_light": 1.8, "centre_fade": 0.5},
        {**CENTRED, "inhibition": 2.0, "model": "dt-ram"},
        {**CENTRED, "equivariant": True, "inhibition": 0.5, "baseline_width": 4},
    ],
)
def test_outputs_and_their_gradient_equal_those_of_autograd(settings):
    config = small(**settings)
    discriminator, policy, *_, trajectory = episode(config)
    if config.equivariant:
        with torch.no_grad():
            policy.grid.query.copy_(torch.randn(6))
        *_, trajectory = episode_of(config, discriminator, policy)
    inputs, plain = plain_outputs(policy, trajectory)
    torch.testing.assert_close(trajectory.policy_cache.inputs, inputs)
    outputs = torch.cat(policy.outputs(trajectory.policy_cache, trajectory.cache), dim=-1)
    torch.testing.assert_close(outputs, plain)
    weights, parameters = torch.randn_like(plain), list(policy.parameters())
    expected, found = (
        torch.autograd.grad(
            (x * weights).sum(), parameters, materialize_grads=True, allow_unused=True
        )
        for x in (plain, outputs)
    )
    for one, other in zip(expected, found, strict=True):
        torch.testing.assert_close(other, one)
    touched = {
        name for (name, _), g in zip(policy.named_parameters(), found, strict=True) if g.any()
    }
    assert {"locator.hidden.weight", "locator.hidden.bias"} <= touched
    assert ("grid.query" in touched) == config.equivariant
    assert ("grid.inhibition_log_scale" in touched) == (config.inhibition > 0)


def test_what_a_glimpse_shows_of_the_places_of_a_grid():
    side = torch.tensor([-0.5, 0.0, 0.5])
    looked = torch.tensor([[[0.0, 0.0]], [[0.6, -0.45]], [[0.0, 0.05]]])  # of one episode
    (found,) = overlap_with(looked, torch.zeros(1, 2), side, 0.2)
    expected = torch.zeros(3, 3)  # columns first
    expected[1, 1] = 1.0 + 0.75
    expected[2, 0] = 0.5 * 0.75
    torch.testing.assert_close(found.view(3, 3), expected)
    (beyond,) = overlap_with(torch.tensor([[[1.0, 0.0]]]), torch.tensor([[0.9, 0.0]]), side, 0.2)
    assert beyond.view(3, 3)[:, 1].tolist() == pytest.approx([0.0, 0.5, 1.0])  # cut at the border


def test_inhibition_keeps_a_policy_that_knows_nothing_else_from_looking_twice():
    config = small(policy_memory=3, grid=3, inhibition=1.0, glimpses=9)
    discriminator, policy, images, numbers, _ = episode(config)
    for layer in policy.output_layers():
        for parameter in layer.parameters():
            parameter.data.zero_()
    calm = rollout(discriminator, policy, images, numbers.first, config.glimpses)
    assert all(len(set(choices.tolist())) == 8 for choices in calm.policy_cache.choices.T)


@pytest.mark.parametrize("settings", [{"policy_memory": 3}, CENTRED])
def test_a_rollout_goes_where_its_outputs_say(settings):
    config = small(**settings)
    _, policy, _, numbers, trajectory = episode(config)
    cache = trajectory.policy_cache
    mean, _ = policy.aims(cache.outputs, cache.anchors)
    if config.grid > 0:
        mean = cache.anchors + policy.grid.offsets[cache.choices]
    torch.testing.assert_close(trajectory.samples, mean + 0.2 * numbers.noise)
