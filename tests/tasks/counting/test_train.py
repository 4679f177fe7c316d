"""What learns from what, and from which reward, in really rendered scenes."""

import numpy as np
import pytest
import torch

from irrl.tasks import make_config
from irrl.tasks.counting.evaluate import evaluate_model, log_prior_of
from irrl.tasks.counting.minibatches import MinibatchPart
from irrl.tasks.counting.rollout import NO_FRAME, STOP, states_of
from irrl.tasks.counting.scene import CLASSES, count_prior
from irrl.tasks.counting.train import actor_critic_loss, count_loss, final_rewards
from tests.tasks.counting.case import Case


def touched(model):
    return {n for n, p in model.named_parameters() if p.grad is not None and p.grad.abs().max() > 0}


# --- the reward ---


@pytest.mark.parametrize("reward", ["clipped-linear", "log", "accuracy"])
def test_the_reward_carries_no_gradient(scenes_folder, reward):
    case = Case(scenes_folder, reward=reward)
    log_count = case.model.log_count(case.states[-1])
    assert log_count.requires_grad
    assert not final_rewards(case.config, log_count, case.labels).requires_grad
    loss, _ = actor_critic_loss(case.config, case.model, case.states, case.batch, case.all)
    loss.backward()
    assert not touched(case.model) & {"count.weight", "count.bias"}


@pytest.mark.parametrize("name", ["clipped-linear", "linear", "log", "clipped-log", "f-chi2"])
def test_a_posterior_at_the_prior_gets_no_reward(name):
    config = make_config("counting", "smoke", reward=name)
    labels = torch.arange(CLASSES)
    at_prior = torch.from_numpy(np.log(count_prior())).float().expand(CLASSES, -1)
    torch.testing.assert_close(final_rewards(config, at_prior, labels), torch.zeros(CLASSES))
    uniform = make_config("counting", "smoke", reward=name, prior="uniform")
    flat = torch.full((CLASSES, CLASSES), -np.log(CLASSES))
    torch.testing.assert_close(
        final_rewards(uniform, flat, labels), torch.zeros(CLASSES), atol=1e-6, rtol=0
    )
    assert final_rewards(uniform, at_prior, labels).abs().max() > 0.01
    assert log_prior_of(config)[0] > log_prior_of(config)[6]


def test_in_units_of_the_largest_certainty_of_the_rarest_count_earns_one():
    labels = torch.arange(CLASSES)
    certain = torch.full((CLASSES, CLASSES), -torch.inf).fill_diagonal_(0.0)
    for name in ("clipped-linear", "clipped-log", "accuracy"):
        absolute, relative = (
            final_rewards(make_config("counting", "smoke", reward=name, **unit), certain, labels)
            for unit in ({}, {"reward_unit": "largest"})
        )
        assert relative.max() == pytest.approx(1.0)
        torch.testing.assert_close(relative * absolute.max(), absolute)


def test_the_reward_comes_once_at_the_end(scenes_folder):
    """Returns against a loop over episodes, with discount and cost, lambda 1."""
    case = Case(
        scenes_folder, discount=0.9, lambda_=1.0, move_cost=0.05, normalise_advantage="none"
    )
    trajectory = case.trajectory
    assert {int(n) for n in trajectory.lengths} >= {1, 3, 7}
    for n in range(len(case.labels)):
        following = 0.0
        for t in reversed(range(int(trajectory.acted[n]))):
            reward = case.rewards[n].item() if t == trajectory.acted[n] - 1 else 0.0
            cost = 0.0 if trajectory.actions[t, n] == STOP else 0.05
            following = reward - cost + 0.9 * following
            assert case.batch.returns[t, n].item() == pytest.approx(following, abs=1e-5)


def test_advantages_are_normalised_over_the_actions_taken(scenes_folder):
    case = Case(scenes_folder, normalise_advantage="standardise")
    among = case.batch.advantage[case.trajectory.taken]
    assert among.mean().item() == pytest.approx(0.0, abs=1e-5)
    assert among.std(correction=0).item() == pytest.approx(1.0, abs=1e-4)


# --- what learns from what ---


def test_the_count_head_learns_from_labels_only_and_the_trunk_from_both(scenes_folder):
    case = Case(scenes_folder)
    count_loss(case.config, case.model, case.states, case.batch, case.part()).backward()
    names = {n for n, _ in case.model.named_parameters()}
    heads = {n for n in names if n.startswith(("policy.", "value."))}
    assert touched(case.model) == names - heads
    again = Case(scenes_folder)
    loss, _ = actor_critic_loss(again.config, again.model, again.states, again.batch, again.all)
    loss.backward()
    assert touched(again.model) == {n for n in names if not n.startswith("count.")}


