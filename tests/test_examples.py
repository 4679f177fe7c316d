"""Every example runs as it stands, on few steps."""

import os
import subprocess
import sys

import pytest

from tests.helpers.command import REPOSITORY

EXAMPLES = sorted((REPOSITORY / "examples").glob("*.py"))
STEPS = {
    "circle_square": 2_048, "language_model": 4, "preferences": 3_000, "regression": 3_200,
    "skills": 6_400,
}  # fmt: skip
SAID = {
    "circle_square": "final accuracy of the last 1,000 episodes",
    "labels_in_info": "discriminator_accuracy_percent",
    "language_model": "at last, ",
    "own_discriminator": "of 8 skills",
    "preferences": "true return",
    "regression": "squared error per step of the last 1,000 episodes",
    "saving": "by an oracle",
    "single_file_ppo": "of 8 skills",
    "skills": "of 32 skills",
    "tracker": "skills at best",
}


def test_each_is_known():
    assert {path.stem for path in EXAMPLES} == set(SAID)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_is_short(path, tmp_path):
    assert len(path.read_text().splitlines()) <= 60
    done = subprocess.run(
        [sys.executable, path, str(STEPS.get(path.stem, 2_000))],
        cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert SAID[path.stem] in done.stdout
