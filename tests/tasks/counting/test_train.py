import shutil

import numpy as np
import pytest
import torch

from irrl.runs.checkpoint import Checkpoint
from irrl.errors import UserError
from irrl.nn.parallel import parts_in_parallel
from irrl.tasks import make_config
from irrl.tasks.counting.data import load_split
from irrl.tasks.counting.evaluate import evaluate, log_prior_of
from irrl.tasks.counting.rollout import NO_FRAME, STOP, draw_batch, rollout, states_again
from irrl.tasks.counting.scene import CLASSES, count_prior
from irrl.tasks.counting.state import initial_learner, restored_learner, to_checkpoint
from irrl.tasks.counting.train import (
    Part,
    cut,
    is_due,
    learn_batch,
    learn_part,
    lesson_of,
    loss_of_discriminator,
    loss_of_policy,
    minibatches,
    paid_for,
    parameters_of,
)

from tests.helpers.runs import run_in

CPU = torch.device("cpu")


class Case:
    """A learner of the smoke preset and one batch of episodes in really drawn scenes."""

    def __init__(self, scenes_folder, **settings):
        settings = {"initial_policy": 1.0, "dropout": 0.0, **settings}
        self.config = make_config("counting", "smoke", scenes=str(scenes_folder), **settings)
        self.learner = initial_learner(self.config, CPU)
        self.model = self.learner.model
        self.split = load_split(self.config, "train")
        self.draws = draw_batch(self.config, 0, len(self.split))
        self.labels = torch.from_numpy(self.split.labels[self.draws.scenes])
        self.trajectory = rollout(self.model, self.split, self.draws)
        self.paid = paid_for(self.config, self.trajectory.log_count, self.labels)
        self.lesson = lesson_of(self.config, self.trajectory, self.paid, self.labels, 0)
        self.all = torch.arange(len(self.labels))
        self.states = states_again(self.model, self.trajectory, self.all, None)

    def part(self):
        (part,) = cut(make_config("counting", "smoke", parts=1), self.trajectory, self.all, (0,))
        return part

    def learn(self, each=map):
        return learn_batch(self.config, self.learner, self.split, self.draws, 0, each)


def touched(model):
    return {n for n, p in model.named_parameters() if p.grad is not None and p.grad.abs().max() > 0}


# --- the reward ---


@pytest.mark.parametrize("paid", ["clipped-linear", "log", "accuracy"])
def test_the_reward_carries_no_gradient(scenes_folder, paid):
    case = Case(scenes_folder, reward=paid)
    log_count = case.model.log_count(case.states[-1])
    assert log_count.requires_grad
    assert not paid_for(case.config, log_count, case.labels).requires_grad
    loss, _ = loss_of_policy(case.config, case.model, case.states, case.lesson, case.all)
    loss.backward()
    assert not touched(case.model) & {"count.weight", "count.bias"}


@pytest.mark.parametrize("name", ["clipped-linear", "linear", "log", "clipped-log", "f-chi2"])
def test_a_posterior_at_the_prior_is_paid_nothing(name):
    config = make_config("counting", "smoke", reward=name)
    labels = torch.arange(CLASSES)
    at_prior = torch.from_numpy(np.log(count_prior())).float().expand(CLASSES, -1)
    torch.testing.assert_close(paid_for(config, at_prior, labels), torch.zeros(CLASSES))
    uniform = make_config("counting", "smoke", reward=name, prior="uniform")
    flat = torch.full((CLASSES, CLASSES), -np.log(CLASSES))
    torch.testing.assert_close(
        paid_for(uniform, flat, labels), torch.zeros(CLASSES), atol=1e-6, rtol=0
    )
    assert paid_for(uniform, at_prior, labels).abs().max() > 0.01
    assert log_prior_of(config)[0] > log_prior_of(config)[6]


