import json
import shutil
from collections import namedtuple

import numpy as np
import pytest

from irrl.errors import UserError
from irrl.runs.files import exclusive
from irrl.tasks.counting import disk, generate
from irrl.tasks.counting.dataset import Plan, load_scenes
from irrl.tasks.counting.disk import check_disk, in_words
from irrl.tasks.counting.generate import make_scenes
from irrl.tasks.counting.scene import NONE, VIEWS
from tests.helpers.runs import StopError

PLAN = Plan(seed=3, train=14, eval=6)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(generate, "CHUNK", 5)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder of scenes. Do not change it: copy it first."""
    folder = tmp_path_factory.mktemp("scenes") / "made"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generate, "CHUNK", 5)
        make_scenes(folder, PLAN)
    return folder


@pytest.fixture
def copy(made, tmp_path):
    return shutil.copytree(made, tmp_path / "copy")


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def altered(content):
    return content[:-1] + bytes([content[-1] ^ 1])


def stopped_after(parts, folder, **options):
    """Make scenes until so many parts are done."""
    told = []

    def stop(*step):
        told.append(step)
        if len(told) == parts:
            raise StopError

    with pytest.raises(StopError):
        make_scenes(folder, PLAN, on_progress=stop, **options)


def test_a_folder_explains_itself(made):
    assert sorted(content(made)) == ["eval.safetensors", "scenes.json", "train.safetensors"]
    record = json.loads((made / "scenes.json").read_text())
    assert {key: record[key] for key in ("version", "seed", "train", "eval")} == {
        "version": 1, "seed": 3, "train": 14, "eval": 6,
    }  # fmt: skip
    assert set(record["sha256"]) == {"train", "eval"}


def test_what_is_stored_is_what_is_rendered(made, renderer):
    for split, count in (("train", 14), ("eval", 6)):
        scenes = load_scenes(made, split)
        assert len(scenes) == count and scenes.counts.shape == (count,)
        assert scenes.visible.shape == (count, VIEWS, 7) and scenes.visible.dtype == np.uint16
        for number in range(count):
            scene = scenes.scene(number)
            assert scene.label == scenes.counts[number]
            renderer.place(scene)
            measured = [renderer.visible_pixels(view) for view in range(VIEWS)]
            np.testing.assert_array_equal(scenes.visible[number], measured)
            if scene.hidden != NONE:
                assert not scenes.seen[number, 0, scene.hidden]
    assert not np.array_equal(load_scenes(made, "train").angles[:6], scenes.angles)


def test_the_number_of_workers_does_not_matter(made, tmp_path):
    told = []
    make_scenes(tmp_path / "two", PLAN, 2, lambda *step: told.append(step))
    assert content(tmp_path / "two") == content(made)
    assert told[-1] == ("eval scenes", 6, 6) and told[2] == ("train scenes", 14, 14)


def test_another_seed_gives_other_scenes(made, tmp_path):
    make_scenes(tmp_path / "other", Plan(seed=4, train=2, eval=1))
    other = load_scenes(tmp_path / "other", "train")
    assert not np.array_equal(other.angles, load_scenes(made, "train").angles[:2])


@pytest.mark.parametrize("parts", [1, 4])
def test_interrupted_and_gone_on_with(made, tmp_path, monkeypatch, parts):
    stopped_after(parts, tmp_path / "made")
    assert len(list((tmp_path / "made" / "parts").iterdir())) == parts
    with pytest.raises(UserError, match=r"eval scenes .* not finished; go on with `irrl dat"):
        load_scenes(tmp_path / "made", "eval")
    made_now = []
    make_chunk = generate.make_chunk
    monkeypatch.setattr(generate, "make_chunk", lambda c: (made_now.append(c), make_chunk(c)))
    make_scenes(tmp_path / "made", PLAN)
    assert len(made_now) == 5 - parts
    assert content(tmp_path / "made") == content(made)


def test_making_again_changes_nothing_and_mends_what_is_damaged(made, copy, monkeypatch):
    path = copy / "eval.safetensors"
    path.write_bytes(altered(path.read_bytes()))
    make_scenes(copy, PLAN)
    assert content(copy) == content(made)
    monkeypatch.setattr(generate, "make_chunk", None)
    make_scenes(copy, PLAN)
    assert content(copy) == content(made)


# --- bad input ---


def test_no_scenes(tmp_path):
    with pytest.raises(UserError, match=r"holds no scenes: it has no scenes.json; `irrl data sce"):
        load_scenes(tmp_path, "train")


def test_unknown_split(made):
    with pytest.raises(UserError, match="unknown split 'test', known: train, eval"):
        load_scenes(made, "test")


def test_scenes_of_another_version(copy):
    record = json.loads((copy / "scenes.json").read_text())
    (copy / "scenes.json").write_text(json.dumps({**record, "version": 99}))
    with pytest.raises(UserError, match="are of format 99, this irrl reads 1; make them again"):
        load_scenes(copy, "train")
    with pytest.raises(UserError, match="format 99"):
        make_scenes(copy, PLAN)


@pytest.mark.parametrize("text", ["[]", "{}", '{"version": 1, "seed": "x"}', '{"version": 1'])
def test_a_damaged_record(copy, text):
    (copy / "scenes.json").write_text(text)
    with pytest.raises(UserError, match=r"scenes\.json"):
        load_scenes(copy, "train")


@pytest.mark.parametrize("harm", [lambda c: c[:-1], altered, lambda c: b""])
def test_damaged_scenes(copy, harm):
    path = copy / "train.safetensors"
    path.write_bytes(harm(path.read_bytes()))
    with pytest.raises(UserError, match=r"train.safetensors is damaged.*--train 14 --eval 6 "):
        load_scenes(copy, "train")
    assert len(load_scenes(copy, "eval")) == 6
    path.unlink()
    with pytest.raises(UserError, match=r"train.safetensors is missing; `irrl data scenes"):
        load_scenes(copy, "train")


def test_a_damaged_part(tmp_path):
    stopped_after(1, tmp_path / "made")
    (part,) = (tmp_path / "made" / "parts").iterdir()
    part.write_bytes(b"nonsense")
    with pytest.raises(UserError, match=r"train-000000.saf.* is damaged: .*; remove it, and"):
        make_scenes(tmp_path / "made", PLAN)
    part.unlink()
    make_scenes(tmp_path / "made", PLAN)


def test_a_folder_that_holds_something_else(copy, made, tmp_path):
    with pytest.raises(UserError, match="already holds scenes with seed 3, not 5, train 14, not 9"):
        make_scenes(copy, Plan(seed=5, train=9, eval=6))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("dear")
    with pytest.raises(UserError, match="is not empty and holds no scenes"):
        make_scenes(tmp_path / "full", PLAN)
    with pytest.raises(UserError, match=r"letter.txt is a file, not a folder"):
        make_scenes(tmp_path / "full" / "letter.txt", PLAN)
    assert content(copy) == content(made)


def test_a_folder_that_is_being_written(copy):
    with exclusive(copy, "written"), pytest.raises(UserError, match="written by another process"):
        make_scenes(copy, PLAN)


def test_too_little_disk(tmp_path, monkeypatch):
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda path: usage(2_500_000))
    assert check_disk(tmp_path / "not" / "there" / "yet", 2_400_000) == 2_500_000
    with pytest.raises(UserError, match=r"needs 3 GB, but the disk .* has 2.5 MB free; choose"):
        check_disk(tmp_path, 3_000_000_000)


def test_sizes_in_words():
    sizes = (0, 999, 12_345, 14_900_000_000, 236e12, 236e15)
    assert [in_words(size) for size in sizes] == [
        "0 bytes", "999 bytes", "12.3 kB", "14.9 GB", "236 TB", "236,000 TB",
    ]  # fmt: skip
