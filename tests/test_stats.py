import numpy as np
import pytest

from irrl.stats import bootstrap_estimate, interquartile_mean, mean_estimate, t_quantile


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
    assert mean_estimate([3.0]) == (3.0, None, None, 1)
    assert bootstrap_estimate([3.0]) == (3.0, None, None, 1)
    assert str(mean_estimate([3.0])) == "3.0"
    assert str(mean_estimate([3.0, 3.0])) == "3.0 [3.0, 3.0]"


@pytest.mark.parametrize("estimate", [mean_estimate, bootstrap_estimate])
@pytest.mark.parametrize("values", [[], [[1.0]], [np.nan]])
def test_bad_values(estimate, values):
    with pytest.raises(ValueError, match="values"):
        estimate(values)
