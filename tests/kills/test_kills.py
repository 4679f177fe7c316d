"""Killed anywhere and resumed equals never stopped; `python -m tests.kills` kills more."""

import pytest

from tests.kills.kills import kill_at_every_operation, kill_at_random

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
