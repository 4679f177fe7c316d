import json
import shutil

import numpy as np
import pytest

from irrl.errors import UserError
from irrl.tasks.counting import images
from irrl.tasks.counting.dataset import Plan, load_scenes
from irrl.tasks.counting.disk import bytes_needed, scenes_bytes
from irrl.tasks.counting.generate import make_scenes
from irrl.tasks.counting.images import make_images, open_images
from irrl.tasks.counting.render import shrink
from irrl.tasks.counting.scene import VIEWS
from tests.helpers.runs import StopError

PLAN = Plan(seed=6, train=7, eval=2)
SIDE = 32
CHUNKS = 4  # of 3 scenes


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(images, "CHUNK", 3)


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """Scenes without pictures. Do not change them: copy them first."""
    folder = tmp_path_factory.mktemp("images") / "bare"
    make_scenes(folder, PLAN)
    return folder


@pytest.fixture(scope="module")
def made(bare):
    """The same with pictures."""
    folder = shutil.copytree(bare, bare.parent / "made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(images, "CHUNK", 3)
        make_images(folder, SIDE)
    return folder


@pytest.fixture
def copy(made, tmp_path):
    return shutil.copytree(made, tmp_path / "copy")


def content(folder):
    return {path.name: path.read_bytes() for path in (folder / f"images-{SIDE}").iterdir()}


def test_pictures_are_those_of_the_scenes(made, renderer):
    for split, count in (("train", 7), ("eval", 2)):
        pictures = open_images(made, split, SIDE, verify=True)
        assert isinstance(pictures, np.memmap) and not pictures.flags.writeable
        assert pictures.shape == (count, VIEWS, SIDE, SIDE, 3) and pictures.dtype == np.uint8
        scenes = load_scenes(made, split)
        for number in range(count):
            renderer.place(scenes.scene(number))
            for view in range(VIEWS):
                expected = shrink(renderer.render(view), SIDE)
                np.testing.assert_array_equal(pictures[number, view], expected)


def test_the_number_of_workers_does_not_matter(made, bare, tmp_path):
    folder = shutil.copytree(bare, tmp_path / "two")
    told = []
    make_images(folder, SIDE, 2, lambda *step: told.append(step))
    assert content(folder) == content(made)
    assert ("train pictures", 7, 7) in told and told[-1] == ("eval pictures", 2, 2)


def test_interrupted_and_gone_on_with(made, bare, tmp_path, monkeypatch):
    folder = shutil.copytree(bare, tmp_path / "again")

    def stop(*step):
        raise StopError

    with pytest.raises(StopError):
        make_images(folder, SIDE, on_progress=stop)
    with pytest.raises(UserError, match=r"not finished: 2 of 3 chunks are missing; go on with `i"):
        open_images(folder, "train", SIDE)
    with pytest.raises(UserError, match=r"no eval pictures of 32 x 32; `irrl data .* makes them"):
        open_images(folder, "eval", SIDE)
    rendered = count_rendered(monkeypatch)
    make_images(folder, SIDE)
    assert len(rendered) == CHUNKS - 1
    assert content(folder) == content(made)


def count_rendered(monkeypatch):
    rendered, render_chunk = [], images.render_chunk

    def render(chunk):
        rendered.append(chunk.number)
        return render_chunk(chunk)

    monkeypatch.setattr(images, "render_chunk", render)
    return rendered


def test_the_disk_it_needs(bare, made, tmp_path):
    pictures = 9 * VIEWS * SIDE * SIDE * 3
    scenes = scenes_bytes(PLAN)
    assert bytes_needed(tmp_path / "new", PLAN, None) == scenes
    assert bytes_needed(tmp_path / "new", PLAN, SIDE) == scenes + pictures
    assert bytes_needed(bare, PLAN, SIDE) >= pictures
    assert bytes_needed(made, PLAN, SIDE) <= scenes


# --- bad input; the same command mends what can be mended ---


@pytest.mark.parametrize("harm", [lambda c: c[:-1000], lambda c: c + b"\0"])
def test_cut_short_or_too_long(copy, made, monkeypatch, harm):
    path = copy / f"images-{SIDE}" / "train.bin"
    path.write_bytes(harm(path.read_bytes()))
    with pytest.raises(UserError, match=r"train.bin is cut short or too long.*--resolution 32`"):
        open_images(copy, "train", SIDE)
    rendered = count_rendered(monkeypatch)
    make_images(copy, SIDE)
    assert len(rendered) <= 1
    assert content(copy) == content(made)


def test_damage_is_found_when_asked_for(copy, made, monkeypatch):
    path = copy / f"images-{SIDE}" / "train.bin"
    harmed = bytearray(path.read_bytes())
    harmed[4 * VIEWS * SIDE * SIDE * 3] ^= 1
    path.write_bytes(harmed)
    open_images(copy, "train", SIDE)
    with pytest.raises(
        UserError, match=r"train.bin is damaged: chunk 1 .*; `irrl data .* mends it"
    ):
        open_images(copy, "train", SIDE, verify=True)
    rendered = count_rendered(monkeypatch)
    make_images(copy, SIDE)
    assert rendered == [1]
    assert content(copy) == content(made)


def test_pictures_of_other_scenes(copy, tmp_path):
    make_scenes(tmp_path / "other", Plan(seed=7, train=7, eval=2))
    shutil.copytree(copy / f"images-{SIDE}", tmp_path / "other" / f"images-{SIDE}")
    for attempt in (
        lambda: open_images(tmp_path / "other", "train", SIDE),
        lambda: make_images(tmp_path / "other", SIDE),
    ):
        with pytest.raises(UserError, match=r"shows other scenes than those of .*; remove "):
            attempt()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 99}, "is of format 99, this irrl reads 1; remove .*images-32"),
        ({"sha256": "nothing"}, "is not a list of checksums, or damaged; remove"),
        ({"sha256": []}, "shows other scenes"),
    ],
)
def test_a_manifest_that_is_wrong(copy, change, words):
    path = copy / f"images-{SIDE}" / "train.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(UserError, match=words):
        open_images(copy, "train", SIDE)


def test_what_is_not_there(bare, made, tmp_path):
    with pytest.raises(UserError, match="holds no scenes"):
        open_images(tmp_path, "train", SIDE)
    with pytest.raises(UserError, match="no train pictures of 64 x 64"):
        open_images(made, "train", 64)
    with pytest.raises(UserError, match="must divide 256"):
        open_images(made, "train", 100)
    with pytest.raises(UserError, match="unknown split"):
        open_images(made, "test", SIDE)
