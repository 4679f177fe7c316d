import json
import os
import platform
import shutil
import subprocess
import sys
from importlib.metadata import version

import numpy as np
import pytest

from irrl.errors import UserError
from irrl.runs.provenance import provenance
from irrl.runs.reading import digest_of
from irrl.runs.run import Run
from irrl.tasks import (
    check_folder,
    create_run,
    evaluate,
    make_config,
    open_run,
    open_runs,
    train,
    train_in,
)
from tests.helpers.command import REPOSITORY


def smoke(**settings):
    return make_config("skills", "smoke", **settings)


def test_a_run_folder_explains_itself(smoke_run):
    assert {p.name for p in smoke_run.iterdir()} == {
        "config.json",
        "provenance.json",
        "metrics.jsonl",
        "checkpoints",
        "summary.json",
    }
    config = json.loads((smoke_run / "config.json").read_text())
    assert config["task"] == "skills" and config["ensemble_size"] == 1
    made = json.loads((smoke_run / "provenance.json").read_text())
    assert made["command"].startswith("irrl train skills --preset smoke")
    assert {"numpy", "numba"} <= set(made["libraries"])
    summary = json.loads((smoke_run / "summary.json").read_text())
    needed = {"n_skills", "cells_reached", "iterations", "seconds", "iterations_per_second"}
    assert needed <= set(summary)
    assert summary["iterations"] == 2000
    rows = [json.loads(line) for line in (smoke_run / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [0, 500, 1000, 1500, 2000]
    assert rows[-1]["n_skills"] == summary["n_skills"]


def seal_of(state):
    """What a checkpoint's state.json must say of itself to be believed."""
    return digest_of({key: value for key, value in state.items() if key != "sha256"})


def git(*arguments):
    done = subprocess.run(["git", "-C", REPOSITORY, *arguments], capture_output=True, text=True)
    return done.stdout.strip()


def test_provenance_knows_where_the_code_comes_from(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["irrl", "train", "a name with spaces"])
    monkeypatch.setenv("WORLD_SIZE", "3")
    made = provenance()
    assert made["irrl"] == version("irrl") and made["python"] == platform.python_version()
    assert made["command"] == "irrl train 'a name with spaces'" and made["processes"] == 3
    assert made["libraries"]["numpy"] == np.__version__
    assert made["machine"]["cores"] == os.cpu_count() and made["machine"]["processor"]
    assert made["commit"] == (git("rev-parse", "HEAD") or None)


def test_provenance_says_which_package_a_task_is_from(tmp_path):
    run = create_run(tmp_path / "run", smoke())
    assert run.provenance()["task_package"] == f"irrl {version('irrl')}"


def test_a_run_opens_as_it_was_made(smoke_run):
    run = open_run(smoke_run)
    assert run.config == smoke()
    assert run.is_finished and train(run) == run.summary()


def test_creating_over_another_run_is_refused(tmp_path):
    Run.create(tmp_path / "run", smoke())
    with pytest.raises(UserError, match="already holds an unfinished run; go on with"):
        Run.create(tmp_path / "run", smoke())
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("precious")
    with pytest.raises(UserError, match="not empty and not a run"):
        Run.create(tmp_path / "other", smoke())
    assert (tmp_path / "other" / "thesis.tex").read_text() == "precious"
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="is a file"):
        Run.create(tmp_path / "file", smoke())


def test_opening_what_is_no_run(tmp_path):
    with pytest.raises(UserError, match="not a run folder"):
        open_run(tmp_path)
    (tmp_path / "config.json").write_text("[1]")
    with pytest.raises(UserError, match="not the configuration of a run"):
        open_run(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(UserError, match="cannot read"):
        open_run(tmp_path)
    (tmp_path / "config.json").write_text('{"task": "skills", "leraning_rate": 1.0}')
    with pytest.raises(UserError, match="Did you mean 'learning_rate'"):
        open_run(tmp_path)
    (tmp_path / "config.json").write_text('{"task": "chess"}')
    with pytest.raises(UserError, match="a run of the task 'chess', which is not installed"):
        open_run(tmp_path)


def test_going_on_with_another_configuration_is_refused(tmp_path):
    Run.create(tmp_path / "run", smoke())
    check_folder(tmp_path / "run", smoke())
    with pytest.raises(UserError, match="already holds a run with another epsilon"):
        check_folder(tmp_path / "run", smoke(epsilon=0.5))


def test_a_run_from_before_a_setting_was_there_has_its_default(tmp_path):
    Run.create(tmp_path / "run", smoke())
    path = tmp_path / "run" / "config.json"
    settings = json.loads(path.read_text())
    default = settings.pop("epsilon")
    path.write_text(json.dumps(settings))
    check_folder(tmp_path / "run", smoke(epsilon=default))
    with pytest.raises(UserError, match="already holds a run with another epsilon"):
        check_folder(tmp_path / "run", smoke(epsilon=0.5))


def test_metrics_cut_mid_line(smoke_run, tmp_path):
    folder = shutil.copytree(smoke_run, tmp_path / "run")
    metrics = folder / "metrics.jsonl"
    whole = metrics.read_bytes()
    metrics.write_bytes(whole[:-20])
    with pytest.raises(UserError, match="cut or damaged in line 5; put it back"):
        open_run(folder).rows()
    (folder / "summary.json").unlink()
    with pytest.raises(UserError, match="was cut"):
        train(open_run(folder))
    assert metrics.read_bytes() == whole[:-20]  # nothing was overwritten


def test_rows_after_the_last_checkpoint_are_dropped_and_made_again(smoke_run, tmp_path):
    folder = shutil.copytree(smoke_run, tmp_path / "run")
    (folder / "summary.json").unlink()
    with open(folder / "metrics.jsonl", "a") as file:
        file.write('{"step": 2500, "n_sk')
    train(open_run(folder))
    assert (folder / "metrics.jsonl").read_bytes() == (smoke_run / "metrics.jsonl").read_bytes()
    resumed = json.loads((folder / "provenance.json").read_text())["resumed"]
    assert [r["step"] for r in resumed] == [2000]


def test_finding_runs(smoke_run, tmp_path):
    shutil.copytree(smoke_run, tmp_path / "a" / "one")
    shutil.copytree(smoke_run, tmp_path / "a" / "two")
    assert [run.folder.name for run in open_runs([str(tmp_path)])] == ["one", "two"]
    with pytest.raises(UserError, match="there is no run"):
        open_runs([str(smoke_run / "checkpoints")])
    with pytest.raises(UserError, match="is not a folder"):
        open_runs(["nowhere"])


def test_a_run_is_trained_by_one_process_at_a_time(tmp_path):
    run = Run.create(tmp_path / "run", smoke())
    with (
        run.exclusive(),
        pytest.raises(UserError, match="being trained by another process"),
        open_run(run.folder).exclusive(),
    ):
        pass
    train(open_run(run.folder))  # free again


@pytest.mark.parametrize("left_over", [[], [".config.json.0123456789abcdef.tmp"]])
def test_a_kill_while_a_run_is_being_made_does_not_block_the_folder(tmp_path, left_over):
    folder = tmp_path / "run"
    folder.mkdir()
    for name in left_over:
        (folder / name).write_text("{")
    assert train_in(folder, smoke())["iterations"] == 2000
    # killed after the configuration was there, before the provenance
    other = tmp_path / "other"
    Run.create(other, smoke())
    (other / "provenance.json").unlink()
    assert train_in(other, smoke())["iterations"] == 2000


def test_metrics_without_a_checkpoint_are_not_thrown_away(smoke_run, tmp_path):
    folder = shutil.copytree(smoke_run, tmp_path / "run")
    (folder / "summary.json").unlink()
    shutil.rmtree(folder / "checkpoints")
    before = (folder / "metrics.jsonl").read_bytes()
    with pytest.raises(UserError, match="has metrics but no checkpoint"):
        train(open_run(folder))
    assert (folder / "metrics.jsonl").read_bytes() == before


def test_checking_writes_nothing(tmp_path):
    check_folder(tmp_path / "new", smoke())
    assert not list(tmp_path.iterdir())


def test_a_configuration_that_does_not_fit_its_checkpoint_is_told(smoke_run, tmp_path):
    folder = shutil.copytree(smoke_run, tmp_path / "run")
    (folder / "summary.json").unlink()
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "codes": 128}))
    with pytest.raises(UserError, match="of another configuration: its codes is 24"):
        train(open_run(folder))
    with pytest.raises(UserError, match="of another configuration: its codes is 24"):
        evaluate(open_run(folder))


