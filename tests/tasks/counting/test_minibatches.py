"""Minibatches in parts: each episode once, and the same numbers however many threads there are."""

import numpy as np
import pytest
import torch

from irrl.nn.parallel import parts_in_parallel
from irrl.tasks.counting.evaluate import evaluate_model
from irrl.tasks.counting.minibatches import cut_minibatch, minibatches
from irrl.tasks.counting.state import to_checkpoint
from irrl.tasks.counting.train import part_gradients
from tests.tasks.counting.case import CPU, Case


def test_each_pass_takes_each_episode_once(scenes_folder):
    case = Case(scenes_folder, minibatch_episodes=30)
    rounds = list(minibatches(case.config, case.trajectory, 0))
    assert len(rounds) == 2 * 3
    for first in (0, 3):
        chosen = torch.cat([part.chosen for parts in rounds[first : first + 3] for part in parts])
        assert sorted(chosen.tolist()) == list(range(64))
    for parts in rounds:
        for name in ("action_share", "episode_share", "view_share"):
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
        pieces = cut_minibatch(case.config, case.trajectory, case.all, (0,))
        assert len(pieces) == parts
        each = [part_gradients(case.config, case.model, case.batch, piece)[0] for piece in pieces]
        found.append([sum(g) for g in zip(*each, strict=True)])
    for whole, *others in zip(*found, strict=True):
        for other in others:
            torch.testing.assert_close(other, whole, rtol=1e-3, atol=1e-6)


def test_dropout_depends_on_the_address_alone(scenes_folder):
    case = Case(scenes_folder, dropout=0.5)
    gradients = []
    for address in ((0, 0, 0), (0, 0, 0), (0, 1, 0)):
        part = cut_minibatch(case.config, case.trajectory, case.all, address)[0]
        gradients.append(part_gradients(case.config, case.model, case.batch, part)[0][0])
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
            metrics = evaluate_model(case.model, case.split, 0, each)
        torch.set_num_threads(before)
        found.append((to_checkpoint(case.learner, "")[0], metrics))
    assert found[0][1] == found[1][1]
    for name, array in found[0][0].items():
        np.testing.assert_array_equal(array, found[1][0][name])
