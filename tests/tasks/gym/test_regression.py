"""Labels that are numbers in the task: what is measured, and what an environment must say."""

import numpy as np
import pytest

from irrl.analysis.comparison_plots import plot_comparison
from irrl.errors import UserError
from irrl.reward_model.discriminator import Discriminator
from irrl.tasks import checked_run, evaluate, find_task, make_config, open_run
from irrl.tasks.gym import train
from irrl.tasks.gym.environments import describe
from irrl.tasks.gym.evaluate import evaluate_now
from irrl.tasks.gym.play import walks_of
from tests.helpers.runs import run_in
from tests.tasks.gym import own
from tests.tasks.gym.small import SMALL

WALK = SMALL["regression"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("light") / "run"
    settings = {"last_action": True, "varying_length": True, "rollout": 50, "steps": 800}
    light = {"env": "ap_gym:LightDark-v0", "mode": "regression", "reward": "crps", "pay": "steps"}
    return run_in(folder, "gym", **light, **settings, evaluate_every=400, checkpoint_every=400)


def test_its_error_is_the_one_that_the_environment_finds(run):
    summary = run.summary()
    assert 0.0 < summary["squared_error"] < 5.0
    ours = summary["squared_error"] / 3.0  # in units of the label: a blind guess has 1/3
    assert summary["environment_mean_squared_error"] == pytest.approx(ours, rel=0.2)
    assert {"discriminator_crps", "pit_calibration_error", "final_squared_error"} <= set(summary)


def test_its_primary_metric_is_the_squared_error(run):
    task = find_task("gym").for_variant(run.settings)
    assert task.primary.name == "squared_error" and not task.primary.higher_is_better
    _, found = evaluate(open_run(run.folder))
    assert found["squared_error"] == run.summary()["squared_error"]


def test_it_can_be_compared_and_reported(run):
    assert checked_run(run.folder).final("squared_error") == run.summary()["squared_error"]
    (panel,) = plot_comparison([open_run(run.folder)]).axes
    assert panel.get_ylabel() == find_task("gym").for_variant(run.settings).primary.title
    assert not panel.texts  # where less is better, zero is no ceiling


def test_where_it_went_can_be_drawn(run):
    (walk, _) = walks_of(open_run(run.folder), 2, 0)
    assert walk.places.shape[1] == 2 and np.abs(walk.places).max() <= 1.0


def test_bins_and_an_ensemble_with_a_bonus_go_with_a_reward_of_classes(tmp_path):
    bins = {"density": "bins", "bins": 8, "reward": "clipped-linear", "bonus_weight": 0.1}
    bins["beta_nll"] = 0.0
    found = run_in(tmp_path / "run", "gym", **{**WALK, **bins, "steps": 400}).summary()
    assert found["squared_error"] < 2.0 and found["reward_mean"] >= 0.0


def test_the_discriminators_step_size_falls_along_its_schedule(tmp_path, monkeypatch):
    shares = []
    scale = Discriminator.scale_learning_rate
    monkeypatch.setattr(
        Discriminator, "scale_learning_rate", lambda d, s: shares.append(s) or scale(d, s)
    )
    run_in(tmp_path / "run", "gym", **WALK)
    assert len(shares) > 2 and shares == sorted(shares, reverse=True)
    assert shares[0] > 0.5 and shares[-1] == pytest.approx(0.0)


def test_what_was_just_measured_is_not_measured_again(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(train, "evaluate_now", lambda *a: seen.append(1) or evaluate_now(*a))
    run = run_in(tmp_path / "run", "gym", **WALK)
    assert len(seen) == len(run.rows())
    assert run.summary()["squared_error"] == run.rows()[-1]["squared_error"]


def test_an_environment_that_says_nothing_is_asked_for_numbers():
    config = {k: v for k, v in WALK.items() if k not in ("labels", "label_low", "label_high")}
    with pytest.raises(UserError, match="how many numbers a label has: give --labels"):
        describe(make_config("gym", "smoke", **config))
    with pytest.raises(UserError, match="where labels lie: give --label-low"):
        describe(make_config("gym", "smoke", **config, labels=2))
    with pytest.raises(UserError, match="last-action is for environments that ask"):
        describe(make_config("gym", "smoke", **WALK, last_action=True))


def test_labels_outside_are_told_before_a_run_begins(tmp_path):
    settings = {**WALK, "label_low": 0.0}
    with pytest.raises(UserError, match="has no mass under the prior"):
        run_in(tmp_path / "run", "gym", **settings)
    assert own.Walk is not None and not (tmp_path / "run").exists()
