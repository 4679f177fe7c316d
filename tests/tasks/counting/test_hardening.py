"""Damaged scenes, pictures and weights are told before anything is trained on them."""

import hashlib
import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.numpy import load, save

from irrl.errors import UserError
from irrl.tasks import check, make_config
from irrl.tasks.counting.data import load_split
from irrl.tasks.counting.dataset import load_scenes, read_record
from irrl.tasks.counting.resnet import ResNet18, load_weights, read_weights
from tests.tasks.counting.samples import torchvision_weights


@pytest.fixture
def copy(scenes_folder, tmp_path):
    return shutil.copytree(scenes_folder, tmp_path / "copy")


def resealed(folder, **arrays):
    """Scenes with other arrays, and the right SHA-256; None takes an array out."""
    path = folder / "eval.safetensors"
    found = {**load(path.read_bytes()), **arrays}
    content = save({name: array for name, array in found.items() if array is not None})
    path.write_bytes(content)
    record = json.loads((folder / "scenes.json").read_text())
    record["sha256"]["eval"] = hashlib.sha256(content).hexdigest()
    (folder / "scenes.json").write_text(json.dumps(record))


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"extra": np.zeros(3)}, "'extra' is .* expected none of that name"),
        ({"goals": None}, "'goals' is missing"),
        ({"goals": np.zeros(32, np.int16)}, "'goals' is"),
        ({"goals": np.zeros(31, np.int8)}, "'goals' is"),
        ({"goals": np.full(32, 4, np.int8)}, "goals has numbers that cannot be"),
        ({"kinds": np.full((32, 7), 99, np.int8)}, "kinds has numbers that cannot be"),
        ({"places": np.full((32, 7, 2), np.nan, np.float32)}, "places has numbers"),
    ],
)
def test_scenes_that_cannot_be(copy, arrays, words):
    resealed(copy, **arrays)
    with pytest.raises(UserError, match=words):
        load_scenes(copy, "eval")


@pytest.mark.parametrize("train", ["64", 64.5, -1, 10**12, None, True])
def test_records_that_cannot_be(copy, train):
    record = json.loads((copy / "scenes.json").read_text())
    (copy / "scenes.json").write_text(json.dumps({**record, "train": train}))
    with pytest.raises(UserError, match="not the record of a folder of scenes"):
        read_record(copy)


def test_half_zeroed_pictures_are_not_trained_on(copy):
    config = make_config("counting", "smoke", scenes=str(copy))
    (path,) = copy.glob("images-*/train.bin")
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2] + bytes(len(content) - len(content) // 2))
    check(config)  # cheap: it reads no picture
    with pytest.raises(UserError, match=r"train.bin is damaged: chunk 0"):
        load_split(config, "train")


def test_damaged_weights_are_told_in_one_line(tmp_path):
    """Bytes of a .pt altered one by one: whatever the unpickler meets, it is one line."""
    path = tmp_path / "small.pt"
    torch.save({"a": torch.zeros(3)}, path)
    content = path.read_bytes()
    told = 0
    for place in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        try:
            read_weights(path)
        except UserError as error:
            told += 1
            assert "\n" not in str(error) and str(path) in str(error)
    assert told > 10


def test_weights_must_be_finite(tmp_path):
    tensors = torchvision_weights()
    tensors["bn1.weight"][0] = float("nan")
    torch.save(tensors, tmp_path / "nan.pth")
    with pytest.raises(UserError, match=r"bn1.weight must be a dense tensor of finite numbers"):
        load_weights(ResNet18(), str(tmp_path / "nan.pth"))
