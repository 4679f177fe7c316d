"""Ensembles of discriminators: their mixture, and how much they disagree."""

from types import ModuleType

from irrl._accept import constant_log_probs, require_log_probs
from irrl._arrays import Array, has_values, namespace
from irrl.shapes import LOG_FLOOR


def disagreement(log_probs: Array, *, validate: bool = True) -> Array:
    """How much an ensemble disagrees, the DISDAIN bonus (Eq. 10), in nats.

    Entropy of the mean minus mean of the entropies.

    Args:
        log_probs: log-probabilities of N members, shape ``(N, ..., K)``.
        validate: check the values, as `reward` does.

    Returns:
        Numbers in ``[0, log N]``, shape ``(...)``; zero where all members agree.

    Example:
        >>> import numpy as np
        >>> apart = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])
        >>> with np.errstate(divide="ignore"):
        ...     disagreement(np.log(apart)).round(4).tolist()
        [0.6931]
    """
    xp = namespace(log_probs=log_probs)
    if log_probs.ndim < 2 or log_probs.shape[0] == 0:
        raise ValueError(f"log_probs must have shape (N, ..., K), got {tuple(log_probs.shape)}")
    require_log_probs(xp, "log_probs", log_probs)
    log_probs = constant_log_probs(xp, "log_probs", log_probs, validate and has_values(log_probs))
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
