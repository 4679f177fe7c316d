"""Training does what the reference does: the paper's RAM and DT-RAM in plain PyTorch."""

import pytest
import torch

from irrl.nn.heads import heads_loss
from irrl.tasks.digits.discriminator import RecurrentDiscriminator
from irrl.tasks.digits.learner import Learner, make_optimiser
from irrl.tasks.digits.losses import (
    classified_glimpses,
    policy_loss,
    reward_potential,
    with_bonus,
)
from irrl.tasks.digits.policy import GaussianPolicy
from irrl.tasks.digits.ram import RamDiscriminator, RamPolicy, ram_loss, run_episodes
from irrl.tasks.digits.train import BatchPart, learn_part
from tests.tasks.digits.episodes import episode, small

BATCH, STD = 6, 0.2


def reference_of(config, discriminator, policy):
    """The plain models with the same weights."""
    models = RamDiscriminator(config).double(), RamPolicy(config).double()
    for plain, manual in zip(models, (discriminator, policy), strict=True):
        plain.load_state_dict(manual.state_dict())
    return models


def looking_at(discriminator, images):
    retina, pixels = discriminator.retina, discriminator.config.pixels
    return lambda place: retina.look(images, place, place.new_empty(len(place), pixels))


def gradients(loss, *models):
    """By name; the graph may be needed again."""
    parameters = [(f"{n} {k}", p) for n, m in enumerate(models) for k, p in m.named_parameters()]
    found = torch.autograd.grad(
        loss, [p for _, p in parameters], retain_graph=True, materialize_grads=True
    )
    return {name: gradient for (name, _), gradient in zip(parameters, found, strict=True)}


BONUSES = [
    {},
    {"ensemble_size": 2},
    {"bonus": "disagreement", "bonus_weight": 30.0},
    {"bonus": "disagreement", "bonus_weight": 30.0, "bonus_kind": "quadratic", "ensemble_size": 3},
]


@pytest.mark.parametrize("bonus", BONUSES, ids=["one", "two", "log", "quadratic"])
@pytest.mark.parametrize("leak", [False, True])
@pytest.mark.parametrize("supervision", ["last", "all"])
@pytest.mark.parametrize("model", ["ram", "dt-ram"])
@pytest.mark.parametrize("reward", ["clipped-linear", "log"])
def test_episodes_losses_and_gradients_are_those_of_the_reference(
    model, supervision, leak, reward, bonus
):
    config = small(
        model=model, supervision=supervision, leak_reward_gradient=leak, reward=reward,
        location_std=STD, batch_size=BATCH, **bonus,
    )  # fmt: skip
    played = episode(config, BATCH, std=STD)
    discriminator, policy, images, numbers, trajectory = played
    assert type(discriminator) is RecurrentDiscriminator and type(policy) is GaussianPolicy
    plain = reference_of(config, discriminator, policy)
    episodes = run_episodes(*plain, looking_at(discriminator, images), numbers, STD)
    labels = torch.randint(10, (BATCH,))

    same = torch.testing.assert_close
    same(trajectory.locations, episodes.locations)
    same(trajectory.lengths, episodes.lengths)
    assert model == "ram" or 1 <= trajectory.lengths.min() < trajectory.lengths.max()
    which = classified_glimpses(config)
    states = discriminator.states(trajectory.cache, which)
    same(states, episodes.states[which])
    same(trajectory.cache.states, episodes.states.detach())
    log_probs = discriminator.log_probs(states)
    same(log_probs, episodes.log_probs[which])
    actions = policy.actions(trajectory.policy_cache, trajectory.cache, trajectory.samples, STD)
    same(actions.expected, episodes.expected)
    taken = trajectory.moved if actions.stop is None else trajectory.moved | trajectory.stopped
    assert (taken == episodes.taken).all()
    log_prob = actions.location_log_prob
    if actions.stop is not None:
        going_on = log_prob + torch.log1p(-actions.stop)
        log_prob = torch.where(trajectory.moved, going_on, torch.log(actions.stop))
    same(log_prob[taken], episodes.action_log_probs[taken])

    expected = ram_loss(config, episodes, labels)
    potential, heads = reward_potential(config, log_probs, labels), discriminator.head_log_probs
    paid = with_bonus(config, potential, heads(states))
    assert bool((paid - potential).abs().max() > 1e-3) == config.has_bonus
    losses = (
        policy_loss(config, policy, trajectory, paid, 0.0),
        heads_loss(heads(states), labels, trajectory.lengths, supervision),
    )
    for found, wanted in zip(losses, expected, strict=True):
        same(found, wanted)
        of_manual = gradients(found, discriminator, policy)
        of_plain = gradients(wanted, *plain)
        assert of_manual.keys() == of_plain.keys()
        for name, gradient in of_manual.items():
            same(gradient, of_plain[name], msg=lambda text, name=name: f"{name}: {text}")

    learner = Learner(discriminator, policy, make_optimiser(config, discriminator, policy), None)
    found, ends = learn_part(config, learner, BatchPart(images, labels, numbers, 1.0), 0.0)
    for gradient, wanted in zip(found, gradients(sum(expected), *plain).values(), strict=True):
        same(gradient, wanted)
    same(ends.lengths, episodes.lengths)


