"""What a reward accepts: shapes and types always, values where they can be looked at. Not public.

Every refusal is a `ValueError` of one line that names the argument.
"""

from types import ModuleType
from typing import Any, NamedTuple

import array_api_compat as api
import numpy as np

from irrl._arrays import (
    Array,
    has_values,
    is_array,
    is_floating,
    is_torch,
    namespace,
    without_gradient,
)
from irrl.shapes import LOG_FLOOR

SMALLEST, LARGEST = 1e-12, 1e12
"""Scales and sizes of continuous labels: between these all is finite in single precision."""
LARGEST_LABEL = 2**31 - 1


class Accepted(NamedTuple):
    """The library of the arrays, and the arguments of a reward, checked and without gradient.

    Attributes:
        xp: the library.
        log_probs: in single precision at least.
        labels: as indices, all of them in range.
        log_prior: above the floor; None if it was not given.
        known: where labels are what was given; None if their values were checked.
    """

    xp: ModuleType
    log_probs: Array
    labels: Array
    log_prior: Array | None
    known: Array | None


def accept(
    log_probs: Array, labels: Any, log_prior: Any, *, ensemble: bool, validate: bool
) -> Accepted:
    """The arguments of a reward, or a ValueError."""
    xp = namespace(log_probs=log_probs)
    require_log_probs(xp, "log_probs", log_probs)
    labels = as_labels(xp, labels, log_probs)
    require_shapes(tuple(log_probs.shape), tuple(labels.shape), ensemble)
    validate = validate and has_values(log_probs) and has_values(labels)
    if log_prior is not None:
        log_prior = as_array(xp, "log_prior", log_prior, log_probs)
        validate = validate and has_values(log_prior)
    log_probs = constant_log_probs(xp, "log_probs", log_probs, validate)
    classes = log_probs.shape[-1]
    known = (labels >= 0) & (labels < classes)
    if validate and not bool(xp.all(known)):
        raise ValueError(f"labels must lie in 0..{classes - 1}")
    if not validate:
        labels = xp.where(known, labels, xp.zeros_like(labels))
    if log_prior is not None:
        log_prior = accept_prior(xp, log_prior, log_probs, labels, validate)
    return Accepted(xp, log_probs, labels, log_prior, None if validate else known)


def require_shapes(log_probs: tuple[int, ...], labels: tuple[int, ...], ensemble: bool) -> None:
    """Refuse labels that do not fit; an ensemble is said, not guessed."""
    if ensemble:
        if len(log_probs) < 2 or log_probs[0] == 0 or log_probs[1:-1] != labels:
            raise ValueError(
                "log_probs must have a leading ensemble axis, shape (N, *labels.shape, K): "
                f"got log_probs {log_probs} and labels {labels}"
            )
    elif log_probs[:-1] != labels:
        raise ValueError(
            f"labels must have shape {log_probs[:-1]} for log_probs of shape {log_probs}, "
            f"got {labels}; pass ensemble=True if log_probs has a leading ensemble axis"
        )


def accept_prior(
    xp: ModuleType, log_prior: Array, log_probs: Array, labels: Array, validate: bool
) -> Array:
    """The prior in the type of the log-probabilities, above the floor."""
    if tuple(log_prior.shape) != (log_probs.shape[-1],):
        raise ValueError(
            f"log_prior must have shape ({log_probs.shape[-1]},) for log_probs of shape "
            f"{tuple(log_probs.shape)}, got {tuple(log_prior.shape)}"
        )
    require_log_probs(xp, "log_prior", log_prior)
    log_prior = constant_log_probs(xp, "log_prior", log_prior, validate)
    log_prior = xp.astype(log_prior, log_probs.dtype)
    if validate:
        chosen = xp.take(log_prior, xp.reshape(labels, (-1,)), axis=0)
        if bool(xp.any(xp.isinf(chosen))):
            raise ValueError("log_prior gives probability 0 to a label that occurs in labels")
    return xp.maximum(log_prior, LOG_FLOOR)


def as_array(xp: ModuleType, name: str, x: Any, like: Array, like_name: str = "log_probs") -> Array:
    """An argument as an array of the library and device of another.

    Beside log-probabilities it must be of their library; beside densities, whose edges and priors
    are constants, another one will do.
    """
    if isinstance(x, np.ma.MaskedArray):
        raise ValueError(f"{name} must not be a masked array; give what is not masked")
    if like_name == "log_probs" and is_array(x) and namespace(**{name: x}) is not xp:
        raise ValueError(
            f"{name} must be an array of the same library as log_probs, got {type(x).__module__}."
            f"{type(x).__name__}"
        )
    try:
        return xp.asarray(x, device=like.device if is_torch(like) else api.device(like))
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        said = str(error).partition("\n")[0]
        raise ValueError(f"{name} must be an array like {like_name}: {said}") from None


