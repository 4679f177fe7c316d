"""A reward of one's own, named module:function on the command line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.command import failed
from tests.helpers.runs import content

MINE = """
import numpy as np

def cubed(q):
    return q**3

def falling(q):
    return -q

def infinite(q):
    return 1.0 / (q - 1.0)

def other_shape(q):
    return np.sum(q)

def of_python(q):
    return np.asarray([float(str(x)) for x in np.ravel(q)]).reshape(np.shape(q))

number = 3
"""


@pytest.fixture
def mine(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)


def test_it_trains_as_the_named_one_does(mine, irrl, tmp_path):
    """By the console script as well, whose path does not begin with the working folder."""
    script = Path(sys.executable).with_name("irrl")
    flags = ("--preset", "smoke", "--reward")
    own = [script, "train", "skills", *flags, "clipped-mine:cubed", "--out", "own"]
    assert subprocess.run(own, cwd=tmp_path, capture_output=True).returncode == 0
    assert irrl("train", "skills", *flags, "clipped-power-3", "--out", "named").returncode == 0
    config = json.loads((tmp_path / "own" / "config.json").read_text())
    assert config["reward"] == "clipped-mine:cubed"
    own, named = (
        [json.loads(line) for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()]
        for name in ("own", "named")
    )
    assert [row["step"] for row in own] == [row["step"] for row in named]
    for row, other in zip(own, named, strict=True):  # exp(3 log q) and q * q * q, rounded apart
        assert row == pytest.approx(other, rel=1e-3)
    assert irrl("eval", "own").returncode == 0
    assert " mine:cubed " in irrl("rewards", "--rewards", "mine:cubed").stdout


def test_compare_sweep_and_report_know_it(mine, irrl, tmp_path):
    rewards = "mine:cubed,clipped-linear"
    small = ("--preset", "smoke", "--iterations", "1000", "--workers", "2")
    done = irrl("compare", "skills", "--rewards", rewards, "--seeds", "2", *small, "--out", "a")
    assert done.returncode == 0, done.stderr
    assert "| mine:cubed | 2 |" in (tmp_path / "a" / "comparison.md").read_text()
    swept = irrl("sweep", "skills", "--reward", rewards, "--seed", "0..1", *small, "--out", "b")
    assert swept.returncode == 0, swept.stderr
    folder = Path("mine-cubed") / "seed-1"
    assert content(tmp_path / "a" / folder) == content(tmp_path / "b" / folder)
    assert irrl("report", "a", "-o", "report.html").returncode == 0
    assert "mine:cubed" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("falling", ["mine:falling", "increas"]),
        ("infinite", ["mine:infinite", "finite"]),
        ("other_shape", ["mine:other_shape", "shape"]),
        ("number", ["mine:number", "function"]),
        ("nothing", ["mine", "nothing"]),
        ("of_python", ["mine:of_python", "cannot be compiled"]),
    ],
)
def test_a_function_that_is_no_reward_is_told_in_one_line(mine, irrl, tmp_path, name, words):
    train = ("train", "skills", "--preset", "smoke", "--out", "run", "--reward")
    assert failed(irrl(*train, f"mine:{name}"), *words)
    assert not (tmp_path / "run").exists()


def test_a_module_that_is_not_there_is_told_in_one_line(irrl):
    assert failed(irrl("train", "skills", "--reward", "nowhere:g"), "nowhere")
