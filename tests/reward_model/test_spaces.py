import numpy as np
import pytest
from gymnasium import spaces

from irrl.reward_model.spaces import WHOLE, from_json, parts_of, to_json, to_parts
from tests.reward_model.episodes import small_model

NESTED = spaces.Dict(
    {
        "camera": spaces.Dict({"left": spaces.Box(0, 255, (5, 5), np.uint8)}),
        "door": spaces.Discrete(3, start=2),
        "dials": spaces.MultiDiscrete([3, 4], start=[1, -2]),
        "lamps": spaces.MultiBinary(3),
        "time": spaces.Box(0.0, 1.0, (), np.float64),
    }
)
READ = {
    "float64": spaces.Box(-1.0, 1.0, (2,), np.float64),
    "bounds that are none": spaces.Box(-3e38, 3e38, (2,), np.float32),
    "half bounded": spaces.Box(np.array([0, -np.inf]), np.array([1, 1]), dtype=np.float64),
    "bytes": spaces.Box(0, 255, (3,), np.uint8),
    "depth": spaces.Box(0, 60_000, (30, 30), np.uint16),
    "discrete": spaces.Discrete(5, start=-2),
    "grid of categories": spaces.MultiDiscrete([[2, 3], [4, 5]]),
    "bits": spaces.MultiBinary((3, 3)),
    "nested": NESTED,
}


def sampled(space, n, seed=0):
    space.seed(seed)
    return stack([space.sample() for _ in range(n)])


def stack(samples):
    if isinstance(samples[0], dict):
        return {name: stack([s[name] for s in samples]) for name in samples[0]}
    return np.stack(samples)


@pytest.mark.parametrize("judge", ["trajectory", "state", "final"])
@pytest.mark.parametrize("name", READ)
def test_a_model_learns_and_pays_in_any_space_it_can_read(name, judge):
    model = small_model(2, READ[name], judge=judge, reward="log")
    for n in range(4):
        model.add(sampled(READ[name], 3, n), n % 2)
    assert np.isfinite(model.learn()["discriminator_loss"])
    paid = model.rewards(sampled(READ[name], 4), 1)
    assert paid.shape == (3,) and np.isfinite(paid).all()


def test_entries_of_dictionaries_are_parts_by_their_paths():
    parts = parts_of(NESTED)
    assert set(parts) == {"camera/left", "door", "dials", "lamps", "time"}
    assert parts["door"].sizes == (3,) and parts["dials"].sizes == (3, 4)
    seen = to_parts(parts, sampled(NESTED, 20), (20,))
    assert seen["door"].min() == 0 and seen["door"].max() == 2
    assert seen["dials"].min(axis=0).tolist() == [0, 0]
    assert seen["dials"].max(axis=0).tolist() == [2, 3]
    assert {name: (a.shape[1:], str(a.dtype)) for name, a in seen.items()} == {
        name: (part.shape, part.dtype) for name, part in parts.items()
    }


@pytest.mark.parametrize("name", READ)
def test_parts_are_the_same_from_json(name):
    import json

    parts = parts_of(READ[name])
    assert from_json(json.loads(json.dumps(to_json(parts)))) == parts


@pytest.mark.parametrize(
    ("space", "said"),
    [
        (spaces.Text(4), "cannot read 'observation', a Text"),
        (spaces.Dict({"a": spaces.Tuple([spaces.Discrete(2)])}), "cannot read 'a', a Tuple"),
        (spaces.Dict({}), "empty dictionary"),
        (
            spaces.Dict({"a/b": spaces.Discrete(2), "a": spaces.Dict({"b": spaces.Discrete(2)})}),
            "two entries 'a/b'",
        ),
        (None, "must be a Gymnasium space, got NoneType"),
        ({}, "must be a Gymnasium space, got dict"),
    ],
)
def test_a_space_that_cannot_be_read_is_refused(space, said):
    with pytest.raises(ValueError, match=said):
        small_model(2, space)


@pytest.mark.parametrize(
    ("name", "seen", "said"),
    [
        ("float64", np.full((3, 2), np.inf), "'observation' holds NaN or infinity, environment 0"),
        ("bounds that are none", np.full((3, 2), 1e300), "holds NaN or infinity"),
        ("bytes", np.full((3, 3), 0.5), "'observation' holds what is no uint8, environment 0"),
        ("bytes", np.full((3, 3), 300), "holds what is no uint8"),
        ("discrete", np.array([0, -3, 0]), "lies outside of its space, environment 1"),
        ("discrete", np.array([0, 0, 0.5]), "holds what is no int64, environment 2"),
        ("nested", np.zeros((3, 2)), "must be a dictionary with 'camera/left', got ndarray"),
        ("nested", {"camera": {}}, "no 'left', only"),
        ("nested", {"door": np.zeros(3)}, "no 'camera/left', only door"),
    ],
)
def test_observations_that_do_not_fit_are_refused(name, seen, said):
    with pytest.raises(ValueError, match=said):
        to_parts(parts_of(READ[name]), seen, (3,))


def test_whole_numbers_of_any_type_are_taken_as_they_are():
    parts = parts_of(READ["bytes"])
    seen = to_parts(parts, np.array([[1.0, 2.0, 255.0]]), (1,))[WHOLE]
    assert seen.tolist() == [[1, 2, 255]] and seen.dtype == np.uint8
