import numpy as np
import pytest

from irrl.noise import (
    DeltaNoise,
    Moments,
    exact_noise,
    expansion_valid_from,
    slope_at_prior,
    slopes,
    taylor_noise,
)
from irrl.rewards import REWARDS, reward

SYMMETRIC = Moments(mean=0.0, second=0.01, third=0.0, fourth=0.0003)


@pytest.mark.parametrize("posterior", [0.05, 0.3, 0.9])
def test_linear_noise_has_no_bias_and_the_variance_of_delta(posterior):
    noise = taylor_noise("linear", posterior, SYMMETRIC)
    assert noise.bias == pytest.approx(0.0, abs=1e-9)
    assert noise.variance == pytest.approx(0.01, rel=1e-9)


@pytest.mark.parametrize("posterior", [0.05, 0.3, 0.9])
def test_log_noise_is_as_the_paper_derives_it(posterior):
    noise = taylor_noise("log", posterior, SYMMETRIC)
    assert noise.bias == pytest.approx(-0.01 / (2 * posterior**2), rel=1e-6)
    square = 0.0003 - 0.01**2
    variance = 0.01 / posterior**2 + square / (2 * posterior**2) ** 2
    assert noise.variance == pytest.approx(variance, rel=1e-6)


def test_the_covariance_term_of_equation_6():
    skewed = Moments(mean=0.02, second=0.01, third=0.004, fourth=0.0005)
    first, second = 1 / 0.3, -1 / 0.3**2
    expected = (
        first**2 * (0.01 - 0.02**2)
        + (second / 2) ** 2 * (0.0005 - 0.01**2)
        + first * second * (0.004 - 0.02 * 0.01)
    )
    assert taylor_noise("log", 0.3, skewed).variance == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("family", ["normal", "laplace", "uniform"])
def test_away_from_the_edges_delta_has_the_moments_of_its_family(family):
    kurtosis = {"normal": 3.0, "laplace": 6.0, "uniform": 1.8}[family]
    moments = DeltaNoise(family, 0.01).moments(0.5)
    assert moments.mean == pytest.approx(0.0, abs=1e-12)
    assert moments.variance == pytest.approx(1e-4, rel=1e-6)
    assert moments.fourth == pytest.approx(kurtosis * 1e-8, rel=1e-6)


def test_truncation_keeps_probabilities_and_shifts_the_mean():
    noise = DeltaNoise("normal", 0.3)
    for posterior in (0.02, 0.5, 0.97):
        q, mass = noise.quadrature(posterior)
        assert q.min() >= 0.0 and q.max() <= 1.0
        assert mass.sum() == pytest.approx(1.0)
    assert noise.moments(0.02).mean > 0.1 > -0.1 > noise.moments(0.97).mean


def test_exact_linear_noise_is_delta_itself():
    noise = DeltaNoise("normal", 0.2)
    for posterior in (0.1, 0.5, 0.9):
        moments = noise.moments(posterior)
        exact = exact_noise("linear", posterior, noise)
        assert exact.bias == pytest.approx(moments.mean, abs=1e-12)
        assert exact.variance == pytest.approx(moments.variance, rel=1e-9)


@pytest.mark.parametrize("name", ["log", "clipped-log", "root-2", "power-6", "clipped-linear"])
@pytest.mark.parametrize("family", ["normal", "laplace", "uniform"])
def test_quadrature_agrees_with_sampling(name, family):
    noise, posterior, prior = DeltaNoise(family, 0.06), 0.15, 0.1
    rng = np.random.default_rng(0)
    draw = {
        "normal": lambda n: rng.normal(size=n),
        "laplace": lambda n: rng.laplace(scale=np.sqrt(0.5), size=n),
        "uniform": lambda n: rng.uniform(-np.sqrt(3), np.sqrt(3), size=n),
    }[family]
    q = posterior + 0.06 * draw(2_000_000)
    q = q[(q > 0) & (q < 1)]
    of = REWARDS[name].of_log_posterior
    eps = of(np, np.log(q), np.log(prior)) - of(np, np.log(posterior), np.log(prior))
    exact = exact_noise(name, posterior, noise, prior)
    error = 5 * eps.std() / np.sqrt(eps.size)
    assert exact.bias == pytest.approx(eps.mean(), abs=error)
    fourth = np.mean((eps - eps.mean()) ** 4)
    error_of_variance = 5 * np.sqrt((fourth - eps.var() ** 2) / eps.size)
    assert exact.variance == pytest.approx(eps.var(), abs=error_of_variance)


