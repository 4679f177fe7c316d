"""Runs of the command line and of the library: stopped, killed, resumed, looked at."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from unittest.mock import Mock

import pytest

from irrl.tasks import make_config, open_run, train
from irrl.tasks.gym.evaluate import play_episodes
from irrl.tasks.gym.learner import prepare
from tests.helpers.command import REPOSITORY, irrl_command
from tests.helpers.runs import StopError, content, run_in, stopped_after
from tests.tasks.gym import own
from tests.tasks.gym.small import SMALL

OFF_POLICY = {"agent": "sac", "rollout": 4, "gradient_steps": 2, "steps": 1_600}
MAZE = {"env": "irrl/Maze-v0", "env_options": '{"horizon": 20}', "rollout": 20, "batch_size": 80}
DOORS = {"env": f"{own.__name__}:Doors-v0", "mode": "labels", "labels": 2}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        OFF_POLICY,
        {"agent": "recurrent-ppo", "steps": 1_600},
        {**DOORS, "pay": "differences"},
        {**MAZE, "bonus": "visits", "bonus_weight": 0.5, "pay": "differences"},
        SMALL["regression"],
        {"observe": "standardised", "action_gain": 1.0, "steps": 1_600},
    ],
    ids=["ppo", "sac", "recurrent-ppo", "labels", "maze", "regression", "standardised"],
)
@pytest.mark.parametrize("rows", [1, 2, 4])
def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path, settings, rows):
    whole = run_in(tmp_path / "whole", "gym", **settings)
    stopped_after(rows, tmp_path / "stopped", "gym", **settings)
    train(open_run(tmp_path / "stopped"))
    assert content(tmp_path / "stopped") == content(whole.folder)


def test_same_seed_same_weights_with_evaluation_on_or_off(tmp_path):
    often = run_in(tmp_path / "often", "gym", evaluate_every=200, evaluate_episodes=16)
    never = run_in(tmp_path / "never", "gym", evaluate_every=10**6)
    ours, theirs = content(often.folder), content(never.folder)
    names = [name for name in ours if name.isdigit()]
    assert len(names) == 2 and all(ours[name] == theirs[name] for name in names)


def test_another_seed_gives_other_numbers(tmp_path):
    first, second = (run_in(tmp_path / str(n), "gym", seed=n, steps=800) for n in (0, 1))
    assert content(first.folder)["metrics"] != content(second.folder)["metrics"]


@pytest.mark.parametrize("settings", [{}, OFF_POLICY], ids=["ppo", "sac"])
def test_killed_at_random_moments_and_resumed_it_is_equal(tmp_path, settings):
    whole = run_in(tmp_path / "whole", "gym", **settings)
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
    command = [sys.executable, "-m", "irrl"]
    folder, chance = tmp_path / "killed", random.Random(0)
    process = subprocess.Popen(
        [*command, "train", "gym", "--preset", "smoke", *flags, "--out", folder]
    )
    for _ in range(2):
        rows = chance.randint(2, 7)
        metrics = folder / "metrics.jsonl"
        while process.poll() is None:
            if metrics.exists() and len(metrics.read_bytes().splitlines()) >= rows:
                break
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process = subprocess.Popen([*command, "resume", folder])
    assert process.wait() == 0
    assert content(folder) == content(whole.folder)


def test_stopped_between_its_last_checkpoint_and_the_removal_of_an_old_one_it_is_equal(
    tmp_path, monkeypatch
):
    whole = content(run_in(tmp_path / "whole", "gym", **SMALL["ppo"]).folder)
    assert "000000001600" in whole and "000000000800" not in whole

    def stop(path):
        if path.name == "000000000800":
            raise StopError

    with monkeypatch.context() as patched, pytest.raises(StopError):
        patched.setattr("irrl.tasks.gym.train.remove_checkpoint", stop)
        run_in(tmp_path / "stopped", "gym", **SMALL["ppo"])
    train(open_run(tmp_path / "stopped"))
    assert content(tmp_path / "stopped") == whole


def test_a_run_that_was_sent_back_keeps_the_checkpoint_it_goes_on_from(tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr("irrl.tasks.gym.train.remove_checkpoint", lambda path: None)
        run = run_in(tmp_path / "run", "gym", **SMALL["ppo"])
    (run.folder / "summary.json").unlink()
    checkpoints = run.folder / "checkpoints"
    (checkpoints / "last").write_text("000000000400\n")
    with monkeypatch.context() as patched, pytest.raises(StopError):
        patched.setattr("irrl.tasks.gym.train.learn_once", Mock(side_effect=StopError))
        train(open_run(run.folder))
    assert (checkpoints / "000000000400").is_dir()


def test_an_oracle_pays_and_is_kept_in_the_checkpoint(tmp_path):
    oracle = run_in(tmp_path / "oracle", "gym", steps=800)
    run = run_in(tmp_path / "run", "gym", oracle=str(oracle.folder), steps=800)
    state = run.last_checkpoint()
    assert any(name.startswith("reward_model.oracle.") for name in state.arrays)
    (oracle.folder / "config.json").unlink()
    stopped_config = make_config("gym", "smoke", oracle=str(oracle.folder), steps=800)
    assert stopped_config == run.config


def test_episodes_are_played_with_every_step_of_their_paths(tmp_path):
    run = run_in(tmp_path / "run", "gym", steps=400, checkpoint_every=400)
    learner = prepare(run.config, run.last_checkpoint())
    played = play_episodes(run.config, learner.described, learner.agent, learner.model, 8)
    assert [episode.label for episode in played] == [0, 1, 2, 3] * 2
    for episode in played:
        path, ends = episode.path["observation"], episode.observations["observation"]
        assert path.shape == (26, 5) and len(ends) == 2  # only the last is judged
        assert (path[[0, -1]] == ends).all()
        assert path[:, 4].tolist() == pytest.approx([t / 25 for t in range(26)])


def test_doors_are_learned(tmp_path):
    """Looking behind the right door is rewarded by nobody but the reward model."""
    run = run_in(
        tmp_path / "run", "gym", **DOORS, steps=6_000, evaluate_every=6_000, checkpoint_every=6_000,
        learning_rate=0.01, widths="32", evaluate_episodes=64,
    )  # fmt: skip
    assert run.summary()["accuracy_percent"] > 90.0


def own_command(tmp_path, *arguments):
    """The command line with these environments to be imported."""
    path = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
    return irrl_command(*arguments, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path})


@pytest.mark.parametrize(
    ("env", "flags", "said"),
    [
        ("Silent", ["--labels", "2"], "environment 0 told no label"),
        ("TooLarge", ["--labels", "2"], "out of range"),
        ("Half", ["--labels", "2"], "label must be a whole number"),
        ("NotANumber", ["--labels", "2"], "NaN"),
        ("Endless", ["--labels", "2"], "no end after"),
        ("Strange", ["--labels", "2"], "no agent can"),
        ("Broken", ["--labels", "2"], "RuntimeError: no such robot"),
        ("Doors", [], "give --labels"),
        ("Doors", ["--labels", "2", "--agent", "sac", "--judge", "final"], "take ppo or a2c or"),
        ("Doors", ["--labels", "2", "--sees", "5:9"], "leaves nothing"),
        ("Nothing", ["--labels", "2"], "cannot be made"),
    ],
)
def test_environments_that_cannot_be_trained_in_are_told_in_one_line(tmp_path, env, flags, said):
    done = own_command(
        tmp_path, "train", "gym", "--preset", "smoke", "--mode", "labels", "--env",
        f"{own.__name__}:{env}-v0", "--out", "run", *flags,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert said in done.stderr and done.stderr.count("irrl: error:") == 1
    assert "Traceback" not in done.stderr


def test_a_module_that_cannot_be_imported_is_named(tmp_path):
    done = own_command(tmp_path, "train", "gym", "--env", "no_such_module:Env-v0", "--out", "run")
    assert done.returncode == 2 and "no_such_module" in done.stderr
    assert not (tmp_path / "run").exists()


def test_compare_report_and_play_know_it(tmp_path):
    flags = ["--preset", "smoke", "--steps", "800", "--checkpoint-every", "800"]
    done = own_command(
        tmp_path, "compare", "gym", "--rewards", "clipped-linear,clipped-log", "--seeds", "1",
        "--workers", "1", "--out", "both", *flags,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "both" / "comparison.png").stat().st_size > 10_000
    runs = [f"both/{reward}/seed-0" for reward in ("clipped-linear", "clipped-log")]
    played = own_command(tmp_path, "play", *runs, "--episodes", "2", "--seed", "0")
    assert played.returncode == 0, played.stderr
    assert (tmp_path / "play.png").exists() and (tmp_path / "play.gif").exists()
    made = own_command(tmp_path, "report", "both", "-o", "report.html")
    assert made.returncode == 0, made.stderr
    assert "Skills in an environment" in (tmp_path / "report.html").read_text()


def test_a_run_of_labels_is_measured_by_accuracy_and_played_by_its_pictures(tmp_path):
    run_in(tmp_path / "run", "gym", **DOORS, steps=800, checkpoint_every=800)
    shown = own_command(tmp_path, "eval", "run", "--json", "--evaluate-episodes", "32")
    assert shown.returncode == 0, shown.stderr
    assert 0.0 <= json.loads(shown.stdout)["accuracy_percent"] <= 100.0
    plotted = own_command(tmp_path, "plot", "run", "-o", "plot.png")
    assert plotted.returncode == 0, plotted.stderr
