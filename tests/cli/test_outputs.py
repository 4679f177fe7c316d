"""Files that are there stay as they are without --force; every table is to be had as JSON."""

import json

import pytest

from irrl.cli.main import main
from irrl.tasks.registry import task_names
from tests.helpers.command import failing


def told(capsys, *arguments):
    """What a command prints, in this process."""
    assert main([str(a) for a in arguments]) == 0
    return capsys.readouterr().out


# --- nothing is written over ---


@pytest.mark.parametrize(
    ("verb", "output", "beside"),
    [
        (["plot", "RUN"], "x.png", ["x-cells-reached.png", "x-where-skills-end.png"]),
        (["figure", "reward-shapes"], "x.svg", []),
        (["report", "RUN"], "x.html", []),
        (["rewards"], "x.png", []),
        (["noise", "theory", "--rewards", "linear"], "x.png", []),
        (["noise", "gradient", "RUN", "--checkpoints", "1"], "x.png", ["x.json"]),
        (["data", "show"], "x.png", []),
    ],
)
def test_a_file_that_is_there_is_kept_without_force(
    smoke_run, mnist_cache, tmp_path, capsys, verb, output, beside
):
    flag = "--plot" if verb == ["rewards"] else "-o"
    command = [str(smoke_run) if word == "RUN" else word for word in verb]
    command += [flag, str(tmp_path / output)]
    for name in [output, *beside]:
        (tmp_path / name).write_text("precious")
        said = failing(capsys, *command)
        assert f"{name} is there already" in said and "--force" in said
        assert [path.read_text() for path in tmp_path.iterdir()] == ["precious"]
        (tmp_path / name).unlink()
    (tmp_path / output).write_text("precious")
    told(capsys, *command, "--force")
    assert (tmp_path / output).stat().st_size > 1000


def test_a_link_is_something_that_is_there(tmp_path, capsys):
    (tmp_path / "x.png").symlink_to(tmp_path / "nowhere")
    assert "is there already" in failing(
        capsys, "rewards", "--plot", tmp_path / "x.png", "--rewards", "linear"
    )


# --- JSON ---


def test_tables_about_rewards_as_json(capsys, tmp_path):
    found = json.loads(told(capsys, "rewards", "--classes", "4", "--json"))
    slope = found["rewards"]["power-2"]["slope_at_prior"]
    assert found["prior"] == 0.25 and slope == pytest.approx(0.5)
    assert found["rewards"]["accuracy"]["slope_at_prior"] is None and "ball" in str(found)
    out = tmp_path / "noise.png"
    found = json.loads(told(capsys, "noise", "theory", "--json", "-o", out))
    assert found["noise"] == {"family": "normal", "mean": 0.0, "std": 0.05}
    shown = {row["reward"] for row in found["rows"]}
    assert {"linear", "clipped-linear", "log", "clipped-log"} <= shown
    row = next(r for r in found["rows"] if r["reward"] == "linear" and r["q"] == 0.3)
    assert row["std"] == pytest.approx(0.05, abs=1e-6) and row["valid_from"] == 0.01
    assert out.exists() and found["figure"] == str(out)


def test_presets_as_json(capsys):
    found = json.loads(told(capsys, "presets", "--json"))
    assert set(found) == set(task_names())
    assert found["skills"]["smoke"]["settings"]["map"] == "small"


def test_runs_comparisons_and_sweeps_as_json(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = ("skills", "--preset", "smoke", "--iterations", "1000")
    found = json.loads(told(capsys, "train", *small, "--out", "run", "--json"))
    assert found["run"] == "run" and found["n_skills"] > 0
    assert json.loads(told(capsys, "resume", "run", "--json")) == found

    one = ("--rewards", "linear", "--seeds", "1", "--workers", "1", "--out", "all")
    found = json.loads(told(capsys, "compare", *small, *one, "--json"))
    assert found["rewards"]["linear"]["seeds"] == [0]
    assert found["rewards"]["linear"]["steps_to"] is None  # 80 skills cannot be had of 24
    assert "all/comparison-where-skills-end.png" in found["figures"]
    text = told(capsys, "compare", *small, *one)  # anew, as always
    assert "steps to" not in text and "Steps to" not in text

    grid = ("sweep", *small, "--reward", "linear", "--seed", "0", "--out", "all", "--json")
    assert json.loads(told(capsys, *grid, "--dry-run")) == [
        {"run": "all/linear/seed-0", "finished": True, "done": 1000, "of": 1000}
    ]
    found = json.loads(told(capsys, *grid))
    assert found["groups"][0]["runs"] == "linear" and found["groups"][0]["n_skills"]["value"] > 0


def test_pictures_have_no_json(capsys):
    assert "--list" in failing(capsys, "figure", "reward-shapes", "--json")
    assert "one at a time" in failing(capsys, "rewards", "--plot", "x.png", "--json")


# --- help ---


@pytest.mark.parametrize("verb", ["train", "compare", "sweep"])
def test_help_lists_the_tasks_and_says_where_their_flags_are(verb, capsys):
    with pytest.raises(SystemExit) as end:
        main([verb, "--help"])
    shown = capsys.readouterr().out
    assert end.value.code == 0 and f"`irrl {verb} TASK --help` for the flags of each" in shown
    for name in task_names():
        assert f"\n  {name} " in shown


def test_steps_to_a_threshold_only_where_it_can_be_reached():
    import numpy as np

    from irrl.analysis.compare import steps_to_threshold
    from irrl.tasks import find_task

    primary = find_task("skills").primary
    curves = np.array([0.0, 10.0]), np.array([[0.0, 90.0]])
    assert steps_to_threshold(curves, primary, (0.0, 97.6)).reached == 1
    assert steps_to_threshold(curves, primary, (0.0, 21.4)) is None
