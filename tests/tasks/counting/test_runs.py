"""Runs of counting: stopped, killed and resumed they equal those that never were."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch

from irrl.errors import UserError
from irrl.runs.checkpoint import checkpoint_paths, load_checkpoint
from irrl.tasks import open_run, train
from tests.helpers.runs import content, killed_and_resumed, run_in, stopped_after
from tests.tasks.counting.samples import torchvision_weights


@pytest.mark.parametrize(
    ("rows", "settings"),
    [
        (1, {"schedule": "cosine"}),
        (3, {"schedule": "cosine"}),
        (2, {"bonus": "disagreement", "bonus_weight": 5.0, "head_width": 8}),
        (
            2,
            {
                "behaviour_policy": "random",
                "core": "rnn",
                "batch_episodes": 50,
                "minibatch_episodes": 20,
            },
        ),
    ],
)
def test_stopped_and_resumed_equals_never_stopped(scenes_folder, tmp_path, rows, settings):
    settings = {**settings, "scenes": str(scenes_folder), "checkpoint_every": 128, "episodes": 300}
    whole = run_in(tmp_path / "whole", "counting", **settings)
    run = stopped_after(rows, tmp_path / "parts", "counting", **settings)
    train(open_run(run.folder))
    assert content(run.folder) == content(whole.folder)
    assert whole.rows()[-1]["step"] == 300


def test_killed_and_resumed_equals_never_stopped(scenes_folder, tmp_path):
    """SIGKILL through the command line, as often as it takes to hit the middle; compare bytes."""
    flags = ["--preset", "smoke", "--episodes", "1280", "--scenes", str(scenes_folder)]
    command = [sys.executable, "-m", "irrl"]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    subprocess.run([*command, "train", "counting", *flags, "--out", whole], check=True)
    killed_and_resumed(parts, "counting", flags, kills=2, checkpoints=4)
    assert content(parts) == content(whole)


def test_evaluating_does_not_change_training(scenes_folder, tmp_path):
    last = []
    for every in (64, 256):
        run = run_in(tmp_path / str(every), "counting", scenes=str(scenes_folder),
                     evaluate_every=every, checkpoint_every=256)  # fmt: skip
        last.append(load_checkpoint(checkpoint_paths(run.folder / "checkpoints")[-1]))
    for name in last[0].arrays:
        np.testing.assert_array_equal(last[0].arrays[name], last[1].arrays[name])


def test_a_run_needs_its_oracle_only_to_begin(scenes_folder, counting_run, tmp_path):
    oracle = shutil.copytree(counting_run, tmp_path / "oracle")
    settings = {"scenes": str(scenes_folder), "oracle": str(oracle)}
    whole = run_in(tmp_path / "whole", "counting", **settings)
    run = stopped_after(3, tmp_path / "parts", "counting", **settings)
    shutil.rmtree(oracle)
    train(open_run(run.folder))
    assert content(run.folder) == content(whole.folder)


def test_the_papers_encoder_trains_and_needs_its_weights_only_to_begin(scenes_folder, tmp_path):
    weights = tmp_path / "resnet18.pth"
    torch.save(torchvision_weights(), weights)
    settings = {
        "scenes": str(scenes_folder), "encoder": "resnet18", "backbone_weights": str(weights),
        "dropout": 0.18, "episodes": 64, "batch_episodes": 32, "evaluate_every": 32,
        "checkpoint_every": 32, "n_epochs": 1, "eval_scenes": 8,
    }  # fmt: skip
    whole = run_in(tmp_path / "whole", "counting", **settings)
    run = stopped_after(3, tmp_path / "parts", "counting", **settings)
    weights.unlink()
    train(open_run(run.folder))
    assert content(run.folder) == content(whole.folder)
    first, *_, last = (
        load_checkpoint(path).arrays for path in checkpoint_paths(whole.folder / "checkpoints")
    )
    name = "model.encoder.backbone.layer2.1.conv2.weight"
    assert (first[name] == torchvision_weights()[name.split("backbone.")[1]].numpy()).all()
    assert (first[name] == last[name]).all()
    assert (first["model.encoder.conv1.weight"] != last["model.encoder.conv1.weight"]).any()


def test_scenes_may_move_but_not_change(scenes_folder, tmp_path):
    there = shutil.copytree(scenes_folder, tmp_path / "there")
    run = stopped_after(2, tmp_path / "run", "counting", scenes=str(there))
    there.rename(tmp_path / "here")
    with pytest.raises(UserError, match="there are no scenes in"):
        train(open_run(run.folder))
    config = json.loads((run.folder / "config.json").read_text())
    moved = {**config, "scenes": str(tmp_path / "here")}
    (run.folder / "config.json").write_text(json.dumps(moved))
    train(open_run(run.folder))
    (run.folder / "summary.json").unlink()
    (run.folder / "config.json").write_text(json.dumps({**moved, "width": 16}))
    with pytest.raises(UserError, match="another configuration: its width is 32"):
        train(open_run(run.folder))
