import subprocess
import sys

import pytest

from irrl.tasks import make_config
from irrl.tasks.registry import find_task
from irrl.tasks.skills.task import TASK

HEAVY = ("torch", "matplotlib", "mujoco", "numba", "gymnasium")


def test_the_task_is_found_by_its_name():
    assert find_task("skills") is TASK


def test_heavy_libraries_come_in_when_they_are_used():
    code = (
        "import sys; from irrl.tasks import make_config; make_config('skills'); "
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_what_the_comparison_shows():
    assert list(TASK.all_panels()) == ["n_skills", "cells_reached"]
    assert TASK.all_columns() == ("n_skills", "n_skills_greedy", "cells_reached", "seconds")
    assert TASK.comparable == ("map", "codes")
    assert TASK.title(TASK.variant({})) == "Skill discovery in rooms"


def test_the_authors_numbers_are_of_rewards_that_exist():
    published = TASK.published["skills"]
    assert published.length == "20 to 30 million iterations"
    for reward, anchor in published.numbers.items():
        assert make_config("skills", "paper", reward=reward).reward == reward
        assert anchor.low < anchor.high <= TASK.ceiling(make_config("skills", "paper"))
    assert published.texts()["clipped-linear"] == "85-90 at 20 to 30 million iterations"


@pytest.mark.parametrize("preset", TASK.presets)
def test_a_preset_is_valid_and_changes_what_it_names(preset):
    settings = make_config("skills", preset).settings()
    for name, value in TASK.presets[preset].settings.items():
        assert settings[name] == value
