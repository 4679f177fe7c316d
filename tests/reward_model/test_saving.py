import json
import os
import pickle

import numpy as np
import pytest
from gymnasium.spaces import Box
from safetensors.numpy import save_file

from irrl.reward_model import RewardModel, archive
from tests.reward_model.episodes import Plain, episode, fed, same, small_model, weights

WAYS = {
    "trajectory": {},
    "gru": {"core": "gru"},
    "state": {"judge": "state"},
    "final": {"judge": "final"},
    "ensemble": {"reward": "disdain", "prior": [0.2, 0.3, 0.5]},
    "own": {"discriminator": Plain},
    "counted": {"prior": "counted", "pay": "differences", "store": 12},
}


def trained(**options):
    """Two updates, and episodes that it has not learned from yet."""
    model = small_model(**options)
    for seed in range(2):
        fed(model, 15, seed).learn()
    return fed(model, 5, seed=9)


def go_on(model):
    losses = [model.learn()]
    for seed in range(20, 22):
        losses.append(fed(model, 10, seed).learn())
    return losses


def assert_same(model, other):
    one, two = (m.to_checkpoint() for m in (model, other))
    assert one[1] == two[1] and one[0].keys() == two[0].keys()
    assert all(np.array_equal(array, two[0][name]) for name, array in one[0].items())


@pytest.mark.parametrize("way", WAYS)
def test_saved_and_loaded_it_pays_and_learns_the_same(way, tmp_path):
    model = trained(**WAYS[way])
    model.save(tmp_path / "model")
    loaded = RewardModel.load(tmp_path / "model", WAYS[way].get("discriminator"))
    assert loaded.settings == model.settings and loaded.episodes == 35
    np.testing.assert_array_equal(loaded.log_probs(episode(0)), model.log_probs(episode(0)))
    np.testing.assert_array_equal(loaded.rewards(episode(0), 1), model.rewards(episode(0), 1))
    assert go_on(model) == go_on(loaded)
    assert_same(model, loaded)


@pytest.mark.parametrize("way", WAYS)
def test_a_state_dict_does_not_change_and_leads_back(way):
    model = trained(**WAYS[way])
    saved, paid = model.state_dict(), model.log_probs(episode(0))
    first = go_on(model)
    assert not np.array_equal(model.log_probs(episode(0)), paid)
    model.load_state_dict(saved)
    np.testing.assert_array_equal(model.log_probs(episode(0)), paid)
    assert go_on(model) == first


def test_without_its_episodes_it_pays_the_same_and_can_learn_anew(tmp_path):
    model = trained()
    model.save(tmp_path / "model", store=False)
    model.save(tmp_path / "whole")
    assert (tmp_path / "model").stat().st_size < (tmp_path / "whole").stat().st_size
    loaded = RewardModel.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.log_probs(episode(0)), model.log_probs(episode(0)))
    assert loaded.learn() == {} and loaded.health() == {}
    assert fed(loaded).learn()["discriminator_batches"] == 10


def test_an_oracle_is_in_the_file(tmp_path):
    model = fed(small_model(oracle=trained(width=16)))
    model.learn()
    model.save(tmp_path / "model")
    loaded = RewardModel.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.log_probs(episode(0)), model.log_probs(episode(0)))
    assert_same(model, loaded)
    with pytest.raises(ValueError, match="pays by an oracle, unlike this one"):
        small_model().load_state_dict(model.state_dict())
    oracle = small_model(discriminator=Plain)
    small_model(oracle=oracle).save(tmp_path / "own")
    with pytest.raises(ValueError, match="oracle has a discriminator of its own: give that model"):
        RewardModel.load(tmp_path / "own")
    assert RewardModel.load(tmp_path / "own", oracle=oracle).oracle is not None


def test_a_discriminator_of_ones_own_must_be_given_again(tmp_path):
    trained(discriminator=Plain).save(tmp_path / "own")
    trained().save(tmp_path / "default")
    with pytest.raises(ValueError, match="own: give that module again") as caught:
        RewardModel.load(tmp_path / "own")
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="default discriminator: leave yours out"):
        RewardModel.load(tmp_path / "default", Plain)
    with pytest.raises(ValueError, match="has shape"):
        RewardModel.load(tmp_path / "own", lambda: Plain(width=9))


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"labels": 4}, "the saved reward model has 4 labels, expected 3"),
        ({"space": Box(-1, 1, (3,))}, r"another observation space: observation \(3,\), expected"),
        ({"space": Box(-2, 1, (2,))}, "another observation space"),
        ({"judge": "state"}, "the saved reward model judges 'state', this one 'trajectory'"),
        ({"core": "gru"}, "has another discriminator"),
        ({"ensemble": 2}, "has another discriminator: .*members.1"),
        ({"width": 9}, "has shape"),
        ({"frequencies": 2}, "has shape"),
    ],
)
def test_what_was_saved_of_another_is_refused_and_nothing_is_lost(other, said):
    model, saved = trained(), small_model(**other).state_dict()
    before = model.state_dict()
    with pytest.raises(ValueError, match=said):
        model.load_state_dict(saved)
    assert before["state"] == model.state_dict()["state"]
    now = model.state_dict()["arrays"]
    assert all(np.array_equal(array, now[name]) for name, array in before["arrays"].items())


