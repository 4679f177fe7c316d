"""Runs sorted into studies, verdicts, and the report as a file; test_report_browser opens it."""

import json
import math
import re
import shutil
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from irrl.analysis.authors import Beside
from irrl.analysis.compare import BASELINE, ORACLE, group_by_reward
from irrl.analysis.plots import colour_of
from irrl.analysis.stats import mean_estimate
from irrl.cli.main import main
from irrl.report import pages, studies
from irrl.report.html import Page, Picture, Section, Table, _cells, render
from irrl.runs.run import Run
from irrl.tasks import find_task, make_config, open_run
from irrl.tasks.published import Anchor
from irrl.tasks.registry import all_tasks
from tests.helpers.command import failing
from tests.helpers.runs import run_in


def run_of(task="skills", preset="fast", **settings):
    """A run that was never trained, with all its settings."""
    return Run("nowhere", make_config(task, preset, **settings))


# --- sorting ---


@pytest.mark.parametrize(
    ("run", "text"),
    [
        (run_of(), "fast"),
        (run_of(reward="disdain", seed=7), "fast"),  # what a reward brings along is no difference
        (run_of(preset="visits"), "visits"),
        (run_of(initial_value=4.852), "fast, initial-value 4.852"),
        (run_of(preset="smoke", checkpoint_every=1000), "smoke"),
        (run_of("digits", epochs=10, parts=1), "fast, epochs 10, parts 1"),
        (run_of("digits", model="dt-ram", oracle="x"), "fast"),
        (run_of("counting", behaviour_policy="stay"), "fast"),
    ],
)
def test_a_set_up_is_a_preset_and_what_differs_from_it(run, text):
    assert studies.set_up_of(run) == text


def test_the_map_of_a_file_is_named_and_not_drawn(tmp_path):
    (tmp_path / "map.txt").write_text("S....\n.###.\n.....\n")
    assert studies.set_up_of(run_of(map=str(tmp_path / "map.txt"))) == "fast, map of its own"


def test_the_authors_curves_are_cut_where_ours_end():
    ram = find_task("digits").published["ram"]
    assert ram.curve_up_to("clipped-linear", 250) == ([100, 200], [47.3, 56.9])
    skills = find_task("skills").published["skills"]
    assert skills.curve_up_to("clipped-linear", 1e9) == ([], [])
    for task in all_tasks().values():
        for published in task.published.values():
            assert published.length and published.numbers
            assert all(len(v) == len(published.steps) for v in published.curves.values())
            assert set(published.curves) <= set(published.numbers)


# --- verdicts ---


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        ("agrees", "good"),
        ("89.6 by then: agrees", "good"),
        ("above by 16.3", None),  # above the authors is no reproduction either
        ("below by 5.0", "bad"),
        ("80.1 by then: below by 5.0", "bad"),
        ("below by 1.0, within the spread", None),
        ("-", None),
        ("agrees to nothing", None),
    ],
)
def test_only_what_agrees_is_green(cell, kind):
    text = _cells(["reward", cell])
    assert (re.findall(r'class="(\w+)"', text) or [None])[0] == kind


def test_the_share_of_the_authors_numbers_is_of_the_same_training():
    def study(variant, verdict):
        task = find_task(variant)
        curves = {task.primary.name: (np.array([0.0, 100.0]), np.array([[0.0, 60.0]] * 2))}
        theirs = Beside("40", Anchor("40", 39.0, 41.0), "half of it", 50.0, True)
        row = SimpleNamespace(label="a", verdict=verdict, theirs=theirs)
        return SimpleNamespace(task=task, variant=variant, rows=[row], curves={"a": curves})

    both = [study("skills", "below by 9.0"), study("counting", "below by 9.0")]
    assert studies.share_of_authors(both, "a").value == pytest.approx(30.0 / 40.0)
    assert studies.share_of_authors([both[0], study("counting", "-")], "a") is None


# --- parts of a page ---


