"""`irrl noise gradient`, as a user has it."""

import json
import shutil

import pytest

from irrl.cli.gradient import REWARDS
from irrl.cli.main import main
from irrl.tasks import create_run, make_config
from tests.fuzz.mutations import reseal
from tests.helpers.command import failing
from tests.helpers.runs import run_in

NAMES = REWARDS.split(",")


def gradient(*arguments):
    return main(["noise", "gradient", *map(str, arguments)])


def test_gradients_of_digits(capsys, digits_run, tmp_path):
    out = tmp_path / "g.png"
    code = gradient(digits_run, "--oracle", digits_run, "--episodes", 300, "--checkpoints", 2, "-o",
                    out)  # fmt: skip
    shown = capsys.readouterr()
    assert code == 0 and "clipped-root-2" in shown.out and "Eq. 6 std" in shown.out
    assert "100 %" in shown.err
    assert out.stat().st_size > 20_000
    record = json.loads(out.with_suffix(".json").read_text())
    assert record["command"].split()[0] == "irrl" and record["oracle"]["run"] == str(digits_run)
    found = record["runs"][str(digits_run)]
    assert found["batch_size"] == 64 and found["batches"] == 4
    rows = found["rewards"]
    assert [(r["step"], r["reward"]) for r in rows] == [
        (step, name) for step in (0, 4) for name in ("clipped-linear", *NAMES)
    ]
    assert [r["as_trained"] for r in rows[:3]] == [True, False, False]
    for row in rows:
        if row["step"] == 4 and not row["as_trained"]:  # its own oracle by then
            assert row["noise_kept"]["value"] == pytest.approx(1.0, abs=1e-4)
            assert row["noise_added"]["value"] == pytest.approx(0.0, abs=1e-4)
            assert row["bias"] in (None, pytest.approx(0.0, abs=1e-6))


def test_the_same_again_and_as_json(capsys, digits_run, tmp_path):
    flags = ("--oracle", digits_run, "--episodes", 256, "--checkpoints", 1, "--rewards", "log")
    records = []
    for name in ("a.svg", "b.svg"):
        assert gradient(digits_run, *flags, "--json", "-o", tmp_path / name) == 0
        records.append(json.loads(capsys.readouterr().out)["runs"])
    assert records[0] == records[1]
    assert [r["reward"] for r in records[0][str(digits_run)]["rewards"]] == ["log"]


def test_gradients_of_a_policy_that_stops(capsys, mnist_cache, digits_run, tmp_path):
    run = run_in(tmp_path / "stops", "digits", model="dt-ram", epochs=1, reward="accuracy")
    code = gradient(run.folder, "--oracle", digits_run, "--episodes", 256, "--checkpoints", 1,
                    "-o", tmp_path / "g.png", "--json")  # fmt: skip
    assert code == 0
    rows = json.loads(capsys.readouterr().out)["runs"][str(run.folder)]["rewards"]
    assert rows[0]["as_trained"] and rows[0]["reward"] == "accuracy"
    assert rows[0]["eq5_bias"] is None


def test_gradients_of_skills_are_exact(capsys, smoke_run, tmp_path):
    out = tmp_path / "g.png"
    assert gradient(smoke_run, "--checkpoints", 3, "--json", "-o", out) == 0
    record = json.loads(capsys.readouterr().out)
    assert record == json.loads(out.with_suffix(".json").read_text())
    found = record["runs"][str(smoke_run)]
    assert found["batches"] is None and "oracle" not in record
    assert sorted({r["step"] for r in found["rewards"]}) == [0, 1000, 2000]
    for row in found["rewards"]:
        assert row["snr"]["low"] is None and row["snr"]["value"] > 0
        assert -1 <= row["direction_information"]["value"] <= 1


