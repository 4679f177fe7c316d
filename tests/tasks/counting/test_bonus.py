"""Two count heads, and a bonus for their disagreement."""

import numpy as np
import pytest
import torch

from irrl.ensembles import disagreement
from irrl.tasks import open_run
from irrl.tasks.counting.train import actor_critic_loss, final_rewards, ppo_batch, with_bonus
from tests.helpers.runs import content, run_in
from tests.helpers.together import ends_of, smoke_flags, start_by_hand
from tests.tasks.counting.case import Case
from tests.tasks.counting.test_train import touched

BONUS = {"bonus": "disagreement", "bonus_weight": 7.0, "head_width": 8}


@pytest.mark.parametrize("kind", ["log", "quadratic"])
def test_the_bonus_is_paid_at_the_end_beside_the_reward(scenes_folder, kind):
    case = Case(scenes_folder, **BONUS, bonus_kind=kind, ensemble_size=3)
    trajectory, config = case.trajectory, case.config
    heads = trajectory.head_log_counts
    assert heads.shape == (3, len(case.labels), 7)
    torch.testing.assert_close(trajectory.log_count.exp(), heads.exp().mean(dim=0))
    rewards = final_rewards(config, trajectory.log_count, case.labels)
    gaps = disagreement(heads, kind)
    paid = with_bonus(config, rewards, heads)
    torch.testing.assert_close(paid, rewards + 7.0 * gaps)
    assert gaps.min() > 0, "heads begin apart"
    batch = ppo_batch(config, trajectory, paid, case.labels, 0)
    last = (trajectory.acted - 1, torch.arange(len(paid)))
    torch.testing.assert_close(batch.returns[last], paid)


def test_neither_bonus_nor_policy_reaches_the_count_heads(scenes_folder):
    case = Case(scenes_folder, **BONUS)
    paid = with_bonus(case.config, case.rewards, case.trajectory.head_log_counts)
    batch = ppo_batch(case.config, case.trajectory, paid, case.labels, 0)
    loss, _ = actor_critic_loss(case.config, case.model, case.states, batch, case.all)
    loss.backward()
    assert not touched(case.model) & {"count.weight", "count.bias"}


def test_a_batch_learns_from_what_was_paid(scenes_folder):
    case = Case(scenes_folder, **BONUS)
    expected = with_bonus(case.config, case.rewards, case.trajectory.head_log_counts)
    stats = case.learn()
    torch.testing.assert_close(stats.paid, expected)
    torch.testing.assert_close(stats.rewards, case.rewards)


def test_two_processes_do_what_one_does_and_other_verbs_work(scenes_folder, tmp_path, irrl):
    settings = {"scenes": str(scenes_folder), "episodes": 129, "dropout": 0.0, **BONUS}
    flags = ["train", "counting", *smoke_flags(**settings), "--out"]
    codes, told = ends_of(start_by_hand([*flags, tmp_path / "two"], [*flags, tmp_path / "none"]))
    assert codes == [0, 0], told
    threads = run_in(tmp_path / "threads", "counting", **settings)
    assert content(tmp_path / "two") == content(threads.folder)
    rows = open_run(tmp_path / "two").rows()
    assert all(row["ensemble_disagreement"] > 0 for row in rows)
    assert np.isfinite(rows[-1]["train_bonus_mean"]) and rows[-1]["train_bonus_mean"] > 0
    assert irrl("eval", tmp_path / "two", "--json").returncode == 0
    result = irrl("play", tmp_path / "two", "--episodes", "2", "--output", "sheet.png")
    assert result.returncode == 0, result.stderr
    oracle = ["--oracle", tmp_path / "two", "--scenes", scenes_folder, "--out", tmp_path / "judged"]
    result = irrl("train", "counting", "--preset", "smoke", "--episodes", "64", *oracle)
    assert result.returncode == 0, result.stderr