def test_the_expansion_approaches_the_exact_noise_as_noise_shrinks():
    for name in ("log", "root-2", "exp", "power-3"):
        noise = DeltaNoise("normal", 0.003)
        exact = exact_noise(name, 0.4, noise)
        taylor = taylor_noise(name, 0.4, noise.moments(0.4))
        assert taylor.bias == pytest.approx(exact.bias, rel=1e-3)
        assert taylor.variance == pytest.approx(exact.variance, rel=1e-3)


def test_where_the_expansion_can_be_trusted():
    noise = DeltaNoise("normal", 0.05)
    assert expansion_valid_from("linear", noise) == pytest.approx(0.01)
    log_from = expansion_valid_from("log", noise)
    assert 0.1 < log_from < 0.3
    exact = exact_noise("log", 0.08, noise)
    taylor = taylor_noise("log", 0.08, noise.moments(0.08))
    assert abs(taylor.std - exact.std) > 0.1 * exact.std
    assert expansion_valid_from("log", DeltaNoise("uniform", 0.5)) is None


def test_clipping_trades_bias_for_variance_at_the_prior():
    noise = DeltaNoise("normal", 0.03)
    plain, clipped = (exact_noise(n, 0.1, noise, prior=0.1) for n in ("linear", "clipped-linear"))
    assert clipped.variance < 0.5 * plain.variance
    assert clipped.bias > abs(plain.bias)


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [("log", 1 / 0.2, -1 / 0.04), ("linear", 1, 0), ("power-3", 3 * 0.04, 6 * 0.2),
     ("root-2", 0.5 / 0.2**0.5, -0.25 / 0.2**1.5), ("f-chi2", 10, 0)],
)  # fmt: skip
def test_slopes(name, first, second):
    got_first, got_second = slopes(name, 0.2, prior=0.1)
    assert got_first == pytest.approx(first, rel=1e-8)
    assert got_second == pytest.approx(second, rel=1e-6, abs=1e-6)


def test_the_expansion_of_a_clipped_reward_knows_where_it_is_flat():
    first, second = slopes("clipped-linear", np.array([0.05, 0.1, 0.2]), prior=0.1)
    np.testing.assert_allclose(first, [0, 1, 1], atol=1e-9)
    np.testing.assert_allclose(second, 0, atol=1e-6)
    first, _ = slopes("f-total-variation", np.array([0.05, 0.1, 0.1 - 1e-5]), prior=0.1)
    np.testing.assert_allclose(first, [0, 10, 0], rtol=0.01)


def test_slope_at_the_prior_is_taken_from_above():
    assert slope_at_prior("f-total-variation", 0.1) == pytest.approx(10, rel=1e-6)
    assert slope_at_prior("clipped-power-2", 0.1) == pytest.approx(0.2, rel=1e-6)


@pytest.mark.parametrize(
    "call",
    [
        lambda: taylor_noise("accuracy", 0.5, SYMMETRIC),
        lambda: exact_noise("accuracy", 0.5, DeltaNoise()),
        lambda: taylor_noise("disdain", 0.5, SYMMETRIC),
        lambda: exact_noise("disdain", 0.5, DeltaNoise()),
        lambda: slopes("disdain", 0.5),
        lambda: slope_at_prior("disdain", 0.1),
        lambda: slopes("log", [0.5, float("nan")]),
        lambda: slopes("log", 0.0),
        lambda: slopes("log", 0.5, prior=0.0),
        lambda: slope_at_prior("log", 1.0),
        lambda: exact_noise("log", float("nan"), DeltaNoise()),
        lambda: DeltaNoise("normal", float("nan")),
        lambda: exact_noise("log", 0.0, DeltaNoise()),
        lambda: exact_noise("log", 0.5, DeltaNoise(), prior=1.0),
        lambda: DeltaNoise("normal", -1.0),
        lambda: DeltaNoise("norml", 0.1),
    ],
)
def test_bad_arguments(call):
    with pytest.raises(ValueError):
        call()


def test_the_noise_of_a_reward_of_ones_own():
    own, noise = reward(lambda q: q**3), DeltaNoise("normal", 0.05)
    assert exact_noise(own, 0.5, noise).std == pytest.approx(exact_noise("power-3", 0.5, noise).std)
    for found, wanted in zip(slopes(own, 0.5), slopes("power-3", 0.5), strict=True):
        assert found == pytest.approx(wanted, rel=1e-6)