def test_settings_missing_from_a_configuration_have_their_defaults(tmp_path):
    (tmp_path / "config.json").write_text('{"task": "skills", "seed": 4}')
    assert open_run(tmp_path).settings["codes"] == 128


@pytest.mark.parametrize("content", ["[]", '{"task": []}', '{"task": "skills", "reward": []}'])
def test_configurations_of_the_wrong_shape(tmp_path, content):
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(UserError):
        open_run(tmp_path)


@pytest.mark.parametrize("line", [b"3\n", b"{}\n", b"\xff\n", b"{"])
def test_damaged_rows(smoke_run, tmp_path, line):
    folder = shutil.copytree(smoke_run, tmp_path / "run")
    with open(folder / "metrics.jsonl", "ab") as file:
        file.write(line)
    with pytest.raises(UserError, match="line 6"):
        open_run(folder).rows()
    assert len(open_run(folder).rows(complete=False)) == 5


@pytest.mark.parametrize(("setting", "value"), [("learning_rate", 0.3), ("seed", 1)])
def test_a_checkpoint_goes_on_only_with_the_settings_it_was_made_with(
    smoke_run, tmp_path, setting, value
):
    folder = shutil.copytree(smoke_run, tmp_path / "run")
    (folder / "summary.json").unlink()
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, setting: value}))
    before = (folder / "metrics.jsonl").read_bytes()
    with pytest.raises(UserError, match=f"its {setting.replace('_', '-')} is {config[setting]}"):
        train(open_run(folder))
    assert (folder / "metrics.jsonl").read_bytes() == before


def test_a_checkpoint_without_its_settings_is_damaged(smoke_run, tmp_path):
    folder = shutil.copytree(smoke_run, tmp_path / "run")
    (folder / "summary.json").unlink()
    path = folder / "checkpoints" / "000000002000" / "state.json"
    record = json.loads(path.read_text())
    del record["state"]["settings"]
    path.write_text(json.dumps({**record, "sha256": seal_of(record)}))
    with pytest.raises(UserError, match="does not know its settings"):
        train(open_run(folder))
