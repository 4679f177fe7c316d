import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irrl.reward_model.spaces import Part
from irrl.reward_model.store import EpisodeStore

PARTS = {"a": Part((2,), "float32"), "b": Part((), "int64", sizes=(1000,), start=(0,))}


def flat(first, count):
    """Observations of which each is there once."""
    numbers = np.arange(first, first + count)
    return {"a": np.stack([numbers, -numbers], axis=1).astype(np.float32), "b": numbers % 1000}


def filled(capacity, batches):
    """A store and its twin: a list of the numbers of each episode, and its label."""
    store, twin, number, label = EpisodeStore(PARTS, capacity), [], 0, 0
    for lengths in batches:
        count = sum(lengths)
        labels = np.arange(label, label + len(lengths)) % 7
        store.add(flat(number, count), np.array(lengths), labels)
        for length, its in zip(lengths, labels, strict=True):
            twin.append((list(range(number, number + length)), int(its)))
            number += length
        label += len(lengths)
    return store, twin[-capacity:]


BATCHES = st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=5), min_size=1, max_size=25)


def check(store, twin):
    assert len(store) == len(twin)
    assert store.labels.tolist() == [label for _, label in twin]
    assert store.steps == sum(len(numbers) for numbers, _ in twin)
    batch = store.episodes(np.arange(len(twin)))
    for i, (numbers, label) in enumerate(twin):
        assert batch.lengths[i] == len(numbers) and batch.labels[i] == label
        assert batch.observations["a"][: len(numbers), i, 0].tolist() == numbers
        assert batch.observations["b"][: len(numbers), i].tolist() == [n % 1000 for n in numbers]
    states = store.states(np.arange(store.steps))
    assert states.observations["a"][0, :, 1].tolist() == [-n for e, _ in twin for n in e]
    assert states.labels.tolist() == [label for e, label in twin for _ in e]
    assert states.lengths.tolist() == [1] * store.steps


@given(st.integers(1, 12), BATCHES)
def test_it_holds_the_newest_episodes(capacity, batches):
    check(*filled(capacity, batches))


@given(st.integers(1, 12), BATCHES)
def test_restored_it_is_the_same_and_goes_on(capacity, batches):
    store, twin = filled(capacity, batches)
    other = EpisodeStore(PARTS, capacity)
    other.add(flat(0, 3), np.array([3]), np.array([1]))  # what it had is gone
    other.restore(store.to_arrays())
    check(other, twin)
    for each in (store, other):
        each.add(flat(5000, 2), np.array([2]), np.array([6]))
    check(other, [*twin, ([5000, 5001], 6)][-capacity:])
    check(store, [*twin, ([5000, 5001], 6)][-capacity:])


def test_it_does_not_grow_without_end():
    store, _ = filled(4, [[3, 3]] * 500)
    assert len(store._arrays["a"]) <= 4 * 4 * 6


def test_what_was_saved_does_not_change_later():
    store, _ = filled(3, [[2], [3]])
    saved = store.to_arrays()
    before = {name: array.copy() for name, array in saved.items()}
    for _ in range(10):
        store.add(flat(900, 4), np.array([2, 2]), np.array([0, 0]))
    assert all(np.array_equal(before[name], saved[name]) for name in saved)


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("lengths", lambda a: a + 1, "lengths do not fit"),
        ("lengths", lambda a: a.astype(float), "lengths or labels do not fit"),
        ("labels", lambda a: a[:-1], "lengths or labels do not fit"),
        ("labels", lambda a: a[:, None], "lengths or labels do not fit"),
        ("observations.a", lambda a: a[:, :1], "'a' are of another space"),
        ("observations.a", lambda a: a.astype(float), "'a' are of another space"),
        ("observations.a", lambda a: a * np.nan, "'a' are damaged"),
        ("observations.b", lambda a: a - 1000, "'b' are damaged"),
    ],
)
def test_what_does_not_fit_is_refused(name, change, said):
    store, twin = filled(4, [[2, 3]])
    arrays = store.to_arrays()
    with pytest.raises(ValueError, match=said):
        store.restore({**arrays, name: change(arrays[name])})
    check(store, twin)
