"""Oracles, and learners to and from a checkpoint."""

import shutil

import pytest
import torch

from irrl.errors import UserError
from irrl.runs.checkpoint import Checkpoint
from irrl.tasks.counting.state import restored_learner, to_checkpoint
from tests.helpers.runs import run_in
from tests.tasks.counting.case import CPU, Case


def test_an_oracle_pays_and_stays_as_it_is(scenes_folder, counting_run):
    case = Case(scenes_folder, oracle=str(counting_run))
    oracle = case.learner.oracle
    assert not any(p.requires_grad for p in oracle.parameters())
    before = {n: p.clone() for n, p in oracle.named_parameters()}
    stats = case.learn()
    assert all((before[n] == p).all() for n, p in oracle.named_parameters())
    assert (stats.rewards - case.rewards).abs().max() > 1e-4
    torch.testing.assert_close(stats.log_count, case.trajectory.log_count)


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


def test_a_checkpoint_holds_all_a_learner_is(scenes_folder):
    case = Case(scenes_folder)
    case.learn()
    arrays, state = to_checkpoint(case.learner, "abc")
    again = restored_learner(case.config, Checkpoint(1, arrays, state), "abc", CPU)
    same, _ = to_checkpoint(again, "abc")
    assert same.keys() == arrays.keys()
    assert all((same[n] == arrays[n]).all() for n in arrays)
    with pytest.raises(UserError, match="not those the run was begun with"):
        restored_learner(case.config, Checkpoint(1, arrays, state), "other", CPU)