def test_the_glimpse_layer_is_the_sum_of_the_papers_two():
    config = small()
    combine = RamDiscriminator(config).glimpse_network.combine
    what, where = torch.rand(2, 3, config.glimpse_width)
    first, second = combine.weight.split(config.glimpse_width, dim=1)
    expected = what @ first.t() + where @ second.t() + combine.bias
    torch.testing.assert_close(combine(torch.cat([what, where], 1)), expected)


# --- activations belong to the weights they were computed with ---

KINDS = [
    {"model": "dt-ram"},
    {"core": "gru", "location_features": 2, "policy_memory": 3, "moves": "relative"},
    {
        "core": "map", "moves": "centred", "object_centred": True, "policy_memory": 3, "grid": 3,
        "equivariant": True, "inhibition": 2.0,
    },
]  # fmt: skip


def stale(config, change):
    """What both models say of an episode after their weights changed."""
    discriminator, policy, _, _, trajectory = episode(config)
    change(discriminator, policy)
    with pytest.raises(RuntimeError, match=r"weights of \w+Discriminator changed.*roll out again"):
        discriminator.states(trajectory.cache)
    with pytest.raises(RuntimeError, match=r"weights of \w+Policy changed.*roll out again"):
        policy.actions(trajectory.policy_cache, trajectory.cache, trajectory.samples, 0.2)


@pytest.mark.parametrize("settings", KINDS)
@pytest.mark.parametrize("fused", [True, False])
def test_activations_are_stale_after_an_update(settings, fused):
    config = small(**settings)

    def update(discriminator, policy):
        optimiser = make_optimiser(config, discriminator, policy)
        for group in optimiser.param_groups:
            group["fused"] = fused
            for parameter in group["params"]:
                parameter.grad = torch.ones_like(parameter)
        optimiser.step()

    stale(config, update)


@pytest.mark.parametrize("settings", KINDS)
def test_activations_are_stale_after_weights_were_written_or_replaced(settings):
    def write(*models):
        for model in models:
            with torch.no_grad():
                list(model.parameters())[-1].zero_()

    def load(*models):
        for model in models:
            model.load_state_dict(model.state_dict())

    def replace(*models):
        for model in models:
            first = next(model.parameters())
            first.data = first.data.clone()

    for change in (write, load, replace):
        stale(small(**settings), change)


def test_activations_of_one_model_are_not_those_of_another():
    config = small()
    one, other = episode(config), episode(config, seed=1)
    with pytest.raises(RuntimeError, match="stale"):
        one.discriminator.states(other.trajectory.cache)
    with pytest.raises(RuntimeError, match="stale"):
        cache, samples = other.trajectory.policy_cache, other.trajectory.samples
        one.policy.actions(cache, other.trajectory.cache, samples, 0.2)


def test_activations_stay_fresh_as_long_as_nothing_changed():
    played = episode(small(model="dt-ram"))
    first, again = (played.discriminator.states(played.trajectory.cache) for _ in range(2))
    assert (first == again).all()
