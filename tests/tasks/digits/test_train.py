import numpy as np
import pytest
import torch

from irrl.nn.parallel import parts_in_parallel
from irrl.rewards import reward
from irrl.tasks import make_config
from irrl.tasks.digits.evaluate import share_on_digit
from irrl.tasks.digits.learner import restored_learner, to_checkpoint
from irrl.tasks.digits.losses import returns_of
from irrl.tasks.digits.train import learn_batch, set_step_sizes
from tests.tasks.digits.scene import BATCH, CPU, MODELS, Scene, names, touched


@pytest.mark.parametrize("settings", MODELS)
@pytest.mark.parametrize("name", ["clipped-linear", "log", "accuracy"])
def test_neither_the_reward_nor_the_locator_reaches_the_discriminator(mnist_cache, settings, name):
    scene = Scene(reward=name, **settings)
    scene.policy_loss().backward()
    assert touched(scene.learner.discriminator) == set()
    if name != "accuracy":  # of which a batch may be all wrong
        assert touched(scene.learner.policy) == names(scene.learner.policy)


@pytest.mark.parametrize("settings", MODELS)
def test_the_discriminators_loss_reaches_all_of_it_and_no_policy(mnist_cache, settings):
    scene = Scene(**settings)
    scene.discriminator_loss().backward()
    assert touched(scene.learner.discriminator) == names(scene.learner.discriminator)
    assert touched(scene.learner.policy) == set()


def test_a_batch_moves_all_parameters(mnist_cache):
    scene = Scene(model="dt-ram")
    before = [p.clone() for m in scene.learner[:2] for p in m.parameters()]
    learn_batch(scene.config, scene.learner, scene.parts, 0.0)
    after = [p for m in scene.learner[:2] for p in m.parameters()]
    assert all((a != b).any() for a, b in zip(before, after, strict=True))


