import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irrl.analysis.ranges import range_in, range_of
from irrl.analysis.stats import (
    area_under_curve,
    bootstrap_estimate,
    interquartile_mean,
    mean_band,
    mean_estimate,
    permutation_test,
    probability_of_improvement,
    reached_estimate,
    short_number,
    steps_to,
    stratified_estimate,
    t_quantile,
)
from irrl.tasks import find_task, make_config

seeds = st.lists(st.integers(-20, 20).map(float), min_size=1, max_size=5)


def test_the_interquartile_mean_leaves_out_a_quarter_on_each_side():
    assert interquartile_mean(np.array([100.0, 2.0, 3.0, -50.0])) == pytest.approx(2.5)
    # five values: the outer ones are left out, those next to them count three quarters
    values = np.array([0.0, 1.0, 2.0, 4.0, 100.0])
    assert interquartile_mean(values) == pytest.approx((0.75 * 1 + 2 + 0.75 * 4) / 2.5)
    assert interquartile_mean(np.array([7.0])) == 7.0


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    [(1, 12.7062), (2, 4.3027), (4, 2.7764), (9, 2.2622), (30, 2.0423), (1000, 1.9623)],
)
def test_quantiles_of_students_t(freedom, quantile):
    assert t_quantile(0.975, freedom) == pytest.approx(quantile, abs=2e-4)
    assert t_quantile(0.5, freedom) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("seeds", [2, 3, 5, 10])
def test_the_interval_of_the_mean_covers_it_as_often_as_it_says(seeds):
    rng = np.random.default_rng(0)
    samples = rng.normal(10.0, 3.0, size=(2000, seeds))
    intervals = [mean_estimate(sample) for sample in samples]
    covered = np.mean([e.low <= 10.0 <= e.high for e in intervals])
    assert covered == pytest.approx(0.95, abs=0.02)


def test_bootstrap_estimates_are_reproducible():
    values = np.random.default_rng(0).normal(10, 1, size=40)
    got = bootstrap_estimate(values, lambda x: x.mean(axis=-1))
    assert got.low < got.value < got.high and got.seeds == 40
    assert got.high - got.low == pytest.approx(2 * 1.96 * values.std() / np.sqrt(40), rel=0.1)
    assert bootstrap_estimate(values) == bootstrap_estimate(values)


def test_one_seed_has_no_interval():
    assert mean_estimate([3.0]) == (3.0, None, None, 1, ())
    assert bootstrap_estimate([3.0]) == (3.0, None, None, 1, ())
    assert str(mean_estimate([3.0])) == "3.0"


def test_few_seeds_are_shown_one_by_one():
    assert str(mean_estimate([1.0, 3.0])) == "2.0 (1.0, 3.0)"
    assert str(mean_estimate([4.0, 1.0, 2.5])) == "2.5 (4.0, 1.0, 2.5)"
    assert str(mean_estimate([3.0, 3.0])) == "3.0"  # said once
    assert str(mean_estimate([1.0, 2.0, 3.0, 4.0])) == "2.5 [0.4, 4.6]"
    assert mean_estimate([4.0, 1.0, 2.5]).spread == (1.0, 4.0)
    four = mean_estimate([1.0, 2.0, 3.0, 4.0])
    assert four.spread == (four.low, four.high) and mean_estimate([3.0]).spread == (3.0, 3.0)


@given(st.lists(st.lists(st.floats(0, 100), min_size=4, max_size=4), min_size=4, max_size=6))
def test_a_band_is_the_interval_of_the_table_at_each_step(curves):
    low, high = mean_band(curves, 0.0, 100.0)
    for step, values in enumerate(np.transpose(curves)):
        interval = mean_estimate(values).within(0.0, 100.0)
        assert (low[step], high[step]) == pytest.approx((interval.low, interval.high))


# --- over tasks ---


def test_a_stratified_bootstrap_does_not_mix_tasks():
    # two tasks far apart: only what varies within each makes the interval
    apart = [[0.0, 0.1, 0.2, 0.3], [10.0, 10.1, 10.2, 10.3]]
    got = stratified_estimate(apart, lambda x: x.mean(axis=-1))
    mixed = bootstrap_estimate(np.concatenate(apart), lambda x: x.mean(axis=-1))
    assert got.value == pytest.approx(mixed.value) == pytest.approx(5.15)
    assert got.high - got.low < 0.2 < 5 < mixed.high - mixed.low
    assert got.seeds == 8
    assert stratified_estimate([[1.0], [2.0]]).low is None


