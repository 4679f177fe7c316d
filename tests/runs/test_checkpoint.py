import numpy as np
import pytest

from irrl.errors import UserError
from irrl.runs.checkpoint import (
    ARRAYS,
    LAST,
    STATE,
    Checkpoint,
    checkpoint_paths,
    last_checkpoint,
    load_checkpoint,
    remove_checkpoint,
    save_checkpoint,
)
from irrl.runs.files import remove_leftovers


def make(step=5):
    arrays = {
        "table": np.random.default_rng(step).random((3, 4), dtype=np.float32),
        "counts": np.arange(5, dtype=np.int64),
    }
    return Checkpoint(step, arrays, {"note": "x", "exact": 0.1 + 0.2})


def test_what_is_saved_is_loaded_to_the_last_bit(tmp_path):
    saved = make()
    loaded = load_checkpoint(save_checkpoint(tmp_path, saved))
    assert loaded.step == 5 and loaded.state == saved.state
    for name, array in saved.arrays.items():
        assert loaded.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(loaded.arrays[name], array)


def test_the_last_one_is_found(tmp_path):
    assert last_checkpoint(tmp_path) is None
    for step in (5, 100, 20):
        save_checkpoint(tmp_path, make(step))
    assert last_checkpoint(tmp_path).step == 20
    assert [int(path.name) for path in checkpoint_paths(tmp_path)] == [5, 20, 100]
    (tmp_path / LAST).unlink()
    assert last_checkpoint(tmp_path).step == 100


def test_an_interrupted_write_is_not_a_checkpoint(tmp_path):
    save_checkpoint(tmp_path, make(5))
    (tmp_path / ".000000000009.tmp").mkdir()
    (tmp_path / ".000000000009.tmp" / ARRAYS).write_bytes(b"half")
    assert last_checkpoint(tmp_path).step == 5
    save_checkpoint(tmp_path, make(9))
    assert last_checkpoint(tmp_path).step == 9


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda p: (p / ARRAYS).unlink(), "half a checkpoint"),
        (lambda p: (p / STATE).unlink(), "half a checkpoint"),
        (lambda p: (p / STATE).write_text('{"step": 5'), "damaged checkpoint"),
        (lambda p: (p / STATE).write_text("{}"), "damaged checkpoint"),
        (lambda p: (p / ARRAYS).write_bytes((p / ARRAYS).read_bytes()[:-3]), "altered or cut"),
    ],
)
def test_damage_is_noticed(tmp_path, damage, message):
    path = save_checkpoint(tmp_path, make())
    damage(path)
    with pytest.raises(UserError, match=message):
        last_checkpoint(tmp_path)


@pytest.mark.parametrize("name", [b"", b"nowhere\n", b"\xff\xfe"])
def test_a_pointer_to_nowhere_is_told_apart_from_damage(tmp_path, name):
    save_checkpoint(tmp_path, make())
    (tmp_path / LAST).write_bytes(name)
    with pytest.raises(UserError, match="names no checkpoint that is there"):
        last_checkpoint(tmp_path)
    (tmp_path / LAST).unlink()
    assert last_checkpoint(tmp_path).step == 5


def test_a_scalar_stays_a_scalar_and_a_transposed_array_keeps_its_values(tmp_path):
    table = np.arange(6.0).reshape(2, 3).T
    path = save_checkpoint(tmp_path, Checkpoint(1, {"step": np.float32(3.0), "t": table}, {}))
    arrays = load_checkpoint(path).arrays
    assert arrays["step"].shape == () and arrays["step"] == 3.0
    np.testing.assert_array_equal(arrays["t"], table)


def test_what_a_kill_leaves_of_a_removal_is_found_and_removed(tmp_path, monkeypatch):
    for step in (5, 9):
        save_checkpoint(tmp_path, make(step))
    monkeypatch.setattr("shutil.rmtree", lambda path: None)
    remove_checkpoint(tmp_path / "000000000005")
    monkeypatch.undo()
    assert [int(path.name) for path in checkpoint_paths(tmp_path)] == [9]
    remove_leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["000000000009", LAST]
