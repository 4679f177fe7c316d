"""Runs of digits: stopped, killed and resumed they equal those that never were."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

from irrl.errors import UserError
from irrl.runs.checkpoint import checkpoint_paths, load_checkpoint
from irrl.tasks import open_run, train
from tests.helpers.runs import content, killed_and_resumed, run_in, stopped_after


@pytest.mark.parametrize(
    "settings",
    [
        {"schedule": "cosine", "location_std_end": 0.01},
        {"model": "dt-ram", "fresh_canvases": True, "core": "rnn"},
        {"bonus": "disagreement", "bonus_kind": "quadratic", "ensemble_size": 3},
        {
            "model": "dt-ram",
            "core": "map",
            "moves": "centred",
            "grid": 5,
            "equivariant": True,
            "inhibition": 2.0,
            "entropy_coef": 0.1,
            "schedule": "cosine",
            "centre_light": 0.4,
            "centre_fade": 0.8,
            "centre_forgets": True,
        },
    ],
)
@pytest.mark.parametrize("rows", [1, 3])
def test_stopped_and_resumed_equals_never_stopped(mnist_cache, tmp_path, settings, rows):
    settings = {**settings, "checkpoint_every": 2, "epochs": 5}
    whole = run_in(tmp_path / "whole", "digits", **settings)
    run = stopped_after(rows, tmp_path / "parts", "digits", **settings)
    train(open_run(run.folder))
    assert content(run.folder) == content(whole.folder)


def test_evaluating_does_not_change_training(mnist_cache, tmp_path):
    often = run_in(tmp_path / "a", "digits", evaluate_every=1)
    seldom = run_in(tmp_path / "b", "digits", evaluate_every=4)
    last = [
        load_checkpoint(checkpoint_paths(r.folder / "checkpoints")[-1]) for r in (often, seldom)
    ]
    for name in last[0].arrays:
        np.testing.assert_array_equal(last[0].arrays[name], last[1].arrays[name])


def test_a_run_with_an_oracle_needs_its_folder_only_to_begin(mnist_cache, tmp_path, digits_run):
    oracle = shutil.copytree(digits_run, tmp_path / "oracle")
    whole = run_in(tmp_path / "whole", "digits", oracle=str(oracle))
    run = stopped_after(3, tmp_path / "parts", "digits", oracle=str(oracle))
    shutil.rmtree(oracle)
    train(open_run(run.folder))
    assert content(run.folder) == content(whole.folder)


def test_killed_and_resumed_equals_never_stopped(mnist_cache, tmp_path):
    """SIGKILL through the command line, as often as it takes to hit the middle; compare bytes."""
    flags = ["--preset", "smoke", "--epochs", "12", "--train-images", "1024"]
    command = [sys.executable, "-m", "irrl"]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    subprocess.run([*command, "train", "digits", *flags, "--out", whole], check=True)
    killed_and_resumed(parts, "digits", flags, kills=3, checkpoints=2)
    assert content(parts) == content(whole)


def test_a_checkpoint_of_another_configuration_is_refused(mnist_cache, digits_run, tmp_path):
    folder = shutil.copytree(digits_run, tmp_path / "run")
    (folder / "summary.json").unlink()
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "width": 16}))
    with pytest.raises(UserError, match="another configuration: its width is 32"):
        train(open_run(folder))
    (folder / "config.json").write_text(json.dumps({**config, "seed": 7}))
    with pytest.raises(UserError, match=r"its seed is 0, .*config.json says 7"):
        train(open_run(folder))
