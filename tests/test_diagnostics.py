import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from irrl.densities import Binned, Normal, Uniform
from irrl.diagnostics import (
    calibration_error,
    density_health,
    discriminator_health,
    pit_calibration_error,
    require_finite,
)
from irrl.errors import UserError
from irrl.rewards import reward

POSTERIOR = np.array([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.05, 0.05, 0.9], [0.5, 0.25, 0.25]])
LABELS = np.array([0, 1, 2, 2])


def test_health_of_a_known_sample():
    found = discriminator_health(np.log(POSTERIOR), LABELS, reward("clipped-linear"))
    q = np.array([0.7, 0.3, 0.9, 0.25])
    rewards = np.maximum(q - 1 / 3, 0)
    assert found["discriminator_accuracy_percent"] == 50.0
    assert found["discriminator_posterior"] == pytest.approx(q.mean())
    assert found["discriminator_log_posterior"] == pytest.approx(np.log(q).mean())
    assert found["share_clipped"] == 0.5
    assert found["reward_mean"] == pytest.approx(rewards.mean())
    assert found["reward_std"] == pytest.approx(rewards.std())
    entropy = -(POSTERIOR * np.log(POSTERIOR)).sum(axis=1).mean()
    assert found["discriminator_entropy"] == pytest.approx(entropy)


def test_a_prior_that_is_not_uniform():
    prior = np.array([0.6, 0.3, 0.1])
    posterior = np.array([prior, prior, [0.1, 0.1, 0.8], [0.5, 0.45, 0.05]])
    found = discriminator_health(np.log(posterior), LABELS, reward("linear"), np.log(prior))
    assert found["share_clipped"] == 0.75
    assert found["reward_mean"] == pytest.approx((0.0 + 0.0 + 0.7 - 0.05) / 4)


def test_arrays_of_all_libraries():
    log_probs = np.log(0.97 * POSTERIOR + 0.01)  # away from the edges of bins
    log_prior = np.log([0.5, 0.3, 0.2])
    wanted = discriminator_health(log_probs, LABELS, reward("log"), log_prior)
    logits = torch.tensor(log_probs, requires_grad=True)
    found = discriminator_health(
        torch.log_softmax(logits, -1), torch.tensor(LABELS), reward("log"), torch.tensor(log_prior)
    )
    assert found == pytest.approx(wanted)
    arrays = (jnp.asarray(x) for x in (log_probs, LABELS))
    assert discriminator_health(*arrays, reward("log"), jnp.asarray(log_prior)) == pytest.approx(
        wanted, rel=1e-5
    )
    half = torch.tensor(log_probs).bfloat16()
    found = discriminator_health(half, torch.tensor(LABELS), reward("log", validate=False))
    assert found["discriminator_accuracy_percent"] == 50.0


def test_certainty_and_impossibility_stay_finite():
    log_probs = np.array([[0.0, -np.inf], [0.0, -np.inf]])
    found = discriminator_health(log_probs, np.array([0, 1]), reward("clipped-log"))
    assert all(np.isfinite(value) for value in found.values())
    assert found["discriminator_calibration_error"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.full((2, 3), np.nan), np.array([0, 1])), "log_probs contains NaN"),
        ((np.log(POSTERIOR), LABELS[:3]), r"\(4, 3\) and \(3,\)"),
        ((np.log(POSTERIOR[0]), LABELS[0]), r"\(n, K\) and labels \(n,\)"),
        ((np.zeros((0, 3)), LABELS[:0]), "n at least 1"),
    ],
)
def test_bad_samples_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        discriminator_health(*arguments, reward("log", validate=False))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_a_calibrated_discriminator_has_no_calibration_error(claims):
    confidence, share = np.array(claims), np.full(len(claims), 1 / len(claims))
    assert calibration_error(confidence, confidence * share, share) == pytest.approx(0.0)


def test_calibration_against_a_sum_over_bins():
    confidence, share = np.array([0.25, 0.21, 0.95]), np.array([0.4, 0.2, 0.4])
    found = calibration_error(confidence, np.array([0.1, 0.1, 0.3]), share)
    assert found == pytest.approx(abs(0.1 + 0.042 - 0.2) + abs(0.38 - 0.3))


@pytest.mark.parametrize("confidence", [[0.5, np.nan], [0.5, 1.5], [0.5], [[0.5, 0.5]]])
def test_confidence_is_a_probability(confidence):
    with pytest.raises(ValueError, match="confidence"):
        calibration_error(confidence, [0.5, 0.5], [0.5, 0.5])


@pytest.mark.parametrize("make", [np.asarray, torch.asarray, jnp.asarray])
def test_training_that_diverged(make):
    require_finite(0)
    require_finite(3, make([1.0, 2.0]), make([1, 2]))
    for bad in (np.nan, np.inf):
        with pytest.raises(UserError, match=r"diverged before step 3: .*lower learning-rate"):
            require_finite(3, make([1.0]), make([[0.0, bad]]))


# --- densities ---


@pytest.mark.parametrize(
    ("std", "wanted"),
    [(1.0, 0.0), (1e6, 0.25), (1e-6, 0.25)],
    ids=["calibrated", "too wide", "too sure"],
)
@pytest.mark.parametrize("convert", [np.asarray, torch.tensor], ids=["numpy", "torch"])
def test_calibration_by_the_probability_integral_transform(std, wanted, convert):
    labels = np.random.default_rng(0).normal(size=(4000, 2))
    posterior = Normal(convert(np.zeros((4000, 2))), convert(np.full((4000, 2), std)))
    found = pit_calibration_error(posterior, convert(labels))
    np.testing.assert_allclose(found, wanted, atol=0.02)


def test_all_labels_above_a_density_are_as_far_from_calibrated_as_can_be():
    edges, log_probs = np.array([0.0, 0.5, 1.0]), np.log(np.full((10, 1, 2), [[1.0 - 1e-9, 1e-9]]))
    found = pit_calibration_error(Binned(log_probs, edges), np.full((10, 1), 0.75))
    np.testing.assert_allclose(found, 0.5, atol=1e-6)


def test_health_of_densities_is_in_units_of_the_prior():
    rng = np.random.default_rng(1)
    labels = rng.uniform(-1.0, 1.0, (5000, 2))
    error, unit = rng.normal(0.0, 0.2, labels.shape), 5.0
    found = [
        density_health(
            Normal(k * (labels + error), np.full(labels.shape, 0.2 * k)), k * labels,
            Uniform(-k, k), np.arange(5000.0),
        )
        for k in (1.0, unit)
    ]  # fmt: skip
    assert found[0]["discriminator_squared_error"] == pytest.approx(0.04 * 3, rel=0.05)
    assert found[0]["discriminator_crps"] == pytest.approx(0.2 * 3**0.5 / np.pi**0.5, rel=0.05)
    assert found[0]["share_clipped"] < 0.2 and found[0]["reward_mean"] == 2499.5
    for name in ("discriminator_squared_error", "discriminator_crps", "pit_calibration_error"):
        assert found[0][name] == pytest.approx(found[1][name], rel=1e-6)
    with pytest.raises(ValueError, match=r"labels must have shape \(n, D\)"):
        density_health(Normal(np.zeros(3), 1.0), np.zeros(3), Uniform(-1, 1), np.zeros(3))
