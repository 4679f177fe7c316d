"""What figures and verbs ask of the task."""

import subprocess
import sys

import pytest

from irrl.runs.run import Run
from irrl.tasks import make_config
from irrl.tasks.digits.task import TASK, panels_of


def run_of(tmp_path, **settings):
    return Run(tmp_path, make_config("digits", "smoke", **settings))


def test_it_is_found_without_heavy_libraries():
    code = (
        "import sys; from irrl.tasks.registry import find_task; find_task('digits'); "
        "print([n for n in ('torch', 'matplotlib', 'mujoco') if n in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.strip() == "[]", result.stderr


def test_panels_are_by_model_and_by_leak(tmp_path):
    ram, log, accuracy, dt = (
        run_of(tmp_path),
        run_of(tmp_path, reward="clipped-log"),
        run_of(tmp_path, reward="accuracy"),
        run_of(tmp_path, model="dt-ram"),
    )
    leaked = run_of(tmp_path, leak_reward_gradient=True)
    assert panels_of([dt, ram, log]) == {"RAM": [ram, log], "DT-RAM": [dt]}
    assert panels_of([ram, accuracy, leaked]) == {
        "RAM": [ram, accuracy],
        "RAM, leaked": [leaked, accuracy],
    }
    assert panels_of([accuracy, leaked]) == {"RAM, leaked": [leaked, accuracy]}
    leaked_dt = run_of(tmp_path, model="dt-ram", leak_reward_gradient=True)
    assert panels_of([leaked_dt]) == {"DT-RAM, leaked": [leaked_dt]}


def test_the_authors_numbers_are_of_both_models():
    assert TASK.published["ram"].curve_point("clipped-linear", 1400) == 89.8
    assert TASK.published["dt-ram"].texts()["clipped-log"] == "~75 at 1500 epochs"
    assert set(TASK.titles) == set(TASK.published) == {"ram", "dt-ram"}
    assert TASK.primary.threshold == 80.0 and TASK.primary.high == 100.0


@pytest.mark.parametrize("preset", sorted(TASK.presets))
def test_presets_are_possible(preset):
    config = make_config("digits", preset)
    assert config.extends_policy == (preset != "paper")