# --- is A above B? ---


def test_the_probability_of_improvement_counts_pairs():
    # above: 2 > 1, 4 > 1, 4 > 3, 4 > 2; ties: 2 = 2
    got = probability_of_improvement([2.0, 4.0], [1.0, 3.0, 2.0])
    assert got.value == pytest.approx(4.5 / 6)
    assert got.low < got.value < got.high and got.seeds == 2
    sure = probability_of_improvement([5.0, 6.0], [1.0, 2.0])
    assert (sure.value, sure.low, sure.high) == (1.0, 1.0, 1.0)
    assert probability_of_improvement([5.0], [1.0, 2.0]).low is None


@given(seeds, seeds)
def test_improvement_of_a_and_of_b_add_up(a, b):
    there, back = (probability_of_improvement(*x, resamples=100) for x in ((a, b), (b, a)))
    assert there.value + back.value == pytest.approx(1.0)
    if there.low is not None:
        assert 0.0 <= there.low <= there.high <= 1.0


def test_the_interval_of_the_probability_of_improvement_covers_it():
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(200):
        got = probability_of_improvement(rng.normal(size=20), rng.normal(size=20), resamples=500)
        covered += got.low <= 0.5 <= got.high
    assert covered / 200 == pytest.approx(0.94, abs=0.04)


def test_the_permutation_test_counts_all_ways():
    assert permutation_test([4, 5, 6], [1, 2, 3]) == pytest.approx(1 / 20)
    assert permutation_test([1, 2, 3], [4, 5, 6]) == 1.0
    # sums of two of 1, 2, 3, 4 that are at least 6: 2+4, 3+4
    assert permutation_test([2, 4], [1, 3]) == pytest.approx(2 / 6)
    assert permutation_test([0.1, 0.2, 0.3], [0.1, 0.2, 0.3]) >= 0.5
    assert permutation_test([7.0], [7.0]) == 1.0


@given(seeds, seeds)
def test_one_of_the_two_directions_has_a_p_of_at_least_a_half(a, b):
    there, back = permutation_test(a, b), permutation_test(b, a)
    assert 0.0 < there <= 1.0 and 0.0 < back <= 1.0
    assert max(there, back) >= 0.5 and there + back >= 1.0 - 1e-9
    assert permutation_test(np.add(a, 3.5), np.add(b, 3.5)) == pytest.approx(there)


def test_many_seeds_are_dealt_at_random_and_always_alike():
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.5, 1, size=40), rng.normal(size=40)
    p = permutation_test(a, b)
    z = (a.mean() - b.mean()) / np.sqrt(2 * np.concatenate([a, b]).var(ddof=1) / 40)
    from math import erfc

    assert p == pytest.approx(0.5 * erfc(z / 2**0.5), rel=0.3)
    assert permutation_test(a, b) == p


def test_without_a_difference_p_is_small_as_rarely_as_it_says():
    rng = np.random.default_rng(0)
    found = [permutation_test(*rng.normal(size=(2, 5))) for _ in range(400)]
    assert np.mean(np.array(found) <= 0.1) == pytest.approx(0.1, abs=0.04)


# --- learning curves ---


def test_the_area_is_the_mean_height():
    assert area_under_curve([0, 10], [0, 1]) == pytest.approx(0.5)
    assert area_under_curve([0, 1, 10], [0, 10, 10]) == pytest.approx((5 + 90) / 10)
    np.testing.assert_allclose(area_under_curve([0, 2, 3], [[1, 1, 1], [0, 2, 2]]), [1, 4 / 3])
    assert area_under_curve([7], [3.0]) == 3.0


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=20), st.floats(0.1, 50))
def test_the_area_lies_between_the_extremes_and_does_not_mind_units_of_steps(values, unit):
    steps = np.arange(len(values)) * unit
    area = area_under_curve(steps, values)
    assert min(values) - 1e-9 <= area <= max(values) + 1e-9
    assert area == pytest.approx(area_under_curve(np.arange(len(values)), values), abs=1e-6)


def test_steps_to_a_threshold_are_interpolated():
    assert steps_to(80, [0, 100, 200], [0, 70, 90]) == pytest.approx(150)
    assert steps_to(80, [0, 100, 200], [0, 90, 70]) == pytest.approx(100 * 80 / 90)
    assert steps_to(80, [0, 100], [0, 80]) == 100
    assert steps_to(80, [5, 100], [85, 90]) == 5
    assert steps_to(80, [0, 100], [0, 79.9]) is None


