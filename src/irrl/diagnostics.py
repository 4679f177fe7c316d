"""How a discriminator is doing: accuracy, certainty, calibration, and what it pays."""

import numpy as np

from irrl.rewards import LOG_FLOOR, Reward


def calibration_error(
    confidence: np.ndarray, correct: np.ndarray, share: np.ndarray, bins: int = 10
) -> float:
    """Expected calibration error: how far confidence and accuracy are apart, over bins.

    ``confidence[i]`` is claimed for a ``share[i]`` of all episodes, ``correct[i]`` of which are.
    """
    index = np.minimum((confidence * bins).astype(int), bins - 1)
    claimed = np.bincount(index, weights=confidence * share, minlength=bins)
    got = np.bincount(index, weights=correct, minlength=bins)
    return float(np.abs(claimed - got).sum())


def discriminator_health(
    log_probs: np.ndarray, labels: np.ndarray, paid: Reward, log_prior: np.ndarray | None = None
) -> dict[str, float]:
    """Figures of a sample of episodes, for log-probabilities (n, K); the prior is uniform if not
    given.
    """
    if log_prior is None:
        log_prior = np.full(log_probs.shape[1], -np.log(log_probs.shape[1]))
    log_probs = np.maximum(log_probs.astype(float), LOG_FLOOR)
    posterior = np.exp(log_probs)
    log_q = np.take_along_axis(log_probs, labels[:, None], axis=1)[:, 0]
    correct = log_probs.argmax(axis=1) == labels
    rewards = paid(log_probs, labels, log_prior)
    share = np.full(len(labels), 1.0 / len(labels))
    return {
        "discriminator_accuracy": 100.0 * float(correct.mean()),
        "discriminator_posterior": float(np.exp(log_q).mean()),
        "discriminator_log_posterior": float(log_q.mean()),
        "discriminator_entropy": float(-(posterior * log_probs).sum(axis=1).mean()),
        "discriminator_calibration_error": calibration_error(
            posterior.max(axis=1), correct * share, share
        ),
        "share_clipped": float((log_q <= log_prior[labels]).mean()),
        "reward_mean": float(rewards.mean()),
        "reward_deviation": float(rewards.std()),
    }