def test_the_reward_is_paid_once_at_the_end(scenes_folder):
    """Returns against a loop over episodes, with discount and cost, lambda 1."""
    case = Case(scenes_folder, discount=0.9, lambda_=1.0, move_cost=0.05, normalise_advantage=False)
    trajectory = case.trajectory
    assert {int(n) for n in trajectory.lengths} >= {1, 3, 7}
    for n in range(len(case.labels)):
        following = 0.0
        for t in reversed(range(int(trajectory.acted[n]))):
            paid = case.paid[n].item() if t == trajectory.acted[n] - 1 else 0.0
            cost = 0.0 if trajectory.actions[t, n] == STOP else 0.05
            following = paid - cost + 0.9 * following
            assert case.lesson.returns[t, n].item() == pytest.approx(following, abs=1e-5)


def test_advantages_are_normalised_over_the_actions_taken(scenes_folder):
    case = Case(scenes_folder, normalise_advantage=True)
    among = case.lesson.advantage[case.trajectory.taken]
    assert among.mean().item() == pytest.approx(0.0, abs=1e-5)
    assert among.std(correction=0).item() == pytest.approx(1.0, abs=1e-4)


# --- what learns from what ---


def test_the_count_head_learns_from_labels_only_and_the_trunk_from_both(scenes_folder):
    case = Case(scenes_folder)
    loss_of_discriminator(case.config, case.model, case.states, case.lesson, case.part()).backward()
    names = {n for n, _ in case.model.named_parameters()}
    heads = {n for n in names if n.startswith(("act.", "expect."))}
    assert touched(case.model) == names - heads
    again = Case(scenes_folder)
    loss, _ = loss_of_policy(again.config, again.model, again.states, again.lesson, again.all)
    loss.backward()
    assert touched(again.model) == {n for n in names if not n.startswith("count.")}


@pytest.mark.parametrize("supervision", ["last", "all"])
def test_cross_entropy_against_a_loop(scenes_folder, supervision):
    case = Case(scenes_folder, supervision=supervision)
    found = loss_of_discriminator(case.config, case.model, case.states, case.lesson, case.part())
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
    case = Case(scenes_folder, entropy_weight=0.0, value_weight=0.0, normalise_advantage=False)
    loss, figures = loss_of_policy(case.config, case.model, case.states, case.lesson, case.all)
    wanted = -case.lesson.advantage[case.trajectory.taken].mean().item()
    assert loss.item() == pytest.approx(wanted, abs=1e-5)
    assert figures["policy_clip_fraction"] == 0 and abs(figures["policy_kl"]) < 1e-6
    assert 0 < figures["policy_entropy"] <= np.log(3)


@pytest.mark.parametrize("walker", ["stay", "random", "sweep"])
def test_yardsticks_train_the_same_network_but_no_policy(scenes_folder, walker):
    case = Case(scenes_folder, walker=walker)
    before = {n: p.clone() for n, p in case.model.named_parameters()}
    outcome = case.learn()
    for name, parameter in case.model.named_parameters():
        same = bool((parameter == before[name]).all())
        unused = ("act.", "expect.", "core.weight_hh") if walker == "stay" else ("act.", "expect.")
        assert same == name.startswith(unused), name
    assert outcome.updates[0] == {}


def test_a_batch_moves_all_parameters(scenes_folder):
    case = Case(scenes_folder)
    before = [p.clone() for p in parameters_of(case.model)]
    outcome = case.learn()
    assert all((a != b).any() for a, b in zip(before, parameters_of(case.model), strict=True))
    assert set(outcome.updates[0]) == {"policy_entropy", "policy_clip_fraction", "policy_kl"}
    assert len(outcome.updates) == 4  # two passes over two minibatches
    torch.testing.assert_close(outcome.paid, case.paid)


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
    case = Case(scenes_folder, max_gradient=1e-3)
    case.learn()
    length = sum(p.grad.square().sum() for p in parameters_of(case.model)).sqrt().item()
    assert length == pytest.approx(1e-3, rel=1e-3)


# --- parts and threads ---