def _without(record, name):
    return {key: value for key, value in record.items() if key != name}


ARRAYS = {
    "label_counts": lambda a: a[:-1],
    "store.labels": lambda a: a + 7,
    "store.lengths": lambda a: a * 0,
    "held_out.lengths": lambda a: a + np.array([1 << 62, 1 << 62, 1 << 62, 1 << 62, *a[4:] * 0]),
    "held_out.observations.observation": lambda a: a.astype(float),
    "members.0.head.0.weight": lambda a: a[:, :1],
    "adam.exp_avg.members.0.head.0.weight": lambda a: a[:, :1],
}


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("missing", [True, False])
def test_damaged_arrays_are_refused_and_nothing_is_lost(name, missing):
    model = trained()
    arrays, state = model.to_checkpoint()
    damaged = _without(arrays, name) if missing else {**arrays, name: ARRAYS[name](arrays[name])}
    other = trained(seed=3)
    before = weights(other), other.episodes, len(other.store)
    with pytest.raises(ValueError) as caught:
        other.restore(damaged, state)
    assert "\n" not in str(caught.value)
    assert same(weights(other), before[0]) and (other.episodes, len(other.store)) == before[1:]


def test_a_damaged_oracle_is_refused_and_nothing_is_lost():
    model, other = (fed(small_model(oracle=trained(seed=seed))) for seed in (0, 3))
    arrays, state = model.to_checkpoint()
    name = [name for name in arrays if name.startswith("oracle.members.")][-1]
    before = other.to_checkpoint()[0]
    with pytest.raises(ValueError, match="must hold finite numbers"):
        other.restore({**arrays, name: np.full_like(arrays[name], np.nan)}, state)
    assert same(other.to_checkpoint()[0].values(), before.values())


@pytest.mark.parametrize(
    "change",
    [lambda s, k=key: _without(s, k) for key in ("parts", "labels", "settings", "counts", "own")]
    + [
        lambda s: {**s, "parts": {"observation": {"shap": [2]}}},
        lambda s: {**s, "parts": 3},
        lambda s: {**s, "settings": {"colour": "red"}},
        lambda s: {**s, "counts": [1]},
        lambda s: {**s, "counts": [1, -1, 0]},
        lambda s: {**s, "labels": "three"},
        lambda s: {**s, "labels": 10**40},
        lambda s: {**s, "settings": {**s["settings"], "width": 10**9}},
        lambda s: [],
    ],
)
def test_damaged_headers_are_refused_in_one_line(change, tmp_path):
    arrays, state = trained().to_checkpoint()
    path = tmp_path / "model"
    archive.write(path, arrays, change(state))
    with pytest.raises(ValueError, match=str(path)) as caught:
        RewardModel.load(path)
    assert "\n" not in str(caught.value)


def _cut(path):
    trained().save(path)
    path.write_bytes(path.read_bytes()[:-100])


def _flipped(path):
    trained().save(path)
    content = bytearray(path.read_bytes())
    content[20] ^= 0xFF
    path.write_bytes(content)


def _of_unknown_type(path):
    trained().save(path)
    path.write_bytes(path.read_bytes().replace(b'"dtype":"F32"', b'"dtype":"F4" ', 1))


FOREIGN = {
    "missing": lambda path: None,
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("hello, is this a model?"),
    "pickle": lambda path: path.write_bytes(pickle.dumps({"a": 1})),
    "cut": _cut,
    "flipped": _flipped,
    "folder": lambda path: path.mkdir(),
    "pipe": lambda path: os.mkfifo(path),
    "deep": lambda path: save_file({"a": np.zeros(2)}, path, {"irrl": "[" * 5000 + "]" * 5000}),
    "of an unknown type": _of_unknown_type,
    "other tensors": lambda path: save_file({"a": np.zeros(2)}, path),
    "other header": lambda path: save_file({"a": np.zeros(2)}, path, {"irrl": "no json"}),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_files_that_are_no_models_are_refused_in_one_line(kind, tmp_path):
    path = tmp_path / "model"
    FOREIGN[kind](path)
    with pytest.raises(ValueError, match="is not a saved reward model") as caught:
        RewardModel.load(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_a_file_holds_no_code_and_replaces_another_whole(tmp_path):
    path = tmp_path / "model"
    path.write_text("old")
    model = trained()
    model.save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["model"]
    size = int.from_bytes(path.read_bytes()[:8], "little")
    header = json.loads(path.read_bytes()[8 : 8 + size])
    state = json.loads(header["__metadata__"]["irrl"])
    assert state["labels"] == 3 and set(header) - {"__metadata__"} == set(model.to_checkpoint()[0])


@pytest.mark.parametrize("place", [-1, -300, 0.5, 0.9])
def test_one_byte_that_is_another_is_noticed(place, tmp_path):
    path = tmp_path / "model"
    trained().save(path)
    content = bytearray(path.read_bytes())
    content[int(place * len(content)) if isinstance(place, float) else place] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="was altered"):
        RewardModel.load(path)


def test_a_link_to_a_model_is_as_good_as_it(tmp_path):
    trained().save(tmp_path / "model")
    (tmp_path / "link").symlink_to("model")
    assert_same(RewardModel.load(tmp_path / "link"), RewardModel.load(tmp_path / "model"))
