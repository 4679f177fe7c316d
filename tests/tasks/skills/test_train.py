import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from irrl.errors import UserError
from irrl.runs.checkpoint import checkpoint_paths, load_checkpoint
from irrl.tasks import evaluate, make_config, open_run, train
from irrl.tasks.skills.train import BLOCK, prepare, sample_block
from tests.helpers.command import failing
from tests.helpers.runs import content, run_in, stopped_after


@pytest.mark.parametrize("reward", ["clipped-linear", "disdain"])
def test_the_same_seed_gives_the_same_bytes(tmp_path, reward):
    first = run_in(tmp_path / "a", "skills", reward=reward, seed=3)
    second = run_in(tmp_path / "b", "skills", reward=reward, seed=3)
    other = run_in(tmp_path / "c", "skills", reward=reward, seed=4)
    assert content(first.folder) == content(second.folder)
    assert content(first.folder)["metrics"] != content(other.folder)["metrics"]


def test_evaluating_and_checkpointing_do_not_change_training(tmp_path):
    often = run_in(tmp_path / "a", "skills", evaluate_every=7, checkpoint_every=130)
    seldom = run_in(tmp_path / "b", "skills", evaluate_every=2000, checkpoint_every=2000)
    last = [
        load_checkpoint(checkpoint_paths(run.folder / "checkpoints")[-1]).arrays
        for run in (often, seldom)
    ]
    for name in last[0]:
        np.testing.assert_array_equal(last[0][name], last[1][name])


@pytest.mark.parametrize("rows", [1, 3, 8])
@pytest.mark.parametrize("bonus", ["none", "visits"])
def test_stopped_and_resumed_equals_never_stopped(tmp_path, rows, bonus):
    settings = {"bonus": bonus, "evaluate_every": 170, "checkpoint_every": 450, "epsilon": 0.05}
    whole = run_in(tmp_path / "whole", "skills", **settings)
    run = stopped_after(rows, tmp_path / "parts", "skills", **settings)
    train(open_run(run.folder))
    assert content(run.folder) == content(whole.folder)


def test_a_learner_is_prepared_where_its_checkpoint_left_it(tmp_path):
    run = run_in(tmp_path / "run", "skills")
    checkpoint = load_checkpoint(checkpoint_paths(run.folder / "checkpoints")[2])
    learner = prepare(run.config, checkpoint)
    assert learner.step == checkpoint.step == 1000
    for name, table in learner.tables._asdict().items():
        np.testing.assert_array_equal(table, checkpoint.arrays[name])


def test_a_checkpoint_is_evaluated_as_it_was_logged(tmp_path):
    run = run_in(tmp_path / "run", "skills", reward="disdain")
    step, metrics = evaluate(run)
    assert {"step": step, **metrics} == run.rows()[-1]


def test_a_run_goes_on_with_its_own_settings_only(tmp_path, capsys):
    """In skills, too, a changed config.json is told of: it would go on as another run, silently."""
    run = stopped_after(3, tmp_path / "run", "skills")
    path = run.folder / "config.json"
    settings = json.loads(path.read_text())
    path.write_text(json.dumps({**settings, "learning_rate": 0.1}))
    before = content_of_unfinished(run.folder)
    for told in (refusal_of_train(run.folder), failing(capsys, "resume", run.folder)):
        assert "its learning-rate is 0.4" in told and "says 0.1" in told and "\n" not in told
    assert content_of_unfinished(run.folder) == before

    path.write_text(json.dumps(settings))
    train(open_run(run.folder))
    assert content(run.folder) == content(run_in(tmp_path / "whole", "skills").folder)


def refusal_of_train(folder):
    with pytest.raises(UserError) as refusal:
        train(open_run(folder))
    return str(refusal.value)


def content_of_unfinished(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_tables_of_another_shape_are_refused(tmp_path):
    run = run_in(tmp_path / "run", "skills")
    checkpoint = run.last_checkpoint()
    with pytest.raises(UserError, match="checkpoint does not fit"):
        prepare(dataclasses.replace(run.config, codes=8), checkpoint)


def test_the_process_that_compiles_gives_the_same_bytes(tmp_path):
    """Loaded from the cache or just compiled, the loop rounds alike, at any number of codes."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    flags = ["--iterations", "4000", "--evaluate-every", "1000", "--checkpoint-every", "2000"]
    for name in ("compiling", "loading"):
        command = [sys.executable, "-m", "irrl", "train", "skills", "--reward", "disdain", *flags]
        subprocess.run([*command, "--out", str(tmp_path / name)], check=True, env=environment)
    assert content(tmp_path / "compiling") == content(tmp_path / "loading")


def test_killed_at_random_moments_and_resumed_equals_never_stopped(tmp_path):
    """SIGKILL, as often as it takes to hit both early and late moments; then compare bytes."""
    flags = ["--iterations", "60000", "--evaluate-every", "300", "--checkpoint-every", "1500"]
    command = [sys.executable, "-m", "irrl"]
    start = [*command, "train", "skills", "--preset", "smoke", *flags, "--out"]
    subprocess.run([*start, str(tmp_path / "whole")], check=True, capture_output=True)

    folder = tmp_path / "killed"
    rng = np.random.default_rng(int.from_bytes(os.urandom(4), "big"))
    next_command = [*start, str(folder)]
    kills = 0
    while kills < 4:
        process = subprocess.Popen(next_command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        begun = folder / "checkpoints" / "last"
        before = begun.read_bytes() if begun.exists() else None
        while process.poll() is None and (not begun.exists() or begun.read_bytes() == before):
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.15))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if process.returncode == 0:
            break  # it was faster than the signal
        kills += 1
        next_command = [*command, "resume", str(folder)]
    assert kills >= 1
    subprocess.run([*command, "resume", str(folder)], check=True, capture_output=True)
    assert content(folder) == content(tmp_path / "whole")
    resumed = json.loads((folder / "provenance.json").read_text())["resumed"]
    assert len(resumed) >= 1


def test_samples_follow_their_distribution():
    config = make_config("skills", "fast", epsilon=0.01)
    labels, explore_at, explore_action = sample_block(config, 0)
    assert labels.shape == (BLOCK, 32) and labels.max() == 127
    steps = labels.size * config.horizon
    assert explore_at[-1] == steps and np.all(np.diff(explore_at) > 0)
    count = explore_at.size - 1
    assert abs(count - 0.01 * steps) < 5 * np.sqrt(0.01 * steps)
    assert np.bincount(explore_action).min() > 0.8 * count / 5
    again = sample_block(config, 0)
    np.testing.assert_array_equal(labels, again[0])
    assert not np.array_equal(labels, sample_block(config, 1)[0])


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_no_and_only_exploration(epsilon):
    _, explore_at, _ = sample_block(make_config("skills", "smoke", epsilon=epsilon), 0)
    steps = BLOCK * 32 * 8
    np.testing.assert_array_equal(explore_at, np.arange(steps + 1) if epsilon else [steps])


def test_learning_beats_chance():
    """The smoke preset learns: more skills at the end than at the start, for every seed."""
    import tempfile

    for seed in range(3):
        with tempfile.TemporaryDirectory() as folder:
            run = run_in(Path(folder) / "run", "skills", seed=seed)
            counts = [row["n_skills"] for row in run.rows()]
            assert counts[-1] > 2 * counts[0]