@pytest.mark.parametrize("supervision", ["last", "all"])
def test_cross_entropy_against_a_loop(scenes_folder, supervision):
    case = Case(scenes_folder, supervision=supervision)
    found = count_loss(case.config, case.model, case.states, case.batch, case.part())
    log_count = case.model.log_count(case.states)
    last, every = [], []
    for n, label in enumerate(case.labels.tolist()):
        terms = [-log_count[t, n, label].item() for t in range(int(case.trajectory.lengths[n]))]
        last.append(terms[-1])
        every += terms
    wanted = np.mean(last) + (np.mean(every) if supervision == "all" else 0.0)
    assert found.item() == pytest.approx(wanted, rel=1e-5)


def test_a_first_pass_changes_no_probability(scenes_folder):
    """Without dropout the states are those of the rollout: ratios are 1, nothing is clipped."""
    case = Case(scenes_folder, entropy_coef=0.0, value_coef=0.0, normalise_advantage="none")
    loss, metrics = actor_critic_loss(case.config, case.model, case.states, case.batch, case.all)
    wanted = -case.batch.advantage[case.trajectory.taken].mean().item()
    assert loss.item() == pytest.approx(wanted, abs=1e-5)
    assert metrics["policy_clip_fraction"] == 0 and abs(metrics["policy_kl"]) < 1e-6
    assert 0 < metrics["policy_entropy"] <= np.log(3)


@pytest.mark.parametrize("behaviour_policy", ["stay", "random", "sweep"])
def test_scripted_baselines_train_the_same_network_but_no_policy(scenes_folder, behaviour_policy):
    case = Case(scenes_folder, behaviour_policy=behaviour_policy)
    before = {n: p.clone() for n, p in case.model.named_parameters()}
    stats = case.learn()
    for name, parameter in case.model.named_parameters():
        same = bool((parameter == before[name]).all())
        unused = (
            ("policy.", "value.", "core.weight_hh")
            if behaviour_policy == "stay"
            else ("policy.", "value.")
        )
        assert same == name.startswith(unused), name
    assert stats.updates[0] == {}


def test_a_batch_moves_all_parameters(scenes_folder):
    case = Case(scenes_folder)
    before = [p.clone() for p in case.learner.parameters]
    stats = case.learn()
    assert all((a != b).any() for a, b in zip(before, case.learner.parameters, strict=True))
    assert set(stats.updates[0]) == {"policy_entropy", "policy_clip_fraction", "policy_kl"}
    assert len(stats.updates) == 4  # two passes over two minibatches
    torch.testing.assert_close(stats.rewards, case.rewards)


def test_an_update_is_that_of_plain_adam(scenes_folder):
    """Fused Adam reads gradients as they lie in memory: it must find them in the right order."""
    fused, plain = Case(scenes_folder), Case(scenes_folder)
    (group,) = plain.learner.optimiser.param_groups
    adam = torch.optim.Adam(group["params"], group["lr"], eps=group["eps"], fused=False)
    plain.learner = plain.learner._replace(optimiser=adam)
    for case in (fused, plain):
        case.learn()
    for name, parameter in fused.model.named_parameters():
        torch.testing.assert_close(parameter, plain.model.get_parameter(name), msg=name)


def test_long_gradients_are_shortened(scenes_folder):
    case = Case(scenes_folder, max_grad_norm=1e-3)
    case.learn()
    length = sum(p.grad.square().sum() for p in case.learner.parameters).sqrt().item()
    assert length == pytest.approx(1e-3, rel=1e-3)


def test_it_learns_to_count_what_it_sees(scenes_folder):
    """A few dozen scenes by heart, from a full sweep: better than any constant answer."""
    case = Case(scenes_folder, behaviour_policy="sweep", learning_rate=1e-2, n_epochs=60)
    before = evaluate_model(case.model, case.split, 0)
    case.learn()
    after = evaluate_model(case.model, case.split, 0)
    constant = 100 * np.bincount(case.split.labels).max() / len(case.split)
    assert after["accuracy_percent"] > max(before["accuracy_percent"], constant) + 10
    assert after["accuracy_percent"] >= after["well_founded_percent"] and after["moves"] == 6


def test_frames_of_chosen_episodes_only(scenes_folder):
    case = Case(scenes_folder)
    short = (case.trajectory.lengths == 1).nonzero()[:, 0]
    assert len(states_of(case.model, case.trajectory, short, None)) == 1
    assert (case.trajectory.frame[1:, short] == NO_FRAME).all()
    assert isinstance(case.part(), MinibatchPart)
