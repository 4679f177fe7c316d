"""Visits are counted by category and bucket, paid for, and kept."""

import math
from collections import Counter

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete
from hypothesis import given
from hypothesis import strategies as st

from irrl.errors import UserError
from irrl.reward_model import Collector, RewardModel
from irrl.reward_model.spaces import parts_of, to_parts
from irrl.reward_model.visits import Visits, visits_bonus
from tests.reward_model.episodes import episode, fed, small_model

EVERYWHERE = Box(-np.inf, np.inf, (2,), np.float32)
PLACES = st.lists(st.tuples(*[st.floats(-1.0, 1.0, width=32)] * 2), min_size=1, max_size=30)


def visits_of(space, side=None):
    return Visits(parts_of(space), side)


def counted(space, rows, side=None):
    """How often each of some observations was there, all of them counted."""
    n = len(rows["room"] if isinstance(rows, dict) else rows)
    visits, seen = visits_of(space, side), to_parts(parts_of(space), rows, (n,))
    visits.add(seen)
    return visits.of(seen).tolist()


@given(PLACES)
def test_bounded_numbers_have_ten_buckets_each(rows):
    def bucket(x):
        return min(math.floor((x + 1.0) / 0.2), 9)

    keys = [(bucket(x), bucket(y)) for x, y in rows]
    counts = Counter(keys)
    assert counted(Box(-1.0, 1.0, (2,)), np.array(rows, np.float32)) == [counts[k] for k in keys]


@given(st.lists(st.tuples(*[st.floats(-50.0, 50.0, width=32)] * 2), min_size=1, max_size=30))
def test_numbers_without_bounds_have_buckets_of_the_side_that_is_said(rows):
    keys = [(math.floor(x / 4.0), math.floor(y / 4.0)) for x, y in rows]
    counts = Counter(keys)
    assert counted(EVERYWHERE, np.array(rows, np.float32), 4.0) == [counts[k] for k in keys]


def test_both_ends_of_a_range_are_in_buckets_inside():
    visits = visits_of(Box(0.0, np.float32(0.3), (1,)), 0.1)
    seen = np.array([[0.0], [0.05], [0.25], [0.3]], np.float32)
    assert visits.buckets({"observation": seen}).ravel().tolist() == [0, 0, 2, 2]
    far = np.array([[-9.0], [9.0]], np.float32)  # outside of what the space says
    assert visits.buckets({"observation": far}).ravel().tolist() == [0, 2]


def test_categories_count_as_they_are():
    space = Dict({"room": Discrete(3, start=5), "doors": MultiDiscrete([2, 2])})
    rows = {"room": np.array([5, 6, 5, 5]), "doors": np.array([[0, 1], [0, 1], [0, 1], [1, 1]])}
    assert counted(space, rows) == [2, 1, 2, 1]


@pytest.mark.parametrize(
    ("space", "options", "said"),
    [
        (Box(0, 255, (9, 9), np.uint8), {"judge": "final"}, "'observation' is an image"),
        (EVERYWHERE, {"judge": "final"}, "has no bounds: say with `bucket`"),
        (EVERYWHERE, {"judge": "trajectory"}, "take judge 'final' or 'state'"),
        (EVERYWHERE, {"judge": "final", "bucket": 0.0}, "bucket must be positive"),
        (EVERYWHERE, {"judge": "final", "bonus_for": "visit"}, "Did you mean 'visits'"),
    ],
)
def test_what_cannot_be_counted_is_refused(space, options, said):
    with pytest.raises(UserError, match=said):
        RewardModel(space, 3, **{"bonus": 1.0, "bonus_for": "visits", **options})


# --- what is paid ---


def explorer(judge="final", **options):
    return small_model(bonus=0.5, bonus_for="visits", judge=judge, reward="linear", **options)


def test_visits_need_no_ensemble_and_nothing_is_counted_without_a_bonus():
    assert explorer().settings.ensemble == 1
    assert small_model(bonus_for="visits", judge="final").visits is None


def test_a_bonus_is_one_over_the_root_of_the_visits():
    np.testing.assert_allclose(visits_bonus(np.arange(5)), [1 / math.sqrt(n + 1) for n in range(5)])


@pytest.mark.parametrize(("judge", "counted_as"), [("final", 1), ("state", 3)])
def test_ends_are_counted_or_all_states_as_they_are_judged(judge, counted_as):
    model, plain = explorer(judge), small_model(judge=judge, reward="linear")
    seen = np.array([[0.9, 0.9], [-0.5, -0.5], [0.1, 0.3]], np.float32)
    model.add(seen, 0)
    model.add(seen, 2)
    assert len(model.visits) == counted_as
    apart = model.rewards(seen, 1)[-1] - plain.rewards(seen, 1)[-1]
    assert apart == pytest.approx(0.5 / math.sqrt(3.0), abs=1e-6)
    elsewhere = np.array([[0.9, 0.9], [-0.9, 0.9]], np.float32)
    apart = model.rewards(elsewhere, 1)[-1] - plain.rewards(elsewhere, 1)[-1]
    assert apart == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize("pay", ["end", "differences", "steps"])
def test_a_collector_pays_the_same(pay):
    model = fed(explorer("state" if pay == "steps" else "final", pay=pay), 30)
    collector = Collector(model, num_envs=2, hand_over=False)
    episodes = [episode([1, n]) for n in range(2)]
    collector.begin(np.stack([e[0] for e in episodes]), labels=[0, 2])
    paid = [
        collector.step(np.stack([e[t] for e in episodes]), ended=[t == 4] * 2) for t in range(1, 5)
    ]
    wanted = [model.rewards(e, label) for e, label in zip(episodes, (0, 2), strict=True)]
    np.testing.assert_allclose(np.array(paid).T, wanted, atol=1e-6)


# --- kept ---


def test_visits_are_saved_and_go_on(tmp_path):
    model = fed(explorer(), 30)
    model.learn()
    model.save(tmp_path / "model.safetensors")
    again = RewardModel.load(tmp_path / "model.safetensors")
    assert len(again.visits) == len(model.visits) > 5
    for one in (model, again):
        fed(one, 10, seed=1)
    for n in range(5):
        seen = episode([0, n])
        np.testing.assert_array_equal(again.rewards(seen, 1), model.rewards(seen, 1))


@pytest.mark.parametrize("damage", ["counts", "buckets", "zero", "twice", "gone"])
def test_damaged_visits_are_refused_and_change_nothing(damage):
    model, other = fed(explorer(), 30), explorer()
    arrays, state = model.to_checkpoint()
    counts, buckets = arrays["visits.counts"], arrays["visits.buckets"]
    if damage == "counts":
        arrays["visits.counts"] = counts[:-1]
    elif damage == "buckets":
        arrays["visits.buckets"] = buckets.astype(float)
    elif damage == "zero":
        arrays["visits.counts"] = counts * 0
    elif damage == "twice":
        arrays["visits.buckets"] = np.repeat(buckets[:1], len(buckets), axis=0)
    else:
        del arrays["visits.counts"]
    with pytest.raises(UserError, match="damaged"):
        other.restore(arrays, state)
    assert len(other.visits) == 0 and other.episodes == 0
