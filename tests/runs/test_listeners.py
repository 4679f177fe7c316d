"""Metrics go to any tracker through a function of each row."""

import shutil

import pytest

from irrl.cli.main import main
from irrl.runs.listeners import listen
from irrl.tasks import open_run, train
from tests.helpers.command import failing
from tests.helpers.runs import run_in

ROWS = []


def tracker(run):
    """What `--listener` names in these tests."""
    ROWS.clear()
    return ROWS.append


def not_one(run):
    return 3


def test_the_command_line_tells_each_row(tmp_path):
    flags = ["--preset", "smoke", "--listener", f"{__name__}:tracker"]
    assert main(["train", "skills", *flags, "--out", str(tmp_path / "run")]) == 0
    assert open_run(tmp_path / "run").rows() == ROWS and len(ROWS) == 5


def test_a_resumed_run_tells_what_it_kept_and_what_comes(tmp_path):
    run_in(tmp_path / "run", "skills")
    rows = open_run(tmp_path / "run").rows()
    (tmp_path / "run" / "summary.json").unlink()
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "000000002000")
    (tmp_path / "run" / "checkpoints" / "last").unlink()
    run = open_run(tmp_path / "run")
    listen(run, tracker)
    train(run)
    assert rows == ROWS


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("tracker", "listener must be module:function"),
        ("no_such_module:f", "cannot import listener"),
        (f"{__name__}:nothing", "has no function 'nothing'"),
        (f"{__name__}:ROWS", "has no function 'ROWS'"),
        (f"{__name__}:not_one", "not_one must return a function of a row of metrics, got int"),
    ],
)
def test_what_is_no_listener_is_told_in_one_line(name, words, tmp_path, capsys):
    out = tmp_path / "run"
    command = ("train", "skills", "--preset", "smoke", "--out", out, "--listener", name)
    assert words in failing(capsys, *command)
    assert not out.exists()
