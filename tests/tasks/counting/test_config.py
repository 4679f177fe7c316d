"""Settings that change over a run, and those of the paper."""

import pytest
import torch

from irrl.tasks import make_config
from irrl.tasks.counting.train import ppo_batch
from tests.tasks.counting.case import Case


def test_the_step_size_follows_its_schedule():
    config = make_config("counting", "smoke", schedule="cosine", learning_rate=0.2)
    assert config.learning_rate_at(0) == 0.2
    assert config.learning_rate_at(128) == pytest.approx(0.1)
    assert make_config("counting", "paper").learning_rate_at(10**6) == 1e-4


def test_the_weight_of_entropy_follows_its_schedule(scenes_folder):
    config = make_config("counting", "smoke", entropy_schedule="cosine", entropy_coef=0.2)
    assert config.entropy_coef_at(0) == 0.2 and config.entropy_coef_at(256) == 0.0
    assert make_config("counting", "paper").entropy_coef_at(10**6) == 0.01
    case = Case(scenes_folder, entropy_schedule="cosine", entropy_coef=0.2)
    batch = ppo_batch(case.config, case.trajectory, case.rewards, case.labels, 128)
    assert batch.entropy_coef == pytest.approx(0.1)


def test_moves_may_cost_more_towards_the_end(scenes_folder):
    assert make_config("counting", "smoke", discount=0.9).discount_at(200) == 0.9
    config = make_config("counting", "smoke", discount=0.9, final_discount=0.8)
    assert [config.discount_at(n) for n in (0, 128, 256)] == pytest.approx([0.9, 0.85, 0.8])
    case = Case(
        scenes_folder, discount=0.9, final_discount=0.5, lambda_=1.0, normalise_advantage="none"
    )
    long = (case.trajectory.acted == 6).nonzero()[0, 0]
    for done, left in ((0, 0.9), (128, 0.7)):
        batch = ppo_batch(case.config, case.trajectory, case.rewards, case.labels, done)
        following = case.rewards[long] * left ** torch.arange(5.0, -1.0, -1.0)
        torch.testing.assert_close(batch.returns[:, long], following)


def test_the_papers_numbers():
    config = make_config("counting", "paper")
    assert (config.episodes, config.n_epochs, config.max_moves) == (2_000_000, 10, 6)
    assert (config.learning_rate, config.adam_epsilon) == (1e-4, 1e-5)
    assert (config.discount, config.lambda_, config.clip) == (0.99, 0.99, 0.2)
    assert (config.entropy_coef, config.value_coef, config.max_grad_norm) == (0.01, 0.5, 0.5)