def test_long_curves_are_thinned_and_keep_their_ends():
    assert pages.thinned(5).tolist() == [0, 1, 2, 3, 4]
    kept = pages.thinned(1501)
    assert kept[0] == 0 and kept[-1] == 1500 and len(kept) == 500


def test_a_reward_has_the_colour_it_has_in_figures():
    hollow = {"colour": colour_of("linear"), "dash": "dash", "symbol": "square-open"}
    assert pages.line_style("linear") == hollow
    assert pages.line_style("clipped-linear") == {**hollow, "dash": "solid", "symbol": "square"}
    assert pages.line_style("clipped-linear" + ORACLE)["dash"] == "dot"
    assert pages.line_style("sweep" + BASELINE)["colour"] == "#767676"


def test_everything_is_escaped():
    evil = '</script><script>alert("1")</script>'
    group = {"label": evil, "colour": "#000000", "dash": "solid", "symbol": "", "steps": [0],
             "values": {}}  # fmt: skip
    chart = {"groups": [group], "metrics": {evil: evil}, "caption": evil}
    table, picture = Table([evil], [[evil, evil]], evil), Picture(evil, evil, None, evil)
    section = Section(evil, [evil], table, chart, [picture])
    page = Page(evil, [evil], [table], [section], [(evil, [table], [picture])], evil, {evil: evil})
    text = render(page, "/* charting */")
    assert evil not in text and text.count("<script") == 3
    (data,) = re.findall(r'id="data">(.*?)</script>', text, flags=re.S)
    assert json.loads(data)[0]["caption"] == evil


# --- the command ---


@pytest.fixture(scope="module")
def skills(tmp_path_factory):
    """Two rewards of two seeds, and a study of its own. Do not change them."""
    folder = tmp_path_factory.mktemp("skills")
    for reward in ("clipped-linear", "clipped-log"):
        for seed in (0, 1):
            run_in(folder / reward / f"seed-{seed}", "skills", reward=reward, seed=seed)
    run_in(folder / "other", "skills", epsilon=0.5)
    return folder


def data_of(report):
    (data,) = re.findall(r'id="data">(.*?)</script>', report.read_text(), flags=re.S)
    return json.loads(data)


def test_a_report_tells_what_the_run_folders_hold(skills, tmp_path, capsys):
    output = tmp_path / "new" / "report.html"
    assert main(["report", str(skills), "-o", str(output)]) == 0
    text = output.read_text()
    assert "Skill discovery in rooms (smoke)" in text
    assert "Skill discovery in rooms (smoke, epsilon 0.5)" in text
    runs = [open_run(skills / "clipped-linear" / f"seed-{n}") for n in (0, 1)]
    final = mean_estimate([run.summary()["n_skills"] for run in runs])
    assert str(final.within(0.0, math.inf)) in text
    first, second = data_of(output)
    assert {group["label"] for group in first["groups"]} == {"clipped-linear", "clipped-log"}
    (linear,) = (g for g in first["groups"] if g["label"] == "clipped-linear")
    assert linear["steps"] == [row["step"] for row in runs[0].rows()]
    shown = [float(f"{row['n_skills']:.5g}") for row in runs[1].rows()]
    assert linear["values"]["n_skills"][1] == shown
    assert linear["reach"] is None and first["caption"].startswith("Mean and each of 2 seeds")
    assert first["ranges"] == {
        "n_skills": [0.0, pytest.approx(21.4, abs=0.05)],
        "cells_reached": [0.0, 23.0],
    }
    assert "uthors" not in text.split('id="data"')[0]  # nobody's number beside a smoke run
    assert len(second["groups"]) == 1 and len(second["groups"][0]["values"]["n_skills"]) == 1
    assert text.count('<img src="data:image/png;base64,') == 2
    assert "http://" not in text.split('id="data"')[0]


