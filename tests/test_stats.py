import numpy as np
import pytest

from irrl.stats import estimate, interquartile_mean


def test_the_interquartile_mean_leaves_out_a_quarter_on_each_side():
    assert interquartile_mean(np.array([100.0, 2.0, 3.0, -50.0])) == pytest.approx(2.5)
    # five values: the outer ones are left out, those next to them count three quarters
    values = np.array([0.0, 1.0, 2.0, 4.0, 100.0])
    assert interquartile_mean(values) == pytest.approx((0.75 * 1 + 2 + 0.75 * 4) / 2.5)
    assert interquartile_mean(np.array([7.0])) == 7.0


def test_estimates_hold_their_interval_and_are_reproducible():
    values = np.random.default_rng(0).normal(10, 1, size=20)
    got = estimate(values)
    assert got.low < got.value < got.high and got.seeds == 20
    assert got.value == pytest.approx(values.mean())
    assert got == estimate(values)
    half_width = 1.96 * values.std() / np.sqrt(20)
    assert got.high - got.low == pytest.approx(2 * half_width, rel=0.1)


def test_one_seed_has_an_interval_of_no_width():
    assert estimate([3.0]) == (3.0, 3.0, 3.0, 1)
    assert str(estimate([3.0])) == "3.0 [3.0, 3.0]"


@pytest.mark.parametrize("values", [[], [[1.0]], [np.nan]])
def test_bad_values(values):
    with pytest.raises(ValueError, match="values"):
        estimate(values)
