import math

import numpy as np
import pytest

from irrl.densities import Binned, Normal, Uniform
from irrl.density_noise import NormalNoise, exact_noise, taylor_noise
from irrl.density_rewards import DENSITY_REWARDS, density_reward

PRIOR = Normal(0.0, 1.0)
SMALL = NormalNoise(mean=0.004, log_var=0.01, mean_bias=0.002, log_var_bias=-0.004)
LARGE = NormalNoise(mean=0.15, log_var=0.5, mean_bias=0.05, log_var_bias=-0.3)


@pytest.mark.parametrize("label", [None, 0.5])
@pytest.mark.parametrize("prior", [PRIOR, Uniform(-1.0, 1.0)], ids=["normal", "uniform"])
@pytest.mark.parametrize("name", DENSITY_REWARDS)
def test_quadrature_agrees_with_sampling(name, prior, label):
    z = np.random.default_rng(0).normal(size=(3, 50_000, 1))
    y = 0.3 + 0.2 * z[0] if label is None else np.full_like(z[0], label)
    within = prior.holds(np, y)[:, 0]
    mean = 0.3 + LARGE.mean_bias + LARGE.mean * z[1]
    std = 0.2 * np.exp(0.5 * (LARGE.log_var_bias + LARGE.log_var * z[2]))
    found = density_reward(name, validate=False)
    eps = found(Normal(mean, std), y, prior) - found(Normal(np.full_like(y, 0.3), 0.2), y, prior)
    eps = eps[within]
    exact = exact_noise(name, Normal(0.3, 0.2), LARGE, prior, label)
    assert exact.bias == pytest.approx(eps.mean(), abs=5 * eps.std() / math.sqrt(eps.size))
    fourth = np.mean((eps - eps.mean()) ** 4)
    error_of_variance = 5 * math.sqrt((fourth - eps.var() ** 2) / eps.size)
    assert exact.variance == pytest.approx(eps.var(), abs=error_of_variance)


@pytest.mark.parametrize("label", [None, 0.5])
@pytest.mark.parametrize("name", DENSITY_REWARDS)
def test_the_expansion_approaches_the_exact_noise_as_noise_shrinks(name, label):
    """Over labels, too: there the kinks of clipped rewards are part of the second order."""
    exact = exact_noise(name, Normal(0.3, 0.2), SMALL, PRIOR, label)
    taylor = taylor_noise(name, Normal(0.3, 0.2), SMALL, PRIOR, label)
    assert taylor.bias == pytest.approx(exact.bias, rel=0.02, abs=1e-6)
    assert taylor.std == pytest.approx(exact.std, rel=0.02)


@pytest.mark.parametrize("s", [0.05, 0.3, 0.8])
@pytest.mark.parametrize("t", [0.02, 0.3])
def test_noise_of_the_mean_in_closed_form(s, t):
    noise = NormalNoise(mean=t, log_var=0.0)
    bias = {name: exact_noise(name, Normal(0.1, s), noise, PRIOR).bias
            for name in ("density-log", "crps", "ball")}  # fmt: skip
    assert bias["density-log"] == pytest.approx(-(t**2) / (2 * s**2), rel=1e-6)
    crps = -2 * s * (math.sqrt(1 + t**2 / (2 * s**2)) - 1) / math.sqrt(math.pi)
    assert bias["crps"] == pytest.approx(crps, rel=1e-6)
    assert -t * math.sqrt(2 / math.pi) < bias["crps"] < 0

    def within(variance):
        return math.erf(0.25 / math.sqrt(2 * variance))

    ball = within(2 * s**2 + t**2) - within(2 * s**2)
    assert bias["ball"] == pytest.approx(ball, rel=2e-5, abs=1e-9)


def test_noise_of_the_log_variance_in_closed_form():
    """E exp(-b) of a normal b: what a model too sure of itself costs the log of the density."""
    noise = NormalNoise(mean=0.2, log_var=0.5, mean_bias=0.1, log_var_bias=-1.0)
    square = math.exp(1.0 + 0.5**2 / 2) * (1 + (0.2**2 + 0.1**2) / 0.3**2)
    expected = -0.5 * (-1.0 + square - 1.0)
    exact = exact_noise("density-log", Normal(0.1, 0.3), noise, PRIOR)
    assert exact.bias == pytest.approx(expected, rel=1e-6)
    taylor = taylor_noise("density-log", Normal(0.1, 0.3), noise, PRIOR)
    c, S, s2 = (0.1, -1.0), (0.04, 0.25), 0.09
    second = -0.5 * ((c[0] ** 2 + S[0]) / s2 + (c[1] ** 2 + S[1]) / 2)
    assert taylor.bias == pytest.approx(second, rel=1e-6)  # the first order is zero over labels


def test_no_noise_is_none():
    none = NormalNoise(0.0, 0.0)
    for name in DENSITY_REWARDS:
        exact = exact_noise(name, Normal(0.1, 0.3), none, PRIOR)
        assert exact.bias == exact.variance == 0.0


def test_the_surer_the_posterior_the_more_the_log_loses_and_not_the_others():
    noise = NormalNoise(mean=0.1, log_var=0.0)
    wide, narrow = Normal(0.0, 0.3), Normal(0.0, 0.03)
    log, crps, ball = (
        [exact_noise(name, q, noise, PRIOR).bias for q in (wide, narrow)]
        for name in ("density-log", "crps", "ball")
    )
    assert log[1] < 90 * log[0] and log[1] < -5
    assert crps[1] > -0.08 and ball[1] > -0.03


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ball", Normal(0.0, 0.0), SMALL, PRIOR), r"posterior\.std must be positive"),
        (("ball", Normal(0.0, math.inf), SMALL, PRIOR), r"posterior\.std must be finite"),
        (("ball", Normal(math.nan, 1.0), SMALL, PRIOR), r"posterior\.mean must be finite"),
        (("ball", Normal([0.0, 1.0], 1.0), SMALL, PRIOR), "posterior must be of one dimension"),
        (("ball", Normal(0.0, 1.0), SMALL, Normal([0.0, 1.0], 1.0)), "prior must be of one dim"),
        (("ball", Normal(0.0, 1.0), SMALL, Normal(0.0, 0.0)), r"prior\.std must be positive"),
        (("ball", Uniform(0.0, 1.0), SMALL, PRIOR), "posterior must be a Normal"),
        (("ball", Normal(0.0, 1.0), SMALL, Binned([0.0], [0.0, 1.0])), "prior must be a Normal or"),
        (("ball", Normal(0.0, 1.0), SMALL, PRIOR, math.nan), "label must be a finite number"),
        (("ball", Normal(0.0, 1.0), SMALL, Uniform(-1, 1), 2.0), "prior gives no mass"),
        (("ball", Normal(9.0, 0.1), SMALL, Uniform(-1, 1)), "prior gives no mass"),
        (("bal", Normal(0.0, 1.0), SMALL, PRIOR), "Did you mean 'ball'"),
    ],
)
@pytest.mark.parametrize("noise_of", [taylor_noise, exact_noise])
def test_bad_arguments_are_named(noise_of, arguments, message):
    with pytest.raises(ValueError, match=message):
        noise_of(*arguments)


def test_bad_noise_is_named():
    for name in ("mean", "log_var", "mean_bias", "log_var_bias"):
        with pytest.raises(ValueError, match=f"{name} must be finite"):
            NormalNoise(**{name: math.nan})
    with pytest.raises(ValueError, match="log_var must be finite and not negative"):
        NormalNoise(log_var=-1.0)
