"""A task in somebody else's package, `toy/`, installed beside irrl: every verb has to know it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from tests.helpers.browser import find_browser, open_page
from tests.helpers.command import failed, irrl_command
from tests.helpers.runs import content, killed_and_resumed

TOY = Path(__file__).parent / "toy"
LONG = ("--updates", "20000", "--checkpoint-every", "1000", "--evaluate-every", "500")


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """Where the package is installed: nothing of irrl is touched."""
    folder = tmp_path_factory.mktemp("installed")
    source = folder / "source"
    source.mkdir()
    for path in TOY.iterdir():
        if path.is_file():
            (source / path.name).write_bytes(path.read_bytes())
    options = ("--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--no-compile")
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        *options,
        "--target",
        folder / "site",
        source,
    ]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "site"


@pytest.fixture
def installed(package, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(package), *python_path()]))


def python_path():
    return filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))


def test_the_task_is_less_than_a_hundred_lines():
    assert len((TOY / "doors.py").read_text().splitlines()) < 100


def test_it_trains_evaluates_and_says_its_settings(installed, irrl, tmp_path):
    assert "--labels" in irrl("train", "doors", "--help").stdout
    done = irrl("train", "doors", "--labels", "4", "--out", "run")
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["accuracy_percent"] == 100.0  # chance: 25
    evaluated = json.loads(irrl("eval", "run", "--json").stdout)
    assert evaluated["accuracy_percent"] == 100.0 and evaluated["step"] == 1000
    assert "finished already" in irrl("resume", "run").stdout
    assert "doors --preset smoke: less\n    --updates 80" in irrl("presets").stdout
    assert failed(irrl("play", "run"), "doors has nothing to play")
    assert failed(irrl("train", "doors", "--labels", "1", "--out", "x"), "labels", "at least 2")
    assert failed(irrl("compare", "doors", "--labels", "2000", "--out", "x"), "so many doors")
    assert not (tmp_path / "x").exists()


def test_killed_and_resumed_it_ends_with_the_same_numbers(installed, tmp_path):
    killed_and_resumed(tmp_path / "killed", "doors", LONG, kills=3, checkpoints=3)
    whole = irrl_command("train", "doors", *LONG, "--out", tmp_path / "whole")
    assert whole.returncode == 0, whole.stderr
    assert content(tmp_path / "killed") == content(tmp_path / "whole")
    resumed = json.loads((tmp_path / "killed" / "provenance.json").read_text())["resumed"]
    assert len(resumed) == 3


def test_a_changed_setting_is_not_resumed(installed, irrl, tmp_path):
    assert irrl("train", "doors", "--preset", "smoke", "--out", "run").returncode == 0
    (tmp_path / "run" / "summary.json").unlink()
    path = tmp_path / "run" / "config.json"
    path.write_text(path.read_text().replace('"learning_rate": 4.0', '"learning_rate": 5.0'))
    assert failed(irrl("resume", "run"), "its learning-rate is 4.0", "says 5.0")


def test_compare_plot_and_a_report_in_the_browser(installed, irrl, tmp_path):
    command = ("compare", "doors", "--rewards", "clipped-linear,log", "--seeds", "2")
    done = irrl(*command, "--preset", "smoke", "--workers", "1", "--out", "out")
    assert done.returncode == 0, done.stderr
    assert "accuracy %" in done.stdout
    assert irrl("plot", "out", "-o", "again.png").returncode == 0
    assert (tmp_path / "again.png").stat().st_size > 5000
    assert irrl("figure", "reward-comparison", "out", "-o", "figure.png").returncode == 0
    assert irrl("report", "out", "-o", "report.html").returncode == 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser())
        page = open_page(browser)
        page.goto((tmp_path / "report.html").as_uri())
        page.wait_for_selector("html[data-drawn=yes]")
        text = page.inner_text("main")
        curves = page.locator("#chart-0 path.js-line").count()
        browser.close()
    assert page.complaints == [] and curves >= 2
    assert "doors" in text and "labels told (%)" in text and "clipped-linear" in text


def test_sweeps_of_both_engines_give_the_same_runs(installed, irrl, tmp_path):
    command = ("sweep", "doors", "--preset", "smoke", "--labels", "4,6", "--seed", "0..1")
    local = irrl(*command, "--out", "local")
    ray = irrl(*command, "--engine", "ray", "--workers", "2", "--out", "ray")
    assert local.returncode == ray.returncode == 0, local.stderr + ray.stderr
    names = [
        p.parent.relative_to(tmp_path / "local") for p in tmp_path.rglob("local/**/summary.json")
    ]
    assert len(names) == 4
    for name in names:
        assert content(tmp_path / "local" / name) == content(tmp_path / "ray" / name), name


def test_a_run_of_a_task_that_is_not_installed_says_which_package_it_wants(package, irrl, tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(package), *python_path()])}
    command = ("train", "doors", "--preset", "smoke", "--out", "run")
    assert irrl(*command, env=environment).returncode == 0
    for verb in ("resume", "eval", "plot", "report"):
        assert failed(irrl(verb, "run"), "task 'doors'", "not installed", "irrl-doors 0.3.0")
    (tmp_path / "run" / "provenance.json").unlink()
    assert failed(irrl("eval", "run"), "task 'doors'", "install the package it is from")


# --- packages that are not as they should be ---


def offer(site, package, entry):
    """A package with an entry point and nothing else."""
    folder = site / f"{package}-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(f"[irrl.tasks]\n{entry}\n")


CHANGED = "import dataclasses, doors\nTASK = dataclasses.replace(doors.TASK"
BROKEN = {
    "import os\nraise RuntimeError('no luck')": "cannot be loaded: RuntimeError: no luck",
    "TASK = 3": "breaks the contract of a task: it is a int",
    "from doors import TASK": "breaks the contract of a task: its name is 'doors'",
    f"{CHANGED}, name='x')": "its name is 'x'",
    f"{CHANGED}, config=int)": "its config is not derived from",
}


@pytest.mark.parametrize(("source", "told"), BROKEN.items())
def test_a_task_that_cannot_be_used_is_named_and_the_others_go_on(
    installed, irrl, tmp_path, monkeypatch, source, told
):
    site = tmp_path / "site"
    offer(site, "unlucky", "hapless = hapless:TASK")
    (site / "hapless.py").write_text(source)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), *python_path()]))
    assert failed(irrl("train", "hapless"), "'hapless' of package unlucky", told)
    listed = irrl("presets")
    assert listed.returncode == 0 and "doors --preset fast" in listed.stdout
    assert [line for line in listed.stderr.splitlines() if told in line]
    assert irrl("train", "doors", "--preset", "smoke", "--out", "run").returncode == 0


def test_two_packages_with_a_task_of_the_same_name(installed, irrl, tmp_path, monkeypatch):
    offer(tmp_path / "site", "other-doors", "doors = doors:TASK")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "site"), *python_path()]))
    assert failed(irrl("train", "doors"), "several packages", "irrl-doors, other-doors")
    assert "unknown task 'dors'" in irrl("train", "dors").stderr
