"""What makes `results/` and the documents: commands that can be typed, tables of today."""

import sys

import gymnasium
import numpy as np
import pytest

from irrl.cli import sweep
from irrl.cli.main import main
from tests.helpers.command import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "evidence"))

import fast_lidar
import regression_noise
from documents import readme_text, results_text
from mazes import MAZE_STUDIES, PAGE, page_text
from studies import STUDIES

ALL = STUDIES | MAZE_STUDIES


@pytest.mark.parametrize("name", ALL)
def test_every_study_is_a_command_that_can_be_typed(name, monkeypatch, tmp_path):
    study, seen = ALL[name], []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sweep, "_train_all", lambda jobs, engine: seen.extend(jobs) or ["stop"])
    assert main(study.command.split()[1:]) == 1
    assert seen and {job.config.task for job in seen} == {study.task}
    assert list(tmp_path.iterdir()) == []


def test_the_documents_are_what_the_kept_data_say():
    assert (REPOSITORY / "docs" / "results.md").read_text() == results_text()
    readme = (REPOSITORY / "README.md").read_text()
    assert readme == readme_text(readme)
    for study in STUDIES.values():
        assert study.columns.metrics[0] in results_metrics(study.task)


def test_the_fast_lidar_is_the_environment_of_ap_gym():
    ids = (f"ap_gym:{fast_lidar.ID}", f"fast_lidar:Fast{fast_lidar.ID}")
    slow, fast = (gymnasium.make(env, disable_env_checker=True).unwrapped for env in ids)
    random = np.random.default_rng(0)
    for seed in range(8):
        assert_like(slow.reset(seed=seed)[0], fast.reset(seed=seed)[0])
        for step in range(20):
            action = random.uniform(-1.0, 1.0, 2).astype(np.float32)
            action = np.sign(action) if step % 3 else action  # into corners, too
            whole = {"action": action, "prediction": np.zeros(2, np.float32)}
            (seen, earned, *_), (same, as_much, *_) = slow.step(whole), fast.step(whole)
            assert_like(seen, same)
            assert earned == pytest.approx(as_much, abs=1e-5)


def assert_like(seen, same):
    for name, array in seen.items():
        np.testing.assert_allclose(same[name], array, atol=1e-5)


def test_the_page_of_mazes_is_what_the_kept_data_say():
    assert PAGE.read_text() == page_text(PAGE.read_text())


def results_metrics(task):
    from irrl.tasks import find_task

    return find_task(task).all_columns()


def test_the_table_of_density_noise_is_the_one_that_is_computed():
    shown = (REPOSITORY / "docs" / "regression.md").read_text()
    cells = [regression_noise.cell("crps", noise) for noise in regression_noise.NOISES.values()]
    assert f"| `crps` | {' | '.join(cells)} |" in shown