def test_scripted_baselines_are_told_apart(tmp_path):
    settings = {"reward": "clipped-linear", "seed": 0}
    runs = [
        run_of("counting", **settings),
        run_of("counting", behaviour_policy="sweep", **settings),
    ]
    groups = group_by_reward(runs[::-1])
    assert list(groups) == ["clipped-linear", "sweep (scripted baseline)"]


def test_a_picture_that_cannot_be_made_is_told_in_its_place(
    digits_run, tmp_path, irrl, monkeypatch
):
    monkeypatch.setenv("IRRL_CACHE", str(tmp_path / "nothing"))
    result = irrl("report", digits_run, "-o", "report.html")
    assert result.returncode == 0, result.stderr
    text = (tmp_path / "report.html").read_text()
    assert "No picture: no MNIST in" in text


def test_measured_noise_is_found_or_named(skills, tmp_path, capsys):
    folder = shutil.copytree(skills / "other", tmp_path / "runs" / "run").parent
    delta = dict.fromkeys(("mean", "std", "skewness", "p_zero_mean"), 0.25)
    delta |= {"p_symmetric": 1 / 201, "resamples": 200}
    rewards = dict.fromkeys(("bias", "predicted_bias", "std", "predicted_std"), 0.125)
    found = {
        "delta": [{"step": 3, "samples": 100, **delta}],
        "rewards": [{"step": 3, "reward": "log", **rewards}],
    }
    oracle = {"run": "a judge", "accuracy_percent": 87.55, "test_accuracy_percent": 86.0}
    runs = {"a run": found, "another": found}  # of the same numbers, which are told once
    record = {"command": "irrl noise measure x", "commit": "abc", "oracle": oracle, "runs": runs}
    (folder / "digits-noise.json").write_text(json.dumps(record))
    output = tmp_path / "report.html"
    assert main(["report", str(folder), "-o", str(output)]) == 0
    text = output.read_text()
    assert "Discriminator noise (digits-noise.json)" in text
    assert "there is no digits-noise.png beside it" in text
    assert "<td>0.250</td>" in text and "<td>0.125</td>" in text
    assert text.count("<td>&lt;= 0.005</td>") == 1
    assert '<th scope="row">a run, another</th>' in text
    plain = re.sub("<.*?>", "", text)
    assert "The oracle, a judge: accuracy 87.5 %; test accuracy 86.0 %." in plain

    (tmp_path / "bad.json").write_text('{"runs": 3}')
    named = ("report", skills, "--noise", tmp_path / "bad.json", "-o", tmp_path / "x.html")
    assert "is not what `irrl noise measure` writes" in failing(capsys, *named)
    assert not (tmp_path / "x.html").exists()


def test_bad_input_is_told_in_one_line(skills, tmp_path, capsys, monkeypatch):
    assert "must end in .html" in failing(capsys, "report", skills, "-o", tmp_path / "r.pdf")
    assert "is not a folder" in failing(capsys, "report", tmp_path / "nowhere")
    twice = shutil.copytree(skills / "other", tmp_path / "twice")
    out = ("-o", tmp_path / "r.html")
    assert "have the same seed" in failing(capsys, "report", skills, twice, *out)
    cut = shutil.copytree(skills / "clipped-log" / "seed-0", tmp_path / "cut")
    metrics = (cut / "metrics.jsonl").read_bytes()
    (cut / "metrics.jsonl").write_bytes(metrics[:-7])
    assert "cut or damaged in line" in failing(capsys, "report", cut, *out)
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    assert "pip install 'irrl[report]'" in failing(capsys, "report", skills, *out)
    assert not (tmp_path / "r.html").exists()


def test_runs_of_different_versions_do_not_share_a_table(skills, tmp_path):
    old = shutil.copytree(skills / "clipped-log", tmp_path / "old")
    for path in old.rglob("provenance.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "irrl": "0.0.1"}))
    output = tmp_path / "report.html"
    assert main(["report", str(skills / "clipped-linear"), str(old), "-o", str(output)]) == 0
    assert "smoke, irrl 0.0.1" in output.read_text() and len(data_of(output)) == 2
