"""What the pages show can be typed: commands, presets, and the code of the quickstart."""

import os
import re
import subprocess
import sys

import pytest

from irrl.cli.main import VERBS
from irrl.tasks.registry import all_tasks
from tests.helpers.command import REPOSITORY

PAGES = sorted((REPOSITORY / "docs").rglob("*.md"))
TEXT = "\n".join(path.read_text() for path in PAGES if path.name != "results.md")
SNIPPETS = re.findall(
    r"```python\n(.*?)```", (REPOSITORY / "docs" / "quickstart.md").read_text(), flags=re.S
)


@pytest.mark.parametrize("code", SNIPPETS, ids=["reward", "environment"])
def test_the_code_of_the_quickstart_runs_as_it_stands(code, tmp_path):
    fewer = code.replace("100_000", "2_000")
    done = subprocess.run(
        [sys.executable, "-c", fewer], cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "[0.25 0.  ]" in done.stdout or "of 8 skills" in done.stdout


def test_the_verbs_are_there():
    named = set(re.findall(r"^    irrl (\w+)", TEXT, flags=re.M))
    assert named <= set(VERBS) and len(named) > 8


def test_the_tasks_and_presets_are_there():
    tasks = {**all_tasks()}
    for task, preset in re.findall(r"irrl (?:train|compare) (\w+) --preset ([\w-]+)", TEXT):
        assert preset in tasks[task].presets, (task, preset)


def test_the_verbs_of_make_are_there():
    makefile = (REPOSITORY / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, flags=re.M))
    assert set(re.findall(r"`make ([a-z-]+)`", TEXT)) <= targets


def test_results_named_as_sources_are_there():
    costs = (REPOSITORY / "docs" / "costs.md").read_text()
    named = re.findall(r"`([a-z][\w-]+(?:\.json)?)`(?:, `([\w-]+)`)? \|$", costs, flags=re.M)
    assert len(named) > 10
    for name in filter(None, sum(named, ())):
        assert (REPOSITORY / "results" / name).exists(), name