def test_the_parts_of_a_batch_make_the_whole(mnist_cache):
    """Without normalisation, two or five parts give the gradients of one."""
    gradients = []
    for parts in (1, 2, 5):
        scene = Scene(core="rnn", parts=parts)
        assert sum(len(part.labels) for part in scene.parts) == BATCH
        learn_batch(scene.config, scene.learner, scene.parts, 0.0)
        gradients.append([p.grad for p in scene.learner.parameters()])
    for whole, *cut_up in zip(*gradients, strict=True):
        for other in cut_up:
            torch.testing.assert_close(other, whole, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("core", ["rnn", "gru", "map"])
def test_the_number_of_threads_changes_no_bit(mnist_cache, core):
    found = []
    for threads in (1, 2, 3):
        scene = Scene(core=core, parts=3, normalise_advantage="scale")
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        with parts_in_parallel(CPU, 3) as each:
            for _ in range(3):
                learn_batch(scene.config, scene.learner, scene.parts, 0.0, each)
        assert torch.get_num_threads() == threads
        torch.set_num_threads(before)
        found.append(to_checkpoint(scene.learner)[0])
    for name, array in found[0].items():
        np.testing.assert_array_equal(array, found[1][name])
        np.testing.assert_array_equal(array, found[2][name])


def test_a_single_glimpse_leaves_nothing_to_decide(mnist_cache):
    scene = Scene(glimpses=1, normalise_advantage="scale")
    before = [p.clone() for p in scene.learner.policy.parameters()]
    learn_batch(scene.config, scene.learner, scene.parts, 0.0)
    assert all(
        (a == b).all() for a, b in zip(before, scene.learner.policy.parameters(), strict=True)
    )
    assert all(p.isfinite().all() for p in scene.learner.discriminator.parameters())


def test_the_discriminator_is_judged_after_the_last_glimpse(mnist_cache):
    scene = Scene(model="dt-ram", supervision="last")
    loss = scene.discriminator_loss()
    at_the_end = [
        -scene.log_probs[length - 1, n, scene.labels[n]].item()
        for n, length in enumerate(scene.trajectory.lengths.tolist())
    ]
    assert loss.item() == pytest.approx(np.mean(at_the_end), rel=1e-5)
    everywhere = Scene(model="dt-ram", supervision="all")
    loss = everywhere.discriminator_loss()
    taken = [
        -everywhere.log_probs[t, n, everywhere.labels[n]].item()
        for n, length in enumerate(everywhere.trajectory.lengths.tolist())
        for t in range(length)
    ]
    assert loss.item() == pytest.approx(np.mean(at_the_end) + np.mean(taken), rel=1e-5)


@pytest.mark.parametrize("model", ["ram", "dt-ram"])
def test_dense_credit_adds_up_to_the_final_reward(mnist_cache, model):
    dense, final = (Scene(model=model, credit=credit) for credit in ("dense", "final"))
    potential = dense.potential()
    nothing = torch.zeros_like(potential[1:])
    returns = returns_of(dense.config, dense.trajectory, potential, nothing)
    rewards = returns_of(final.config, final.trajectory, final.potential(), nothing)
    longer = dense.trajectory.lengths > 1
    torch.testing.assert_close((returns[0] + potential[0])[longer], rewards[0][longer])


def test_dt_ram_is_rewarded_less_for_each_glimpse(mnist_cache):
    scene = Scene(model="dt-ram", step_discount=0.9)
    potential, glimpses = scene.potential(), scene.config.glimpses
    plain = reward("clipped-linear")(scene.log_probs, scene.labels.expand(glimpses, -1))
    for t in range(glimpses):
        torch.testing.assert_close(potential[t], plain[t] * 0.9 ** (t + 1))


def test_reinforce_of_dt_ram_counts_the_actions_taken(mnist_cache):
    """Against a loop over episodes and actions, with log-probabilities written out."""
    scene = Scene(model="dt-ram", credit="final", policy_memory=0, moves="absolute")
    config, policy, trajectory = scene.config, scene.learner.policy, scene.trajectory
    potential, loss = scene.potential(), scene.policy_loss().item()
    states = scene.states[:-1].detach()
    mean, stop = policy.locator(states)
    expected = policy.baseline(states)[..., 0]
    reinforce, errors = 0.0, []
    for n, length in enumerate(trajectory.lengths.tolist()):
        earned = potential[length - 1, n].item()
        for t in range(min(length, config.glimpses - 1)):
            advantage = earned - expected[t, n].item()
            errors.append(advantage**2)
            if t < length - 1:
                normal = torch.distributions.Normal(mean[t, n], 0.1)
                log_prob = normal.log_prob(trajectory.samples[t, n]).sum() + torch.log(
                    1 - stop[t, n]
                )
            else:
                log_prob = torch.log(stop[t, n])
            reinforce -= log_prob.item() * advantage / BATCH
    assert loss == pytest.approx(np.mean(errors) + config.policy_coef * reinforce, rel=1e-4)


# --- schedules and starting points ---


def test_reinforce_on_a_grid_pushes_the_places_that_were_rewarded(mnist_cache):
    """The gradient of the logits is the advantage times (one-hot minus probability)."""
    scene = Scene(credit="final", policy_memory=0, moves="absolute", grid=3, baseline_width=0)
    config, policy, trajectory = scene.config, scene.learner.policy, scene.trajectory
    scene.policy_loss().backward()
    states, logits = scene.states[:-1].detach(), policy.grid.logits
    hidden = torch.relu(policy.locator.hidden(states))
    aim, _ = policy.aims(torch.cat([hidden, logits(states)], dim=-1), torch.zeros(2))
    rewards = trajectory.last(scene.potential()).detach()
    advantage = (rewards - policy.baseline(states)[..., 0]).detach()
    chosen = torch.nn.functional.one_hot(trajectory.policy_cache.choices, 9)
    pushed = -config.policy_coef * advantage[..., None] * (chosen - aim.exp()) / BATCH
    torch.testing.assert_close(logits.bias.grad, pushed.sum((0, 1)), rtol=1e-3, atol=1e-6)


def test_entropy_holds_the_choice_among_places_open(mnist_cache):
    """Its loss is that of REINFORCE less the weight times the entropy of all moves made."""
    settings = {"moves": "relative", "grid": 3, "schedule": "cosine", "model": "dt-ram"}
    without, scene = Scene(**settings), Scene(entropy_coef=0.7, **settings)
    per_move = torch.distributions.Categorical(logits=scene.actions().choice).entropy()
    lengths = scene.trajectory.lengths.tolist()
    moves = [per_move[: n - 1, k].sum() for k, n in enumerate(lengths)]
    expected = without.policy_loss() - 0.01 * 0.7 * torch.stack(moves).mean()
    torch.testing.assert_close(scene.policy_loss(), expected)
    assert scene.config.entropy_coef_at(0.5 * scene.config.epochs) == pytest.approx(0.35)


def test_schedules():
    config = make_config(
        "digits", "smoke", epochs=10, schedule="cosine", learning_rate=0.2,
        policy_learning_rate=0.1, policy_warmup_epochs=2.0, location_std=0.3,
        location_std_end=0.1,
    )  # fmt: skip
    assert config.step_sizes_at(0) == (0.2, 0.0)
    assert config.step_sizes_at(5) == pytest.approx((0.1, 0.05))
    assert config.step_sizes_at(1)[1] == pytest.approx(config.step_sizes_at(1)[0] / 4)
    assert config.step_sizes_at(10) == pytest.approx((0.0, 0.0))
    assert [config.location_std_at(e) for e in (0, 5, 10)] == pytest.approx([0.3, 0.2, 0.1])
    constant = make_config("digits", "paper")
    assert constant.step_sizes_at(700) == (3e-4, 3e-4)
    assert constant.location_std_at(700) == pytest.approx(0.05)


def test_the_optimiser_gets_the_step_sizes(mnist_cache):
    scene = Scene()
    set_step_sizes(scene.learner.optimiser, (0.5, 0.25))
    assert [group["lr"] for group in scene.learner.optimiser.param_groups] == [0.5, 0.25]


def test_advantages_are_normalised_over_the_actions_taken(mnist_cache):
    losses = []
    for normalise in ("none", "scale"):
        scene = Scene(credit="final", normalise_advantage=normalise)
        losses.append(scene.policy_loss().item())
    advantage = scene.potential()[-1] - scene.actions().expected
    squares = advantage.square().mean().item()
    reinforce, normalised = losses[0] - squares, losses[1] - squares
    assert normalised == pytest.approx(reinforce / advantage.std(correction=0).item(), rel=1e-3)


def test_the_share_of_glimpses_on_the_digit(mnist_cache):
    scene = Scene(glimpses=3)
    corners = np.zeros((BATCH, 2), int)
    corners[1] = (30, 10)  # row, column
    places = torch.tensor([[-0.9, -0.9], [0.0, 0.5], [0.9, 0.9]])[:, None].expand(3, BATCH, 2)
    trajectory = scene.trajectory._replace(locations=places)
    share = share_on_digit(scene.config, trajectory, corners)
    # at pixels (column, row): (3, 3), (30, 45), (57, 57)
    assert share[0] == pytest.approx(1 / 3) and share[1] == pytest.approx(1 / 3)


def test_a_checkpoint_holds_all_a_learner_is(mnist_cache):
    scene = Scene(model="dt-ram")
    learn_batch(scene.config, scene.learner, scene.parts, 0.0)
    arrays, state = to_checkpoint(scene.learner)
    from irrl.runs.checkpoint import Checkpoint

    again = restored_learner(scene.config, Checkpoint(1, arrays, state), CPU)
    same, _ = to_checkpoint(again)
    assert same.keys() == arrays.keys()
    assert all((same[n] == arrays[n]).all() for n in arrays)
