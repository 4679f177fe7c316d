"""Killed anywhere and resumed equals never stopped; `python -m tests.kills` kills more."""

import numpy as np
import pytest
from gymnasium import spaces

from irrl import PreferenceModel, RewardModel
from tests.kills.kills import kill_at_every_operation, kill_at_random, kill_while_writing

SETTINGS = {"iterations": 1_000, "checkpoint_every": 500}


@pytest.mark.slow
def test_killed_at_every_file_operation(tmp_path):
    kills, operations, differences = kill_at_every_operation(tmp_path, "skills", SETTINGS)
    assert operations > 30 and kills >= operations and not differences


@pytest.mark.slow
def test_killed_at_random_moments(tmp_path):
    found = kill_at_random(tmp_path, "skills", SETTINGS, kills=20)
    assert found.kills >= 20 and not found.differences


def test_killed_at_some_file_operations(tmp_path):
    kills, operations, differences = kill_at_every_operation(tmp_path, "skills", SETTINGS, every=9)
    assert kills >= operations // 9 and not differences


@pytest.mark.parametrize(("kind", "options"), [(RewardModel, {"labels": 3}), (PreferenceModel, {})])
def test_a_model_is_saved_whole_or_not_at_all(kind, options, tmp_path):
    place = spaces.Box(-1.0, 1.0, (2,), np.float32)
    first, second = (kind(place, width=8, seed=n, **options) for n in (0, 1))
    path = tmp_path / "models" / "model.safetensors"
    path.parent.mkdir()
    first.save(path)
    seen = []
    for _ in kill_while_writing(path.parent, lambda: second.save(path)):
        seen.append(kind.load(path).settings.seed)
        first.save(path)
    assert len(seen) > 3 and set(seen) == {0, 1}
