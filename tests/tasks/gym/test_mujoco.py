"""The preset of MuJoCo's HalfCheetah: a moment of it, and the whole."""

import json

import numpy as np
import pytest

from irrl.tasks import begin, make_config, train
from irrl.tasks.gym.play import play, walks_of

MOMENT = {
    "steps": 800, "envs": 8, "batch_size": 100, "n_epochs": 1, "evaluate_every": 400,
    "evaluate_episodes": 8, "checkpoint_every": 800,
}  # fmt: skip


def trained(folder, **settings):
    run, prepared = begin(folder, make_config("gym", "half-cheetah", **settings))
    train(run, prepared)
    return run


def test_a_moment_of_the_preset_is_trained_measured_and_drawn(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where MuJoCo writes down its warnings
    run = trained(tmp_path / "run", **MOMENT)
    found = run.summary()
    assert 0 < found["n_skills"] <= 8 and found["episode_steps"] == 25
    assert (
        found["final_distance"] > 0 and found["buckets_reached"] >= 2
    )  # the start lies at an edge
    walks = walks_of(run, 1, seed=0)
    assert [walk.label for walk in walks] == list(range(8))
    assert all(walk.over_time and walk.places.shape == (26, 2) for walk in walks)
    np.testing.assert_array_equal(walks[0].places[:, 0], np.arange(26))
    figure = play([run], 1, seed=0).sheet
    assert figure.axes[0].get_xlabel() == "actions"


@pytest.mark.slow
def test_half_cheetah_learns_skills(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = trained(tmp_path / "run", seed=0)
    first = json.loads((run.folder / "metrics.jsonl").read_text().splitlines()[0])
    assert first["n_skills"] < 1.1
    assert run.summary()["n_skills"] > 3.0
    assert run.summary()["final_distance"] > 1.5
