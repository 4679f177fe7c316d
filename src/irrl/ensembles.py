"""Ensembles of discriminators: their mixture, and how much they disagree."""

from types import ModuleType

from irrl._accept import constant_log_probs, require_log_probs
from irrl._arrays import Array, has_values, namespace
from irrl.errors import unknown_name
from irrl.shapes import LOG_FLOOR

KINDS = ("log", "quadratic")
"""The scores whose disagreement there is."""


def disagreement(log_probs: Array, kind: str = "log", *, validate: bool = True) -> Array:
    """How much an ensemble disagrees: the Jensen gap of a score's entropy.

    Entropy of the mean minus mean of the entropies. If the truth is one of the members, each as
    likely, it is what a policy loses by being paid for the mean instead of the truth.

    Args:
        log_probs: log-probabilities of N members, shape ``(N, ..., K)``.
        kind: ``"log"``, with Shannon's entropy in nats: the DISDAIN bonus (Eq. 10).
            ``"quadratic"``, with the entropy ``1 - sum q^2`` of the Brier score: the sum over
            labels of the variance over members.
        validate: check the values, as `reward` does.

    Returns:
        Numbers in ``[0, log N]`` or ``[0, 1 - 1/N]``, shape ``(...)``; zero where all agree.

    Raises:
        ValueError: for log-probabilities of the wrong type, shape or values, or another kind.

    Example:
        >>> import numpy as np
        >>> apart = np.log([[[0.8, 0.2]], [[0.2, 0.8]]])
        >>> disagreement(apart).round(4).tolist()
        [0.1927]
        >>> disagreement(apart, "quadratic").round(4).tolist()
        [0.18]
    """
    if kind not in KINDS:
        raise ValueError(unknown_name("kind of disagreement", kind, KINDS))
    xp = namespace(log_probs=log_probs)
    if log_probs.ndim < 2 or log_probs.shape[0] == 0:
        raise ValueError(f"log_probs must have shape (N, ..., K), got {tuple(log_probs.shape)}")
    require_log_probs(xp, "log_probs", log_probs)
    log_probs = constant_log_probs(xp, "log_probs", log_probs, validate and has_values(log_probs))
    if kind == "quadratic":
        probs = xp.exp(log_probs)
        return xp.sum(xp.mean((probs - xp.mean(probs, axis=0)) ** 2, axis=0), axis=-1)
    return mutual_information(xp, log_probs, log_mean_exp(xp, log_probs))


def log_mean_exp(xp: ModuleType, log_probs: Array) -> Array:
    """Log of the mean probability over the leading axis: an ensemble read as its mixture.

    Args:
        xp: the library of the array.
        log_probs: shape ``(N, ...)``.

    Returns:
        Shape ``(...)``.

    Example:
        >>> import numpy as np
        >>> np.exp(log_mean_exp(np, np.log([[0.9, 0.1], [0.3, 0.7]]))).round(6).tolist()
        [0.6, 0.4]
    """
    top = xp.maximum(xp.max(log_probs, axis=0), LOG_FLOOR)
    mean = xp.mean(xp.exp(log_probs - top), axis=0)
    return xp.log(xp.maximum(mean, xp.finfo(mean.dtype).smallest_normal)) + top


def mutual_information(xp: ModuleType, log_probs: Array, mixture: Array) -> Array:
    """Disagreement of members whose mixture is at hand; nothing is checked.

    Args:
        xp: the library of the arrays.
        log_probs: log-probabilities of N members, shape ``(N, ..., K)``.
        mixture: their `log_mean_exp`, shape ``(..., K)``.

    Returns:
        Mutual information of label and member, in nats, shape ``(...)``.

    Example:
        >>> import numpy as np
        >>> members = np.log([[0.9, 0.1], [0.3, 0.7]])
        >>> round(float(mutual_information(np, members, log_mean_exp(np, members))), 4)
        0.205
    """
    return xp.maximum(_entropy(xp, mixture) - xp.mean(_entropy(xp, log_probs), axis=0), 0.0)


def _entropy(xp: ModuleType, log_probs: Array) -> Array:
    return -xp.sum(xp.exp(log_probs) * xp.maximum(log_probs, LOG_FLOOR), axis=-1)