# --- bad input: one clear line, exit code 2, nothing lost ---


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A folder with a figure and a table that must stay as they are."""
    monkeypatch.chdir(tmp_path)
    for name in ("gradient.png", "gradient.json"):
        (tmp_path / name).write_text("precious")
    yield tmp_path
    for name in ("gradient.png", "gradient.json"):
        assert (tmp_path / name).read_text() == "precious"


def refused(capsys, *arguments):
    """With leave to write over what is there: even so nothing of it is."""
    return failing(capsys, "noise", "gradient", *arguments, "--force")


def test_flags_that_do_not_fit(capsys, kept, digits_run, smoke_run):
    oracle = ("--oracle", digits_run)
    assert "needs a run" in refused(capsys)
    assert "give --oracle RUN" in refused(capsys, digits_run)
    assert "at least 4 batches of 64" in refused(capsys, digits_run, *oracle, "--episodes", 100)
    assert "episodes must be at least 10" in refused(capsys, smoke_run, "--episodes", -1)
    assert "checkpoints must be at least 1" in refused(capsys, smoke_run, "--checkpoints", 0)
    assert "disdain needs an ensemble" in refused(capsys, smoke_run, "--rewards", "disdain")
    assert "Did you mean 'log'" in refused(capsys, smoke_run, "--rewards", "lg")
    assert "must end in" in refused(capsys, smoke_run, "-o", "gradient.gif")
    assert "need no oracle" in refused(capsys, smoke_run, "--oracle", smoke_run)
    assert "leave out --episodes" in refused(capsys, smoke_run, "--episodes", 500)
    assert "different tasks" in refused(capsys, smoke_run, digits_run, *oracle)
    said = failing(capsys, "noise", "gradient", smoke_run)
    assert "gradient.png and gradient.json are there already" in said


def test_an_oracle_that_cannot_judge(capsys, kept, mnist_cache, digits_run, smoke_run):
    by = [digits_run, "--oracle"]
    assert "is a run of skills, not of digits" in refused(capsys, *by, smoke_run)
    assert "nowhere is not a run folder" in refused(capsys, *by, "nowhere")
    half = shutil.copytree(digits_run, kept / "half")
    (half / "summary.json").unlink()
    assert "is not finished" in refused(capsys, *by, half)
    for setting, value in {"placement": "uniform", "clutter": 2, "canvas_size": 64}.items():
        settings = json.loads((digits_run / "config.json").read_text())
        other = shutil.copytree(digits_run, kept / setting)
        (other / "config.json").write_text(json.dumps({**settings, setting: value}))
        reseal(other)
        name = setting.replace("_", "-")
        assert f"cannot judge this run: its {name} is {value}" in refused(capsys, *by, other)


def test_runs_that_cannot_be_measured(capsys, kept, smoke_run, digits_run):
    for task in ("gym", "counting"):
        run = create_run(kept / task, make_config(task, "smoke"))
        said = refused(capsys, run.folder)
        assert f"gradients cannot be measured on runs of {task}" in said
    empty = create_run(kept / "empty", make_config("skills", "smoke"))
    assert "has no checkpoint to measure" in refused(capsys, empty.folder)
    still = create_run(kept / "still", make_config("skills", "smoke", epsilon=0.0))
    assert "no random actions (epsilon 0)" in refused(capsys, still.folder)
    damaged = shutil.copytree(smoke_run, kept / "damaged")
    path = damaged / "checkpoints" / "000000002000" / "arrays.safetensors"
    path.write_bytes(path.read_bytes()[:-7] + b"damaged")
    assert "damaged checkpoint" in refused(capsys, damaged)
    other = shutil.copytree(digits_run, kept / "other")
    path = other / "checkpoints" / "000000000004" / "arrays.safetensors"
    path.write_bytes(b"")
    assert "damaged checkpoint" in refused(capsys, other, "--oracle", digits_run)


@pytest.mark.parametrize("verb", ["measure", "gradient"])
def test_noise_of_a_run_whose_settings_were_edited(capsys, digits_run, tmp_path, verb):
    run = shutil.copytree(digits_run, tmp_path / "run")
    path = run / "config.json"
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 1'))
    said = failing(capsys, "noise", verb, run, "--oracle", digits_run, "-o", tmp_path / "noise.png")
    assert "another configuration" in said and not (tmp_path / "noise.png").exists()
