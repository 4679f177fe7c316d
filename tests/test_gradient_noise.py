"""Signal, noise and direction of policy gradients, where everything can be enumerated."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irrl.gradient_measured import Arm, make_arms
from irrl.gradient_noise import (
    BatchGroup,
    GradientMoments,
    cosine,
    direction,
    likeness,
    noise_added,
    noise_kept,
    sampled_moments,
    signal_kept,
    snr,
)
from irrl.rewards import reward

STATISTICS = {
    "snr": lambda m: snr(m, 0),
    "cosine": lambda m: cosine(m, 0, 1),
    "direction": lambda m: direction(m, 0, 1),
    "noise_added": lambda m: noise_added(m, 0, 1),
    "likeness": lambda m: likeness(m, 0, 1),
}


# --- estimates ---


def sampled(g):
    """Moments from gradients (batches, arms, parameters), each batch a group."""
    return sampled_moments([BatchGroup.of(batch) for batch in g])


def slow_moments(g):
    """The mean products of different batches, and covariances, one pair at a time."""
    count, arms, _ = g.shape
    signal, noise = np.zeros((arms, arms)), np.zeros((arms, arms))
    for a, b in itertools.product(range(arms), repeat=2):
        pairs = [g[i, a] @ g[j, b] for i, j in itertools.permutations(range(count), 2)]
        signal[a, b] = np.mean(pairs)
        noise[a, b] = sum(np.cov(g[:, a, p], g[:, b, p], ddof=1)[0, 1] for p in range(g.shape[2]))
    return GradientMoments(signal, noise)


def test_moments_are_those_of_the_slow_twin():
    g = np.random.default_rng(0).normal(1.0, 2.0, (6, 3, 5))
    found = sampled(g)
    for fast, slow in zip(found.moments, slow_moments(g), strict=True):
        np.testing.assert_allclose(fast, slow, atol=1e-12)
    for n, without in enumerate(found.without):
        for fast, slow in zip(without, slow_moments(np.delete(g, n, axis=0)), strict=True):
            np.testing.assert_allclose(fast, slow, atol=1e-12)


def test_groups_change_the_intervals_only():
    g = np.random.default_rng(1).normal(1.0, 2.0, (9, 2, 3))
    groups = [BatchGroup.of(batch) for batch in g[:4]]
    for n, batch in enumerate(g[4:]):
        groups[n % 4] = groups[n % 4].plus(batch)
    found = sampled_moments(groups)
    for grouped, single in zip(found.moments, sampled(g).moments, strict=True):
        np.testing.assert_allclose(grouped, single, rtol=1e-9)
    assert len(found.without) == 4
    left = np.delete(g, [1, 5], axis=0)
    for grouped, slow in zip(found.without[1], slow_moments(left), strict=True):
        np.testing.assert_allclose(grouped, slow, rtol=1e-9)


def test_moments_have_no_bias():
    """Over all samples of four batches from three outcomes, exactly."""
    outcomes = np.array([[[1.0, 0.0], [2.0, 1.0]], [[0.0, -1.0], [1.0, 0.0]], [[3.0, 1.0], [0, 0]]])
    chance = np.array([0.5, 0.3, 0.2])
    mean = np.tensordot(chance, outcomes, 1)
    signal = mean @ mean.T
    noise = np.einsum("k,kap,kbp->ab", chance, outcomes, outcomes) - signal
    expected = np.zeros((2, 2, 2))
    for which in itertools.product(range(3), repeat=4):
        found = sampled(outcomes[list(which)]).moments
        expected += np.prod(chance[list(which)]) * np.array(found)
    np.testing.assert_allclose(expected, [signal, noise], atol=1e-12)


def test_too_few_batches():
    with pytest.raises(ValueError, match="at least 4 groups of batches, got 3"):
        sampled(np.ones((3, 2, 2)))


@pytest.mark.parametrize("bad", [np.full((1, 1), np.inf), np.ones(3), np.ones((1, 2, 3))])
def test_gradients_that_are_none(bad):
    with pytest.raises(ValueError, match="finite, of shape"):
        BatchGroup.of(bad)


# --- statistics ---


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), st.floats(1e-3, 1e3))
def test_the_scale_of_a_reward_changes_nothing(seed, scale):
    g = np.random.default_rng(seed).normal(0.5, 1.0, (8, 2, 4))
    scaled = g * np.array([scale, 1.0])[:, None]
    for name, statistic in STATISTICS.items():
        before, after = (statistic(sampled(x).moments) for x in (g, scaled))
        if before is None:
            assert after is None or name == "direction"
        else:
            assert after == pytest.approx(before, rel=1e-9, abs=1e-9), name


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31))
def test_exact_moments_stay_in_range_and_the_cosine_is_direction_and_noise(seed):
    """Moments of any distribution, here an empirical one."""
    g = np.random.default_rng(seed).normal(0.5, 1.0, (8, 2, 4))
    mean = g.mean(axis=0)
    signal = mean @ mean.T
    moments = GradientMoments(signal, np.einsum("map,mbp->ab", g, g) / len(g) - signal)
    for statistic in (cosine, direction, likeness):
        assert -1.0 - 1e-12 <= statistic(moments, 0, 1) <= 1.0 + 1e-12
    assert 0.0 <= noise_added(moments, 0, 1) <= 1.0
    share = snr(moments, 0) / (1.0 + snr(moments, 0))
    assert cosine(moments, 0, 1) == pytest.approx(direction(moments, 0, 1) * math.sqrt(share))


def test_nothing_is_told_of_a_gradient_that_is_zero():
    moments = GradientMoments(np.diag([0.0, 1.0]), np.diag([0.0, 1.0]))
    assert snr(moments, 0) is cosine(moments, 0, 1) is direction(moments, 0, 1) is None
    assert noise_added(moments, 0, 1) is likeness(moments, 0, 1) is None
    assert noise_kept(moments, 1, 0) is signal_kept(moments, 1, 0) is None
    assert noise_kept(moments, 0, 1) == signal_kept(moments, 0, 1) == 0.0


# --- a bandit whose gradients can be enumerated ---


class Bandit:
    """A softmax policy over actions; each leaves the label with a posterior, by two judges."""

    def __init__(self, online, oracle, prior=0.1, chance=(0.5, 0.3, 0.2)):
        self.judged = {"run": np.asarray(online), "oracle": np.asarray(oracle)}
        self.prior, self.chance = prior, np.array(chance)

    def moments(self, arms, batch_size):
        score = np.eye(len(self.chance)) - self.chance
        gradients = []
        for arm in arms:
            log_q = np.log(self.judged[arm.judge])
            rewards = reward(arm.reward).of_log_posterior(np, log_q, np.log(self.prior) + 0 * log_q)
            gradients.append(score * (rewards - self.chance @ rewards)[:, None])
        g = np.array(gradients)
        mean = np.einsum("k,akp->ap", self.chance, g)
        signal = mean @ mean.T
        second = np.einsum("k,akp,bkp->ab", self.chance, g, g)
        return GradientMoments(signal, (second - signal) / batch_size)


def pair(name):
    return (Arm(name, "run"), Arm(name, "oracle"))


def test_a_bandit_that_is_sampled_is_the_one_that_is_enumerated():
    bandit, arms, size = Bandit([0.2, 0.4, 0.3], [0.1, 0.9, 0.5]), pair("log"), 4
    exact = bandit.moments(arms, size)
    rng, score = np.random.default_rng(0), np.eye(3) - bandit.chance
    rewards = [np.log(bandit.judged[arm.judge]) - np.log(0.1) for arm in arms]
    actions = rng.choice(3, p=bandit.chance, size=(20_000, size))
    g = np.stack([(score[actions] * (r - bandit.chance @ r)[actions][..., None]).mean(axis=1)
                  for r in rewards], axis=1)  # fmt: skip
    found = sampled(g).moments
    np.testing.assert_allclose(found.signal, exact.signal, rtol=0.05)
    np.testing.assert_allclose(found.noise, exact.noise, rtol=0.05)


def test_a_discriminator_that_is_the_oracle_adds_nothing_and_points_there_with_size():
    bandit = Bandit([0.2, 0.4, 0.3], [0.2, 0.4, 0.3])
    found = []
    for size in (1, 100, 10_000, 1_000_000):
        moments = bandit.moments(pair("clipped-log"), size)
        assert noise_added(moments, 0, 1) == pytest.approx(0.0, abs=1e-12)
        assert signal_kept(moments, 0, 1) == pytest.approx(1.0)
        assert noise_kept(moments, 0, 1) == pytest.approx(1.0)
        assert direction(moments, 0, 1) == pytest.approx(1.0)
        found.append(cosine(moments, 0, 1))
    assert found == sorted(found) and found[0] < 0.8 and found[-1] == pytest.approx(1.0, abs=1e-3)


def test_shrunk_posteriors_shrink_signal_and_noise_alike():
    """An ignorant discriminator that is not wrong: with a linear reward no ratio notices."""
    oracle = np.array([0.2, 0.9, 0.5])
    moments = Bandit(0.1 + 0.25 * (oracle - 0.1), oracle).moments(pair("linear"), 32)
    assert signal_kept(moments, 0, 1) == pytest.approx(0.25)
    assert noise_kept(moments, 0, 1) == pytest.approx(0.25)
    assert noise_added(moments, 0, 1) == pytest.approx(0.0, abs=1e-12)
    assert snr(moments, 0) == pytest.approx(snr(moments, 1))


SMOOTH = ("log", "root-2", "linear", "power-2", "power-6")


@pytest.mark.parametrize("centre", [0.15, 0.5])
def test_to_first_order_no_ratio_depends_on_the_shape(centre):
    """Posteriors that differ by h: ratios differ by O(h), though slopes differ a hundredfold."""
    worst = []
    for h in (1e-2, 1e-3, 1e-4):
        bandit = Bandit(centre + h * np.array([-1, 2, 0.5]), centre + h * np.array([-2, 3, 1.0]))
        ratios = []
        for name in SMOOTH:
            moments = bandit.moments(pair(name), 32)
            kept = signal_kept(moments, 0, 1) / noise_kept(moments, 0, 1)
            ratios.append(
                [snr(moments, 0), cosine(moments, 0, 1), noise_added(moments, 0, 1), kept]
            )
        worst.append((np.ptp(ratios, axis=0) / np.mean(ratios, axis=0)).max())
    assert worst[2] < 0.03 and worst[1] / worst[2] == pytest.approx(10.0, rel=0.2)


def test_far_from_first_order_it_does():
    """Clipped where the truth is below the prior; saturated where posteriors are near one."""
    below = Bandit([0.02, 0.15, 0.08], [0.09, 0.11, 0.05]).moments
    assert snr(below(pair("clipped-linear"), 32), 0) != pytest.approx(
        snr(below(pair("linear"), 32), 0), rel=0.1
    )
    wide = Bandit([0.001, 0.9, 0.3], [0.01, 0.95, 0.5]).moments
    log, linear = (snr(wide(pair(name), 32), 0) for name in ("log", "linear"))
    assert log != pytest.approx(linear, rel=0.1)


def test_arms_have_all_targets_once():
    arms = make_arms(("accuracy", "clipped-log"), as_trained="clipped-log")
    assert len(arms) == len(set(arms))
    assert {a.reward for a in arms if a.judge == "oracle"} == {"accuracy", "clipped-log", "log"}
    assert Arm("linear", "run") in arms and Arm("clipped-log", "run", True) in arms