def as_labels(xp: ModuleType, labels: Any, like: Array) -> Array:
    """Labels as indices: wide enough to compare with K, and what torch wants."""
    if not is_array(labels) and not isinstance(labels, np.ma.MaskedArray):
        _require_small(labels)
    labels = as_array(xp, "labels", labels, like)
    if not xp.isdtype(labels.dtype, "integral") and 0 not in labels.shape:
        raise ValueError(f"labels must be integers, got {labels.dtype}")
    is_wide = not api.is_jax_namespace(xp) or xp.iinfo(labels.dtype).bits == 64
    return xp.astype(labels, xp.int64 if is_wide else xp.int32)


def _require_small(labels: Any) -> None:
    """Refuse Python numbers that an array of indices would wrap around."""
    try:
        values = np.asarray(labels)
    except (TypeError, ValueError, OverflowError):
        return  # told by whoever makes an array of them
    if values.dtype.kind == "O" or (
        values.dtype.kind in "iu" and values.size and int(np.abs(values).max()) > LARGEST_LABEL
    ):
        raise ValueError(f"labels must be integers of at most {LARGEST_LABEL}")


def require_log_probs(xp: ModuleType, name: str, log_probs: Array) -> None:
    """Refuse an array that cannot be log-probabilities for its type or its shape."""
    if log_probs.ndim == 0 or log_probs.shape[-1] == 0 or not is_floating(xp, log_probs):
        raise ValueError(
            f"{name} must be a floating array of shape (..., K), "
            f"got {log_probs.dtype} of shape {tuple(log_probs.shape)}"
        )


def constant_log_probs(xp: ModuleType, name: str, log_probs: Array, validate: bool) -> Array:
    """Log-probabilities without gradient, in single precision at least, their values checked."""
    log_probs = without_gradient(log_probs)
    tolerance = 1e-3
    if xp.finfo(log_probs.dtype).bits < 32:
        log_probs, tolerance = xp.astype(log_probs, xp.float32), 5e-2
    if not validate:
        return log_probs
    if bool(xp.any(xp.isnan(log_probs))):
        raise ValueError(f"{name} contains NaN")
    if bool(xp.any(log_probs > tolerance)):
        raise ValueError(
            f"{name} must be log-probabilities, at most 0; apply log_softmax to logits first"
        )
    sums = xp.sum(xp.exp(log_probs), axis=-1)
    if bool(xp.any(xp.abs(sums - 1.0) > tolerance)):
        raise ValueError(
            f"{name} must be log-probabilities whose exponentials sum to 1 over the last "
            "axis; apply log_softmax to logits first"
        )
    return log_probs


def as_numbers(xp: ModuleType, name: str, x: Any, like: Array, validate: bool) -> Array:
    """Finite numbers of the type of an array, in single precision at least, without gradient."""
    x = as_array(xp, name, without_gradient(x), like, "the others")
    if not (is_floating(xp, x) or xp.isdtype(x.dtype, "integral")):
        raise ValueError(f"{name} must hold real numbers, got {x.dtype}")
    floating = is_floating(xp, like) and xp.finfo(like.dtype).bits >= 32
    x = xp.astype(x, like.dtype if floating else xp.float32)
    if validate and has_values(x) and not bool(xp.all(xp.abs(x) <= LARGEST)):
        raise ValueError(f"{name} must be finite, at most {LARGEST:g} in size")
    return xp.clip(x, -LARGEST, LARGEST)


def require_edges(
    xp: ModuleType, name: str, edges: Array, *, bins: int | None = None, validate: bool
) -> None:
    """Refuse edges that do not make so many bins, or do not increase."""
    wanted = "(..., B + 1)" if bins is None else f"(..., {bins + 1})"
    if edges.ndim == 0 or edges.shape[-1] < 2 or bins not in (None, edges.shape[-1] - 1):
        raise ValueError(f"{name} must have shape {wanted}, got {tuple(edges.shape)}")
    widths = edges[..., 1:] - edges[..., :-1]
    if validate and has_values(edges) and bool(xp.any(widths < SMALLEST)):
        raise ValueError(f"{name} must increase, by at least {SMALLEST:g}")
