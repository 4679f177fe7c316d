import numpy as np
import pytest

from irrl.diagnostics import calibration_error, discriminator_health
from irrl.rewards import reward


def test_health_of_a_known_sample():
    posterior = np.array([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.05, 0.05, 0.9], [0.5, 0.25, 0.25]])
    labels = np.array([0, 1, 2, 2])
    found = discriminator_health(np.log(posterior), labels, reward("clipped-linear"))
    q = np.array([0.7, 0.3, 0.9, 0.25])
    paid = np.maximum(q - 1 / 3, 0)
    assert found["discriminator_accuracy"] == 50.0
    assert found["discriminator_posterior"] == pytest.approx(q.mean())
    assert found["discriminator_log_posterior"] == pytest.approx(np.log(q).mean())
    assert found["share_clipped"] == 0.5
    assert found["reward_mean"] == pytest.approx(paid.mean())
    assert found["reward_deviation"] == pytest.approx(paid.std())
    entropy = -(posterior * np.log(posterior)).sum(axis=1).mean()
    assert found["discriminator_entropy"] == pytest.approx(entropy)


def test_a_prior_that_is_not_uniform():
    prior = np.array([0.6, 0.3, 0.1])
    labels = np.array([0, 1, 2, 2])
    posterior = np.array([prior, prior, [0.1, 0.1, 0.8], [0.5, 0.45, 0.05]])
    found = discriminator_health(np.log(posterior), labels, reward("linear"), np.log(prior))
    assert found["share_clipped"] == 0.75
    assert found["reward_mean"] == pytest.approx((0.0 + 0.0 + 0.7 - 0.05) / 4)


def test_certainty_and_impossibility_stay_finite():
    log_probs = np.array([[0.0, -np.inf], [0.0, -np.inf]])
    found = discriminator_health(log_probs, np.array([0, 1]), reward("clipped-log"))
    assert all(np.isfinite(value) for value in found.values())
    assert found["discriminator_calibration_error"] == pytest.approx(0.5)


def test_a_calibrated_discriminator_has_no_calibration_error():
    confidence, share = np.array([0.25, 0.75]), np.array([0.4, 0.6])
    assert calibration_error(confidence, confidence * share, share) == pytest.approx(0.0)
