"""Scenes through the command line, really rendered."""

import os
import signal
import subprocess
import sys

import pytest
from PIL import Image

from irrl.tasks.counting.dataset import load_scenes
from irrl.tasks.counting.images import open_images
from tests.helpers.command import failed


def test_scenes_with_pictures(irrl, tmp_path):
    command = ["data", "scenes", "--train", "6", "--eval", "3", "--out", "d", "--resolution", "64"]
    result = irrl(*command)
    assert result.returncode == 0, result.stderr
    assert "of disk needed" in result.stdout and result.stdout.splitlines()[-1] == "d"
    for name in ("train scenes", "eval scenes", "train pictures", "eval pictures"):
        assert f"{name}: 100 %" in result.stderr
    assert len(load_scenes(tmp_path / "d", "train")) == 6
    assert open_images(tmp_path / "d", "eval", 64, verify=True).shape == (3, 12, 64, 64, 3)

    again = irrl(*command)
    assert again.returncode == 0 and again.stderr == ""
    assert failed(irrl(*command, "--seed", "1"), "already holds scenes with seed 0, not 1")


def obey_interruptions():
    """Shells have what they start in the background ignore them, and that is inherited."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_stopped_by_the_user(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "irrl", "data", "scenes", "--out", "d", "--workers", "2"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=obey_interruptions,
    )
    assert "of disk needed" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    (line,) = error.strip().splitlines()
    assert line.startswith("irrl: stopped; go on with `irrl data scenes --train 100000 --eval 1000")


def test_a_scene_is_plotted(irrl, tmp_path):
    result = irrl("data", "show-scenes", "--seed", "4", "-o", "scene.png")
    assert result.returncode == 0, result.stderr
    with Image.open(tmp_path / "scene.png") as picture:
        assert min(picture.size) > 800
    assert irrl("data", "show-scenes", "--seed", "4", "-o", "scene.svg").returncode == 0
    text = (tmp_path / "scene.svg").read_text()
    assert "<!-- hidden -->" in text and "<!-- view 11" in text


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["scenes"], ["required: --out", "irrl data scenes --help"]),
        (["scenes", "--out", "d", "--train", "0"], ["train must be at least 1"]),
        (["scenes", "--out", "d", "--resolution", "100"], ["resolution must divide 256"]),
        (
            ["scenes", "--out", "d", "--resolution", "256", "--train", "1000000000"],
            ["needs 2,360 TB", "free; choose another --out, a smaller --resolution"],
        ),
        (["show-scenes", "-o", "scene.txt"], ["must end in .png"]),
        (["show-scenes", "--seed", "-1"], ["seed must be at least 0"]),
        (["pictures"], ["invalid choice: 'pictures'"]),
    ],
)
def test_impossible_settings(irrl, tmp_path, flags, words):
    assert failed(irrl("data", *flags), *words)
    assert not (tmp_path / "d").exists()


def test_no_opengl(irrl, tmp_path):
    broken = {**os.environ, "MUJOCO_GL": "nonsense"}
    for command in (["scenes", "--out", "d"], ["show-scenes"]):
        result = irrl("data", *command, env=broken)
        assert failed(result, "cannot render without a window", "libegl1", "libosmesa6")
    assert list(tmp_path.iterdir()) == []
