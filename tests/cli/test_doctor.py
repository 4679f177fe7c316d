"""`irrl doctor` says what is there and what is missing, and never fails because of it."""

import json

import pytest

from irrl.cli import doctor
from irrl.cli.main import main
from irrl.tasks.contract import Requirement

NAMES = {"irrl", "PyTorch", "GPU", "MuJoCo's drawing", "MNIST", "Ray", "Stable-Baselines3", "RLlib",
         "TRL", "JAX", "TensorBoard", "Plotly", "browser"}  # fmt: skip


@pytest.fixture
def quick(monkeypatch):
    """Nothing is asked in processes of their own: that takes seconds."""
    from irrl.runs import probe

    monkeypatch.setattr(probe, "probe", lambda code: "asked")


def test_everything_is_told_as_a_table_and_as_json(irrl, monkeypatch, tmp_path):
    monkeypatch.setenv("IRRL_CACHE", str(tmp_path / "nothing"))
    told = irrl("doctor", "--json")
    assert told.returncode == 0, told.stderr
    found = {each["name"]: each for each in json.loads(told.stdout)}
    assert set(found) == NAMES
    assert found["PyTorch"]["found"] and "torch 2" in found["PyTorch"]["what"]
    assert found["MuJoCo's drawing"]["found"], found["MuJoCo's drawing"]
    assert not found["MNIST"]["found"] and found["MNIST"]["install"] == "irrl data mnist"
    assert found["Ray"]["install"] == "pip install 'irrl[ray]'"


def test_what_is_missing_stands_with_the_line_that_brings_it(quick, monkeypatch, capsys):
    def none(name):
        raise doctor_missing(name)

    from importlib import metadata

    doctor_missing = metadata.PackageNotFoundError
    for function in ("version", "requires", "metadata"):
        monkeypatch.setattr(metadata, function, none)
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    for line in ("pip install 'irrl[torch]'", "pip install 'irrl[sb3]'", "pip install 'ray[rllib]'",
                 "pip install 'trl'", "apt-get install chromium"):  # fmt: skip
        assert line in " ".join(text.split()), line


@pytest.mark.parametrize("error", [RuntimeError("two\nlines"), SystemExit(3), MemoryError()])
def test_whatever_goes_wrong_is_something_missing(error):
    def look():
        raise error

    found = doctor.finding(Requirement("it", "for that", "get it", look))
    assert not found.found and found.what and "\n" not in found.what


def test_a_version_that_is_too_old_is_missing(monkeypatch):
    from importlib import metadata

    lines = ["torch>=2.2; extra == 'torch'", "numpy>=1.26", "odd; extra == 'other'"]
    monkeypatch.setattr(metadata, "requires", lambda name: lines)
    monkeypatch.setattr(metadata, "version", lambda name: "1.13")
    with pytest.raises(RuntimeError, match=r"torch>=2.2 \(there is 1.13\)"):
        doctor.packages("irrl[torch]")
    monkeypatch.setattr(metadata, "version", lambda name: "2.13.0+cpu")
    assert doctor.packages("irrl[torch]") == "torch 2.13.0+cpu"


def test_a_question_that_crashes_is_answered_in_one_line():
    from irrl.runs.probe import probe

    with pytest.raises(RuntimeError, match=r"^ended with code -6$"):
        probe("import os; os.abort()")
    with pytest.raises(RuntimeError, match=r"^PyTorch sees none$"):
        probe("raise SystemExit('PyTorch sees none')")
