"""Notebooks run from top to bottom, on few steps; the first cell brings irrl or says what lacks."""

import re
import subprocess
import sys

import nbformat
import pytest
from nbclient import NotebookClient

from tests.helpers.command import REPOSITORY

NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("*.ipynb"))
SAID = {
    "active_perception": "learned  told",
    "rewards_and_noise": "std in units of the largest reward",
    "skills_on_your_environment": "of 8 skills can be told",
}
WITHOUT = """
import importlib.util, sys
missing, find = sys.argv[1].split(), importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name in missing else find(name)
exec(sys.stdin.read())
"""


def read(path):
    return nbformat.read(path, as_version=4)


def first_cell(path):
    return next(cell.source for cell in read(path).cells if cell.cell_type == "code")


def without(missing, path, folder):
    """Run the first cell where some modules are not there."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, missing],
        input=first_cell(path), cwd=folder, capture_output=True, text=True,
    )  # fmt: skip


def test_each_is_known_and_begins_with_the_same_cell():
    assert {path.stem for path in NOTEBOOKS} == set(SAID)
    plain = {re.sub(r"NEEDS = .*", "", first_cell(path)) for path in NOTEBOOKS}
    assert len(plain) == 1


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_is_kept_without_outputs(path, tmp_path, monkeypatch):
    monkeypatch.setenv("IRRL_NOTEBOOK_STEPS", "6000")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    notebook = read(path)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in code)
    where = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=300, resources=where).execute()
    outputs = [output for cell in code for output in cell.outputs]
    assert SAID[path.stem] in "".join(output.get("text", "") for output in outputs)
    assert any("image/png" in output.get("data", {}) for output in outputs)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_without_its_extra_a_notebook_says_which(path, tmp_path):
    done = without("stable_baselines3", path, tmp_path)
    if "'sb3'" not in first_cell(path) and '"sb3"' not in first_cell(path):
        assert done.returncode == 0, done.stderr
        return
    last = done.stderr.strip().splitlines()[-1]
    assert last.endswith("this notebook needs stable_baselines3: pip install 'irrl[sb3]'")


def test_without_irrl_and_with_nothing_to_install_it_says_what_to_do(tmp_path):
    done = without("irrl", NOTEBOOKS[0], tmp_path)
    assert "lay irrl-*.whl beside this notebook" in done.stderr.strip().splitlines()[-1]