@given(st.lists(st.floats(0, 100), min_size=1, max_size=20), st.floats(0, 100))
def test_a_lower_threshold_is_never_reached_later(values, threshold):
    steps = np.arange(len(values))
    late, early = steps_to(threshold, steps, values), steps_to(threshold / 2, steps, values)
    assert (late is None) == (max(values) < threshold)
    assert late is None or early <= late


def test_seeds_that_never_arrive_count_as_the_latest():
    assert reached_estimate([3.0, 1.0, 2.0]) == (2.0, 1.0, 3.0, 3, 3)
    assert reached_estimate([3.0, None, 2.0]) == (3.0, 2.0, None, 2, 3)
    assert reached_estimate([3.0, None, None]).median is None
    assert reached_estimate([3.0, None]).median is None
    assert str(reached_estimate([3000.0, None, 2000.0])) == "2k, 3k, never (2 of 3)"
    assert str(reached_estimate([None])) == "never (0 of 1)"
    assert str(reached_estimate([3.0, None, None])) == "never for most (1 of 3)"
    assert str(reached_estimate([5.0])) == "5 (1 of 1)"
    assert str(reached_estimate([5.0, 4.0])) == "4, 5 (2 of 2)"
    assert str(reached_estimate([5.0, 4.0, 7.0, 6.0])) == "5.5 [4, 7] (4 of 4)"
    with pytest.raises(ValueError, match="steps"):
        reached_estimate([])


def test_the_interval_of_the_median_covers_it_as_often_as_it_says():
    rng = np.random.default_rng(0)
    samples = rng.exponential(size=(2000, 12))
    late = 1.5  # above the median of log 2; seeds later than this never arrive
    found = [reached_estimate([x if x < late else None for x in sample]) for sample in samples]
    covered = [f.low <= np.log(2) and (f.high is None or np.log(2) <= f.high) for f in found]
    assert np.mean(covered) == pytest.approx(0.961, abs=0.015)  # of the 3rd and the 10th of 12


@pytest.mark.parametrize(
    ("value", "text"),
    [(7, "7"), (474, "474"), (999.9, "1k"), (61_540, "61.5k"), (999_600, "1M"), (1.25e6, "1.25M")],
)
def test_short_numbers(value, text):
    assert short_number(value) == text


@pytest.mark.parametrize("function", [area_under_curve, lambda x, y: steps_to(1.0, x, y)])
@pytest.mark.parametrize(("x", "y"), [([], []), ([1, 1], [0, 0]), ([1, 2], [0]), ([1], [np.nan])])
def test_bad_curves(function, x, y):
    with pytest.raises(ValueError, match="values"):
        function(x, y)


@pytest.mark.parametrize("estimate", [mean_estimate, bootstrap_estimate])
@pytest.mark.parametrize("values", [[], [[1.0]], [np.nan]])
def test_bad_values(estimate, values):
    with pytest.raises(ValueError, match="values"):
        estimate(values)


def test_an_interval_stays_in_the_range_of_its_quantity():
    wide = mean_estimate([99.0, 100.0, 100.0])
    assert wide.high > 100.0 and wide.within(*range_of("accuracy_percent")).high == 100.0
    assert wide.within(*range_of("accuracy_percent")).low == wide.low
    assert mean_estimate([0.0, 1.0]).within(*range_of("n_skills_greedy")).low == 0.0
    assert range_of("share_clipped") == (0.0, 1.0)
    assert range_of("reward_mean") == (-math.inf, math.inf)
    assert range_of("discriminator_posterior") == (0.0, 1.0)
    assert range_of("discriminator_log_posterior") == (-math.inf, math.inf)
    alone = mean_estimate([3.0])
    assert alone.within(0.0, 1.0) == alone


@pytest.mark.parametrize(
    ("task", "preset", "metric", "most"),
    [
        ("skills", "fast", "cells_reached", 104.0),
        ("skills", "fast", "n_skills_greedy", 97.6),
        ("skills", "small-map", "cells_reached", 23.0),
        ("digits", "fast", "glimpses", 18.0),
        ("counting", "fast", "moves", 6.0),
        ("gym", "fast", "n_skills", 32.0),
        ("gym", "perception", "accuracy_percent", 100.0),
    ],
)
def test_there_are_no_more_than_there_are(task, preset, metric, most):
    found = range_in(find_task(task), make_config(task, preset), metric)
    assert found == (0.0, pytest.approx(most, abs=0.05))
