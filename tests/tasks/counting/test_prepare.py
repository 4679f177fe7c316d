"""What a run needs before it trains: read once, and checked without reading it."""

import hashlib
import subprocess
import sys
from collections import Counter

import pytest

from irrl.cli.main import main
from irrl.errors import UserError
from irrl.tasks import check, make_config
from irrl.tasks.counting import dataset
from irrl.tasks.counting.model import Model
from tests.helpers.runs import stopped_after

ONCE = {("read", "train"): 1, ("hashed", "train"): 1, ("read", "eval"): 1, ("hashed", "eval"): 1}
EVAL_ONCE = {what: 1 for what in ONCE if "eval" in what}


@pytest.fixture
def work(scenes_folder, monkeypatch):
    """How often the scenes of each split are read and hashed, in this process."""
    files = {split: scenes_folder / f"{split}.safetensors" for split in ("train", "eval")}
    contents = {path.read_bytes(): split for split, path in files.items()}
    counts = Counter()
    read_plain, sha256 = dataset.read_plain, hashlib.sha256

    def counted_read(path, most):
        counts.update(("read", split) for split, file in files.items() if file == path)
        return read_plain(path, most)

    def counted_sha256(content=b"", **options):
        if isinstance(content, bytes) and content in contents:
            counts["hashed", contents[content]] += 1
        return sha256(content, **options)

    monkeypatch.setattr(dataset, "read_plain", counted_read)
    monkeypatch.setattr(hashlib, "sha256", counted_sha256)
    return counts


def smoke(scenes_folder, **settings):
    return make_config("counting", "smoke", **{"scenes": str(scenes_folder), **settings})


# --- the data is read and hashed once in a command ---


def test_training_reads_its_scenes_once(work, scenes_folder, counting_run, tmp_path):
    flags = ["--preset", "smoke", "--scenes", scenes_folder, "--oracle", counting_run]
    assert main(["train", "counting", *map(str, flags), "--out", str(tmp_path / "run")]) == 0
    assert work == ONCE


def test_resuming_reads_its_scenes_once(work, scenes_folder, tmp_path):
    run = stopped_after(2, tmp_path / "run", "counting", scenes=str(scenes_folder))
    work.clear()
    assert main(["resume", str(run.folder)]) == 0
    assert work == ONCE


def test_evaluating_reads_the_evaluation_scenes_once(work, counting_run):
    assert main(["eval", str(counting_run)]) == 0
    assert work == EVAL_ONCE


def test_playing_several_runs_reads_their_scenes_once(work, counting_run, tmp_path):
    runs, sheet = [str(counting_run)] * 2, str(tmp_path / "walks.png")
    assert main(["play", *runs, "--episodes", "1", "-o", sheet]) == 0
    assert work == EVAL_ONCE


# --- a check is cheap ---


def test_a_check_reads_no_scene_and_builds_no_model(
    work, scenes_folder, counting_run, tmp_path, monkeypatch
):
    weights = tmp_path / "weights.pth"
    weights.touch()
    monkeypatch.setattr(Model, "__init__", None)
    check(smoke(scenes_folder, oracle=str(counting_run)))
    check(smoke(scenes_folder, encoder="resnet18", backbone_weights=str(weights)))
    assert work == {}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"scenes": "nowhere"}, "there are no scenes in nowhere; `irrl data scenes"),
        ({"train_scenes": 65}, "train-scenes asks for 65 scenes, .* has 64"),
        ({"eval_scenes": 33}, "eval-scenes asks for 33 scenes, .* has 32"),
        ({"resolution": 64}, "has no train pictures of 64 x 64"),
        ({"device": "toaster"}, "device toaster cannot be used here"),
        ({"oracle": "nowhere"}, "nowhere is not a run folder"),
        (
            {"encoder": "resnet18", "backbone_weights": "x.pth"},
            "backbone-weights: there is no file x.pth",
        ),
    ],
)
def test_a_check_tells_what_is_missing(scenes_folder, settings, words):
    with pytest.raises(UserError, match=words):
        check(smoke(scenes_folder, **settings))


def test_the_task_is_known_without_heavy_libraries():
    heavy = "torch", "matplotlib", "mujoco", "rich"
    code = (
        "import sys; import irrl.tasks.counting.task; "
        f"print(*[name for name in {heavy} if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0 and result.stdout.strip() == "", result
