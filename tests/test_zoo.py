"""The trained runs in `zoo/` are what its page says, and every verb accepts them."""

import json
import re
import sys

import pytest

from irrl.cli.main import main
from irrl.tasks import find_task, open_run
from tests.helpers.command import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "evidence"))

import zoo

RUNS = zoo.runs()
LARGEST = 15_000_000  # bytes of all of them


def evaluated(capsys, name, *flags):
    assert main(["eval", str(RUNS[name].folder), "--json", *flags]) == 0
    return json.loads(capsys.readouterr().out)


def primary_of(run):
    return find_task(run.config.task).for_variant(run.settings).primary


def test_the_page_is_what_the_runs_say():
    assert (zoo.ZOO / "README.md").read_text() == zoo.readme()


def test_it_is_small_and_whole():
    files = [path for path in zoo.ZOO.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < LARGEST
    for run in RUNS.values():
        assert open_run(run.folder).last_checkpoint() is not None
        assert len(list((run.folder / "checkpoints").glob("0*"))) == 1
        assert not json.loads((run.folder / "provenance.json").read_text())["dirty"]


@pytest.mark.parametrize("name", [n for n, run in RUNS.items() if run.config.task == "skills"])
def test_skills_are_those_of_the_page(name, capsys):
    """Tables are the same on any machine, so the number is, too."""
    primary = primary_of(RUNS[name])
    found = evaluated(capsys, name)[primary.name]
    kept = json.loads((RUNS[name].folder / "summary.json").read_text())[primary.name]
    assert found == kept
    assert re.search(rf"`{name}` \| {re.escape(primary.title)}: {found:.1f} \|", zoo.readme())


def test_they_can_be_played_and_plotted(tmp_path, capsys):
    folders = [str(RUNS[f"skills-{reward}"].folder) for reward in ("clipped-linear", "clipped-log")]
    assert main(["play", folders[0], "-o", str(tmp_path / "play.png"), "--seed", "0"]) == 0
    assert main(["plot", *folders, "-o", str(tmp_path / "plot.png")]) == 0
    assert (tmp_path / "play.png").stat().st_size > 10_000


def test_digits_are_told_as_often_as_the_page_says(capsys, mnist_cache):
    """On test digits; another processor may round otherwise."""
    kept = json.loads((RUNS["digits-ram"].folder / "summary.json").read_text())
    found = evaluated(capsys, "digits-ram")
    assert found["test_accuracy_percent"] == pytest.approx(kept["test_accuracy_percent"], abs=0.3)
    assert f"accuracy (%): {kept['accuracy_percent']:.1f} |" in zoo.readme()