def test_each_pass_takes_each_episode_once(scenes_folder):
    case = Case(scenes_folder, minibatch_episodes=30)
    rounds = list(minibatches(case.config, case.trajectory, 0))
    assert len(rounds) == 2 * 3
    for first in (0, 3):
        chosen = torch.cat([part.chosen for parts in rounds[first : first + 3] for part in parts])
        assert sorted(chosen.tolist()) == list(range(64))
    for parts in rounds:
        for name in ("of_actions", "of_episodes", "of_views"):
            assert sum(getattr(part, name) for part in parts) == pytest.approx(1.0)
    again = list(minibatches(case.config, case.trajectory, 0))
    assert all((a[0].chosen == b[0].chosen).all() for a, b in zip(rounds, again, strict=True))
    other = next(minibatches(case.config, case.trajectory, 64))
    assert (other[0].chosen != rounds[0][0].chosen).any()


@pytest.mark.parametrize("supervision", ["last", "all"])
def test_the_parts_of_a_minibatch_make_the_whole(scenes_folder, supervision):
    found = []
    for parts in (1, 2, 5):
        case = Case(scenes_folder, supervision=supervision, parts=parts)
        pieces = cut(case.config, case.trajectory, case.all, (0,))
        assert len(pieces) == parts
        each = [learn_part(case.config, case.model, case.lesson, piece)[0] for piece in pieces]
        found.append([sum(g) for g in zip(*each, strict=True)])
    for whole, *others in zip(*found, strict=True):
        for other in others:
            torch.testing.assert_close(other, whole, rtol=1e-3, atol=1e-6)


def test_dropout_depends_on_the_address_alone(scenes_folder):
    case = Case(scenes_folder, dropout=0.5)
    gradients = []
    for address in ((0, 0, 0), (0, 0, 0), (0, 1, 0)):
        part = cut(case.config, case.trajectory, case.all, address)[0]
        gradients.append(learn_part(case.config, case.model, case.lesson, part)[0][0])
    assert (gradients[0] == gradients[1]).all() and (gradients[0] != gradients[2]).any()


@pytest.mark.parametrize("core", ["rnn", "gru"])
def test_the_number_of_threads_changes_no_bit(scenes_folder, core):
    found = []
    for threads in (1, 2):
        case = Case(scenes_folder, core=core, dropout=0.2, parts=3)
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        with parts_in_parallel(CPU, 3) as each:
            case.learn(each)
            figures = evaluate(case.config, case.model, case.split, each)
        torch.set_num_threads(before)
        found.append((to_checkpoint(case.config, case.learner, "")[0], figures))
    assert found[0][1] == found[1][1]
    for name, array in found[0][0].items():
        np.testing.assert_array_equal(array, found[1][0][name])


# --- an oracle ---


def test_an_oracle_pays_and_stays_as_it_is(scenes_folder, counting_run):
    case = Case(scenes_folder, oracle=str(counting_run))
    oracle = case.learner.oracle
    assert not any(p.requires_grad for p in oracle.parameters())
    before = {n: p.clone() for n, p in oracle.named_parameters()}
    outcome = case.learn()
    assert all((before[n] == p).all() for n, p in oracle.named_parameters())
    assert (outcome.paid - case.paid).abs().max() > 1e-4
    torch.testing.assert_close(outcome.log_count, case.trajectory.log_count)


def test_oracles_that_cannot_judge(scenes_folder, counting_run, smoke_run, tmp_path):
    with pytest.raises(UserError, match="is a run of skills, not of counting"):
        Case(scenes_folder, oracle=str(smoke_run))
    with pytest.raises(UserError, match="cannot judge this run: its max-moves is 6, here it is 4"):
        Case(scenes_folder, oracle=str(counting_run), max_moves=4)
    half = shutil.copytree(counting_run, tmp_path / "half")
    (half / "summary.json").unlink()
    with pytest.raises(UserError, match="is not finished"):
        Case(scenes_folder, oracle=str(half))
    late = run_in(
        tmp_path / "late", "counting", scenes=str(scenes_folder), supervision="last", episodes=64
    )
    with pytest.raises(UserError, match="taught after the last view only"):
        Case(scenes_folder, oracle=str(late.folder))


# --- around the loop ---


