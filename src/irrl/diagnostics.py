"""How a discriminator is doing: accuracy, certainty, calibration, and the rewards it gives."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from irrl._accept import LARGEST
from irrl._arrays import Array, to_numpy
from irrl.densities import Density
from irrl.errors import UserError
from irrl.rewards import LOG_FLOOR, Reward


def calibration_error(
    confidence: ArrayLike, correct: ArrayLike, share: ArrayLike, bins: int = 10
) -> float:
    """Expected calibration error: how far confidence and accuracy are apart, over bins.

    Args:
        confidence: what is claimed for some of the episodes, shape ``(n,)``.
        correct: the share of all episodes that are among these and correct, shape ``(n,)``.
        share: the share of all episodes that are among these, shape ``(n,)``.
        bins: of equal width.

    Returns:
        A number in ``[0, 1]``.

    Example:
        >>> round(calibration_error([0.9, 0.9], [0.5, 0.0], [0.5, 0.5]), 6)
        0.4
    """
    confidence, correct, share = (np.asarray(x, dtype=float) for x in (confidence, correct, share))
    if not confidence.ndim == 1 or not confidence.shape == correct.shape == share.shape:
        raise ValueError(
            "confidence, correct and share must have one shape (n,), got "
            f"{confidence.shape}, {correct.shape}, {share.shape}"
        )
    if not np.all((confidence >= 0.0) & (confidence <= 1.0 + 1e-6)):
        raise ValueError("confidence must hold probabilities")
    index = np.minimum((confidence * bins).astype(int), bins - 1)
    claimed = np.bincount(index, weights=confidence * share, minlength=bins)
    got = np.bincount(index, weights=correct, minlength=bins)
    return float(np.abs(claimed - got).sum())


def discriminator_health(
    log_probs: Array, labels: Array, reward_fn: Reward, log_prior: Array | None = None
) -> dict[str, float]:
    """Metrics of a sample of episodes. Arrays of any library, from any device.

    Args:
        log_probs: log-probabilities after each episode, shape ``(n, K)``.
        labels: integers in ``0..K-1``, shape ``(n,)``.
        reward_fn: what the rewards are computed with.
        log_prior: shape ``(K,)``; uniform if not given.

    Returns:
        ``discriminator_accuracy_percent``; the posterior of the label and its logarithm, the
        entropy in nats and the calibration error, all means over the sample;
        ``share_clipped``, that of labels no more likely than before; ``reward_mean`` and
        ``reward_std``.

    Example:
        >>> import irrl, numpy as np
        >>> log_probs, labels = np.log([[0.75, 0.25], [0.75, 0.25]]), np.array([0, 1])
        >>> health = discriminator_health(log_probs, labels, irrl.reward("clipped-linear"))
        >>> health["discriminator_accuracy_percent"], health["reward_mean"]
        (50.0, 0.125)
    """
    log_probs, labels = to_numpy(log_probs), to_numpy(labels)
    if log_probs.ndim != 2 or labels.shape != log_probs.shape[:1] or not labels.size:
        raise ValueError(
            "log_probs must have shape (n, K) and labels (n,), with n at least 1: got "
            f"{log_probs.shape} and {labels.shape}"
        )
    if np.isnan(log_probs).any():
        raise ValueError("log_probs contains NaN")
    if log_prior is None:
        log_prior = np.full(log_probs.shape[1], -np.log(log_probs.shape[1]))
    log_prior = to_numpy(log_prior)
    log_probs = np.maximum(log_probs.astype(float), LOG_FLOOR)
    posterior = np.exp(log_probs)
    rewards: NDArray[Any] = reward_fn(log_probs, labels, log_prior)
    log_q = np.take_along_axis(log_probs, labels[:, None], axis=1)[:, 0]
    correct = log_probs.argmax(axis=1) == labels
    share = np.full(len(labels), 1.0 / len(labels))
    return {
        "discriminator_accuracy_percent": 100.0 * float(correct.mean()),
        "discriminator_posterior": float(np.exp(log_q).mean()),
        "discriminator_log_posterior": float(log_q.mean()),
        "discriminator_entropy": float(-(posterior * log_probs).sum(axis=1).mean()),
        "discriminator_calibration_error": calibration_error(
            posterior.max(axis=1), correct * share, share
        ),
        "share_clipped": float((log_q <= log_prior[labels]).mean()),
        "reward_mean": float(rewards.mean()),
        "reward_std": float(rewards.std()),
    }


def pit_calibration_error(
    posterior: Density, labels: Array, *, validate: bool = True
) -> NDArray[np.float64]:
    """Calibration of densities by the probability integral transform, for each dimension.

    Of a calibrated density the share of its mass below the label is uniform on ``[0, 1]``. The
    error is the mean distance between the sorted shares and those of a uniform sample (the
    Wasserstein distance): 0 where they agree, 1/4 where all labels lie in the middle of too wide
    or at both ends of too narrow densities, at most 1/2.

    Args:
        posterior: of n labels, a `Normal` or a `Binned`.
        labels: shape ``(n, D)``.
        validate: check the values, as `irrl.density_reward` does.

    Returns:
        Shape ``(D,)``.

    Example:
        >>> from irrl.densities import Normal
        >>> labels = np.random.default_rng(0).normal(size=(1000, 1))
        >>> centre = np.zeros((1000, 1))
        >>> pit_calibration_error(Normal(centre, np.ones((1000, 1))), labels).round(2).tolist()
        [0.02]
        >>> pit_calibration_error(Normal(centre, np.full((1000, 1), 9.0)), labels).round(1).tolist()
        [0.2]
    """
    densities, y = _as_numpy(posterior, labels, validate)
    below = np.sort(densities.mass(np, np.full_like(y, -LARGEST), y), axis=0)
    uniform = (np.arange(len(y)) + 0.5) / len(y)
    return np.asarray(np.abs(below - uniform[:, None]).mean(axis=0), np.float64)


def density_health(
    posterior: Density, labels: Array, prior: Density, rewards: Array
) -> dict[str, float]:
    """The same for a reward model of continuous labels, by its densities.

    Args:
        posterior: after each episode, a `Normal` or a `Binned` for n labels.
        labels: shape ``(n, D)``.
        prior: their distribution before anything was seen.
        rewards: that were found for them, shape ``(n,)``.

    Returns:
        ``discriminator_squared_error``, that of means in prior variances (a blind guess has 1);
        ``discriminator_crps`` in prior standard deviations, both means over dimensions;
        ``discriminator_log_density`` in nats, a sum over dimensions; ``pit_calibration_error``;
        ``share_clipped``, that of labels no denser than before; ``reward_mean``, ``reward_std``.

    Example:
        >>> from irrl.densities import Normal, Uniform
        >>> posterior = Normal(np.zeros((2, 1)), np.full((2, 1), 0.5))
        >>> labels = np.array([[0.5], [-0.5]])
        >>> health = density_health(posterior, labels, Uniform(-1.0, 1.0), np.zeros(2))
        >>> round(health["discriminator_squared_error"], 4)
        0.75
    """
    q, y = _as_numpy(posterior, labels, True)
    p = prior.accept(np, "prior", y, True)
    std = p.spread(np)
    log_q, log_p = q.log_density(np, y).sum(axis=-1), p.log_density(np, y).sum(axis=-1)
    found = to_numpy(rewards)
    return {
        "discriminator_squared_error": float((((q.centre(np) - y) / std) ** 2).mean()),
        "discriminator_crps": float((q.crps(np, y) / std).mean()),
        "discriminator_log_density": float(log_q.mean()),
        "pit_calibration_error": float(pit_calibration_error(q, y, validate=False).mean()),
        "share_clipped": float((log_q <= log_p).mean()),
        "reward_mean": float(found.mean()),
        "reward_std": float(found.std()),
    }


def _as_numpy(posterior: Density, labels: Array, validate: bool) -> tuple[Density, NDArray[Any]]:
    """A density and labels of any library as arrays of NumPy."""
    y = to_numpy(labels).astype(float)
    if y.ndim != 2 or not y.size:
        raise ValueError(f"labels must have shape (n, D), with n at least 1, got {y.shape}")
    arrays = {name: to_numpy(array).astype(float) for name, array in posterior.arrays().items()}
    return type(posterior)(**arrays).accept(np, "posterior", y, validate), y


def require_finite(step: int, *arrays: Array) -> None:
    """Stop a training whose numbers are not all finite.

    Args:
        step: how far it has come.
        *arrays: of any library, any shape.

    Returns:
        Nothing.

    Raises:
        UserError: one line that says what to do.

    Example:
        >>> import numpy as np
        >>> require_finite(7, np.array([0.0, np.nan]))
        Traceback (most recent call last):
            ...
        irrl.errors.UserError: training diverged before step 7: not all numbers are finite; \
lower learning-rate and start anew
    """
    if not all(np.isfinite(to_numpy(x)).all() for x in arrays):
        raise UserError(
            f"training diverged before step {step}: not all numbers are finite; "
            "lower learning-rate and start anew"
        )