def test_a_checkpoint_holds_all_a_learner_is(scenes_folder):
    case = Case(scenes_folder)
    case.learn()
    arrays, state = to_checkpoint(case.config, case.learner, "abc")
    again = restored_learner(case.config, Checkpoint(1, arrays, state), "abc", CPU)
    same, _ = to_checkpoint(case.config, again, "abc")
    assert same.keys() == arrays.keys()
    assert all((same[n] == arrays[n]).all() for n in arrays)
    with pytest.raises(UserError, match="not those the run was begun with"):
        restored_learner(case.config, Checkpoint(1, arrays, state), "other", CPU)


def test_when_rows_are_due():
    assert is_due(-1, 0, 100, 1000) and is_due(90, 130, 100, 1000) and is_due(960, 1000, 300, 1000)
    assert not is_due(0, 60, 100, 1000) and not is_due(100, 199, 100, 1000)


def test_the_step_size_follows_its_schedule():
    config = make_config("counting", "smoke", schedule="cosine", learning_rate=0.2)
    assert config.step_size_at(0) == 0.2
    assert config.step_size_at(128) == pytest.approx(0.1)
    assert make_config("counting", "paper").step_size_at(10**6) == 1e-4


def test_the_weight_of_entropy_follows_its_schedule(scenes_folder):
    config = make_config("counting", "smoke", entropy_schedule="cosine", entropy_weight=0.2)
    assert config.entropy_weight_at(0) == 0.2 and config.entropy_weight_at(256) == 0.0
    assert make_config("counting", "paper").entropy_weight_at(10**6) == 0.01
    case = Case(scenes_folder, entropy_schedule="cosine", entropy_weight=0.2)
    lesson = lesson_of(case.config, case.trajectory, case.paid, case.labels, 128)
    assert lesson.entropy_weight == pytest.approx(0.1)


def test_moves_may_cost_more_towards_the_end(scenes_folder):
    assert make_config("counting", "smoke", discount=0.9).discount_at(200) == 0.9
    config = make_config("counting", "smoke", discount=0.9, final_discount=0.8)
    assert [config.discount_at(n) for n in (0, 128, 256)] == pytest.approx([0.9, 0.85, 0.8])
    case = Case(
        scenes_folder, discount=0.9, final_discount=0.5, lambda_=1.0, normalise_advantage=False
    )
    long = (case.trajectory.acted == 6).nonzero()[0, 0]
    for done, left in ((0, 0.9), (128, 0.7)):
        lesson = lesson_of(case.config, case.trajectory, case.paid, case.labels, done)
        paid = case.paid[long] * left ** torch.arange(5.0, -1.0, -1.0)
        torch.testing.assert_close(lesson.returns[:, long], paid)


def test_the_papers_numbers():
    config = make_config("counting", "paper")
    assert (config.episodes, config.ppo_passes, config.max_moves) == (2_000_000, 10, 6)
    assert (config.learning_rate, config.adam_epsilon) == (1e-4, 1e-5)
    assert (config.discount, config.lambda_, config.clip) == (0.99, 0.99, 0.2)
    assert (config.entropy_weight, config.value_weight, config.max_gradient) == (0.01, 0.5, 0.5)


def test_it_learns_to_count_what_it_sees(scenes_folder):
    """A few dozen scenes by heart, from a full sweep: better than any constant answer."""
    case = Case(scenes_folder, walker="sweep", learning_rate=1e-2, ppo_passes=60)
    before = evaluate(case.config, case.model, case.split)
    case.learn()
    after = evaluate(case.config, case.model, case.split)
    constant = 100 * np.bincount(case.split.labels).max() / len(case.split)
    assert after["accuracy"] > max(before["accuracy"], constant) + 10
    assert after["accuracy"] >= after["well_founded"] and after["moves"] == 6


def test_frames_of_chosen_episodes_only(scenes_folder):
    case = Case(scenes_folder)
    short = (case.trajectory.lengths == 1).nonzero()[:, 0]
    assert len(states_again(case.model, case.trajectory, short, None)) == 1
    assert (case.trajectory.frame[1:, short] == NO_FRAME).all()
    assert isinstance(case.part(), Part)
