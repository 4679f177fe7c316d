"""Every reward of the paper, once: what a policy is paid for a discriminator's posterior.

A reward compares the posterior ``q(y | trajectory)`` of the true label with its prior ``p(y)``.
``reward(name)`` returns a callable ``(log_probs, labels, log_prior=None) -> rewards`` for

* ``log_probs``: log-probabilities, shape ``(..., K)``; an ensemble adds a leading axis,
  ``(N, ..., K)``, and is read as the mixture of its members,
* ``labels``: integers in ``0..K-1``, shape ``(...)``,
* ``log_prior``: shape ``(K,)``, uniform if not given.

NumPy, PyTorch and JAX arrays work alike. No gradient passes through a reward. Results are
finite: a log-probability below ``LOG_FLOOR`` (that of an impossible label is minus infinity)
counts as ``LOG_FLOOR``, and likelihood ratios saturate at ``exp(±RATIO_LIMIT)``.

Adding a reward is one function of ``(xp, log_q, log_p)`` and one entry in ``_POSTERIOR_SHAPES``.
The functions are written so that Numba can compile them too (with ``xp`` = NumPy).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import array_api_compat as api

from irrl.errors import unknown_name

Array = Any
Shape = Callable[[ModuleType, Array, Array], Array]

LOG_FLOOR = -1e4
RATIO_LIMIT = 80.0  # exp(80) is finite in single precision, and so is 80 * exp(80)
DISDAIN_BONUS_WEIGHT = 20.0


# --- shapes of the posterior: (xp, log q(y|trajectory), log p(y)) -> reward -------------------


def log_gain(xp: ModuleType, log_q: Array, log_p: Array) -> Array:
    return log_q - log_p


def linear_gain(xp: ModuleType, log_q: Array, log_p: Array) -> Array:
    return xp.exp(log_q) - xp.exp(log_p)


def exp_gain(xp: ModuleType, log_q: Array, log_p: Array) -> Array:
    return xp.exp(xp.exp(log_q)) - xp.exp(xp.exp(log_p))


def log1p_gain(xp: ModuleType, log_q: Array, log_p: Array) -> Array:
    return xp.log1p(xp.exp(log_q)) - xp.log1p(xp.exp(log_p))


def power_gain(exponent: float) -> Shape:
    """The shape ``q^exponent - p^exponent``; exponents below one are roots."""
    if not exponent > 0:
        raise ValueError(f"exponent must be positive, got {exponent}: only then is g increasing")

    def gain(xp: ModuleType, log_q: Array, log_p: Array) -> Array:
        return xp.exp(exponent * log_q) - xp.exp(exponent * log_p)

    return gain


# The f-mutual-information rewards are F(x) = (f(x) + f(0) (x - 1)) / x at x = q/p: of all f that
# give the same divergence, the one with f(0) = 0. Its F is increasing in q, and its expectation
# is the divergence even where the joint has zeros. `irrl.divergences` has each f.


def chi2_gain(xp: ModuleType, log_q: Array, log_p: Array) -> Array:
    return xp.expm1(xp.minimum(log_q - log_p, RATIO_LIMIT))


def total_variation_gain(xp: ModuleType, log_q: Array, log_p: Array) -> Array:
    return -xp.expm1(-xp.maximum(log_q - log_p, 0.0))


def hellinger_gain(xp: ModuleType, log_q: Array, log_p: Array) -> Array:
    return -2.0 * xp.expm1(xp.minimum(0.5 * (log_p - log_q), RATIO_LIMIT))


def le_cam_gain(xp: ModuleType, log_q: Array, log_p: Array) -> Array:
    return 0.5 * xp.tanh(0.5 * (log_q - log_p))


def jensen_shannon_gain(xp: ModuleType, log_q: Array, log_p: Array) -> Array:
    ratio = log_q - log_p
    softplus = xp.maximum(ratio, 0.0) + xp.log1p(xp.exp(-xp.abs(ratio)))
    near = xp.maximum(ratio, -RATIO_LIMIT)  # below it, log(1 + x) / x is 1 to the last digit
    near_softplus = xp.maximum(near, 0.0) + xp.log1p(xp.exp(-xp.abs(near)))
    return ratio - softplus - near_softplus * xp.exp(-near) + 2.0 * math.log(2.0)


def reverse_kl_gain(xp: ModuleType, log_q: Array, log_p: Array) -> Array:
    inverse_ratio = xp.minimum(log_p - log_q, RATIO_LIMIT)
    return inverse_ratio * xp.exp(inverse_ratio)


def clip_at_prior(xp: ModuleType, gain: Array) -> Array:
    """Zero below the prior. For increasing g this is ``g(max(q, p)) - g(p)`` (Eq. 8)."""
    return xp.maximum(gain, 0.0)


# --- the named rewards ---

# name -> (shape, formula, lower end of the range, upper end)
_POSTERIOR_SHAPES: dict[str, tuple[Shape, str, str, str]] = {
    "log": (log_gain, "log q - log p", "-inf", "-log p"),
    "root-4": (power_gain(1 / 4), "q^(1/4) - p^(1/4)", "-p^(1/4)", "1-p^(1/4)"),
    "root-2": (power_gain(1 / 2), "q^(1/2) - p^(1/2)", "-p^(1/2)", "1-p^(1/2)"),
    "log1p": (log1p_gain, "log(1+q) - log(1+p)", "-log(1+p)", "log(2/(1+p))"),
    "linear": (linear_gain, "q - p", "-p", "1-p"),
    "exp": (exp_gain, "exp q - exp p", "1-exp p", "e-exp p"),
    "power-2": (power_gain(2), "q^2 - p^2", "-p^2", "1-p^2"),
    "power-3": (power_gain(3), "q^3 - p^3", "-p^3", "1-p^3"),
    "power-4": (power_gain(4), "q^4 - p^4", "-p^4", "1-p^4"),
    "power-6": (power_gain(6), "q^6 - p^6", "-p^6", "1-p^6"),
    "f-kl": (log_gain, "log(q/p)", "-inf", "-log p"),
    "f-chi2": (chi2_gain, "q/p - 1", "-1", "1/p-1"),
    "f-total-variation": (total_variation_gain, "max(1 - p/q, 0)", "0", "1-p"),
    "f-hellinger": (hellinger_gain, "2 - 2 (p/q)^(1/2)", "-inf", "2-2p^(1/2)"),
    "f-le-cam": (le_cam_gain, "(q-p) / (2q+2p)", "-1/2", "(1-p)/(2+2p)"),
    "f-jensen-shannon": (
        jensen_shannon_gain,
        "log(2q/(q+p)) + (p/q) log(2p/(q+p)) + (1-p/q) log 2",
        "-inf",
        "2log2-(1+p)log(1+p)+p log p",
    ),
    "f-reverse-kl": (reverse_kl_gain, "(p/q) log(p/q)", "-1/e", "inf"),
}


@dataclass(frozen=True)
class Reward:
    """A named reward. Call it with ``(log_probs, labels, log_prior=None)``.

    ``shape`` is None where the reward is not a function of the label's posterior alone:
    ``accuracy`` looks at the most probable label, ``disdain`` at an ensemble.
    """

    name: str
    formula: str
    range: str
    shape: Shape | None = None
    clipped: bool = False
    bonus_weight: float = 0.0
    validate: bool = True

    @property
    def needs_ensemble(self) -> bool:
        return self.bonus_weight > 0

    @property
    def has_kink(self) -> bool:
        """Whether the slope jumps at the prior."""
        return self.clipped or self.shape is total_variation_gain

    def __reduce__(self) -> tuple[Any, ...]:
        # The shapes made by `power_gain` cannot be pickled: those of the library go by name.
        named = REWARDS.get(self.name)
        by_name = named is not None and named.shape is self.shape
        return _restore, ({**vars(self), "shape": None if by_name else self.shape},)

    def gain(self, xp: ModuleType, log_q: Array, log_p: Array) -> Array:
        """The reward for a label of posterior ``exp(log_q)`` and prior ``exp(log_p)``."""
        if self.shape is None:
            raise ValueError(f"reward {self.name!r} is not a function of the label's posterior")
        value = self.shape(xp, xp.maximum(log_q, LOG_FLOOR), log_p)
        return clip_at_prior(xp, value) if self.clipped else value

    def __call__(self, log_probs: Array, labels: Array, log_prior: Array | None = None) -> Array:
        xp, log_probs, labels, log_prior = _accept(log_probs, labels, log_prior, self.validate)
        is_ensemble = log_probs.ndim == labels.ndim + 2
        if self.needs_ensemble and not is_ensemble:
            raise ValueError(
                f"log_probs must have a leading ensemble axis for reward {self.name!r}: "
                f"expected shape (N, *{tuple(labels.shape)}, K), got {tuple(log_probs.shape)}"
            )
        mixture = log_mean_exp(xp, log_probs) if is_ensemble else log_probs
        if self.shape is None:
            return xp.astype(xp.argmax(mixture, axis=-1) == labels, mixture.dtype)
        log_q = xp.take_along_axis(mixture, labels[..., None], axis=-1)[..., 0]
        if log_prior is None:
            log_p = xp.zeros_like(log_q) - math.log(mixture.shape[-1])
        else:
            log_p = xp.reshape(xp.take(log_prior, xp.reshape(labels, (-1,)), axis=0), labels.shape)
        rewards = self.gain(xp, log_q, log_p)
        if self.needs_ensemble:
            rewards = rewards + self.bonus_weight * _disagreement(xp, log_probs, mixture)
        return rewards


def _named_rewards() -> dict[str, Reward]:
    rewards = {"accuracy": Reward("accuracy", "1 if argmax q = y else 0", "{0, 1}")}
    for name, (shape, formula, low, high) in _POSTERIOR_SHAPES.items():
        rewards[name] = Reward(name, formula, f"[{low}, {high}]", shape)
        if name in ("f-total-variation", "f-reverse-kl"):
            continue  # the one is clipped already, the other does not increase with q
        rewards[f"clipped-{name}"] = Reward(
            f"clipped-{name}", f"max({formula}, 0)", f"[0, {high}]", shape, clipped=True
        )
    rewards["disdain"] = Reward(
        "disdain",
        "max(log q - log p, 0) + w (H[mean_i q_i] - mean_i H[q_i])",
        "[0, -log p + w log N]",
        log_gain,
        clipped=True,
        bonus_weight=DISDAIN_BONUS_WEIGHT,
    )
    return rewards


REWARDS: dict[str, Reward] = _named_rewards()


def reward(name: str, *, validate: bool = True) -> Reward:
    """Return the reward of this name; ``irrl rewards`` lists them.

    Args:
        name: such as ``"clipped-linear"``.
        validate: check the values on each call (NaN, sums, ranges). Switch it off in a hot loop
            or on an accelerator, where looking at values costs a synchronisation. Shapes and
            types are always checked; under ``jax.jit`` and ``torch.compile`` only those can be.
    """
    if not isinstance(name, str) or name not in REWARDS:
        raise ValueError(unknown_name("reward", name, REWARDS))
    found = REWARDS[name]
    return found if validate else replace(found, validate=False)


def _restore(fields: dict[str, Any]) -> Reward:
    restored = Reward(**fields)
    named = REWARDS.get(restored.name)
    return restored if named is None or restored.shape else replace(restored, shape=named.shape)


def disagreement(log_probs: Array, *, validate: bool = True) -> Array:
    """How much an ensemble disagrees, the DISDAIN bonus (Eq. 10), in nats.

    Entropy of the mean minus mean of the entropies, for ``log_probs`` of shape ``(N, ..., K)``.
    Lies in ``[0, log N]`` and is zero where all members agree.
    """
    xp = _namespace("log_probs", log_probs)
    if log_probs.ndim < 2 or log_probs.shape[0] == 0:
        raise ValueError(f"log_probs must have shape (N, ..., K), got {tuple(log_probs.shape)}")
    log_probs = _accept_log_probs(xp, "log_probs", log_probs, validate and _has_values(log_probs))
    return _disagreement(xp, log_probs, log_mean_exp(xp, log_probs))


def _disagreement(xp: ModuleType, log_probs: Array, mixture: Array) -> Array:
    return xp.maximum(_entropy(xp, mixture) - xp.mean(_entropy(xp, log_probs), axis=0), 0.0)


def _entropy(xp: ModuleType, log_probs: Array) -> Array:
    return -xp.sum(xp.exp(log_probs) * xp.maximum(log_probs, LOG_FLOOR), axis=-1)


def log_mean_exp(xp: ModuleType, log_probs: Array) -> Array:
    """Log of the mean probability over the leading axis."""
    top = xp.maximum(xp.max(log_probs, axis=0), LOG_FLOOR)
    mean = xp.mean(xp.exp(log_probs - top), axis=0)
    return xp.log(xp.maximum(mean, xp.finfo(mean.dtype).smallest_normal)) + top


# --- what is accepted ---


def _accept(
    log_probs: Array, labels: Array, log_prior: Array | None, validate: bool
) -> tuple[ModuleType, Array, Array, Array | None]:
    xp = _namespace("log_probs", log_probs)
    validate = validate and _has_values(log_probs)
    labels = _as_labels(xp, labels, log_probs)
    if log_prior is not None:
        log_prior = _as_array(xp, "log_prior", log_prior, log_probs)
        validate = validate and _has_values(log_prior)
    validate = validate and _has_values(labels)
    log_probs = _accept_log_probs(xp, "log_probs", log_probs, validate)

    plain, ensemble = tuple(log_probs.shape[:-1]), tuple(log_probs.shape[1:-1])
    if tuple(labels.shape) != plain and (
        tuple(labels.shape) != ensemble or log_probs.ndim < 2 or log_probs.shape[0] == 0
    ):
        raise ValueError(
            f"labels must have shape (...) for log_probs of shape (..., K) or (N, ..., K): "
            f"got labels {tuple(labels.shape)} and log_probs {tuple(log_probs.shape)}"
        )
    classes = log_probs.shape[-1]
    if validate and bool(xp.any((labels < 0) | (labels >= classes))):
        raise ValueError(f"labels must lie in 0..{classes - 1}")
    if log_prior is not None:
        if tuple(log_prior.shape) != (classes,):
            raise ValueError(
                f"log_prior must have shape ({classes},) for log_probs of shape "
                f"{tuple(log_probs.shape)}, got {tuple(log_prior.shape)}"
            )
        log_prior = _accept_log_probs(xp, "log_prior", log_prior, validate)
        log_prior = xp.astype(log_prior, log_probs.dtype)
        chosen = xp.take(log_prior, xp.reshape(labels, (-1,)), axis=0) if validate else None
        if chosen is not None and bool(xp.any(xp.isinf(chosen))):
            raise ValueError("log_prior gives probability 0 to a label that occurs in labels")
        log_prior = xp.maximum(log_prior, LOG_FLOOR)
    return xp, log_probs, labels, log_prior


def _namespace(name: str, x: Array) -> ModuleType:
    if not api.is_array_api_obj(x):
        raise ValueError(f"{name} must be a NumPy, PyTorch or JAX array, got {type(x).__name__}")
    return api.array_namespace(x)


def _as_array(xp: ModuleType, name: str, x: Any, like: Array) -> Array:
    try:
        return xp.asarray(x, device=api.device(like))
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{name} must be an array like log_probs: {error}") from None


def _as_labels(xp: ModuleType, labels: Any, like: Array) -> Array:
    labels = _as_array(xp, "labels", labels, like)
    if not xp.isdtype(labels.dtype, "integral") and 0 not in labels.shape:
        raise ValueError(f"labels must be integers, got {labels.dtype}")
    # Wide enough to compare with K, and what torch wants of an index.
    return xp.astype(labels, xp.int32 if api.is_jax_namespace(xp) else xp.int64)


def _accept_log_probs(xp: ModuleType, name: str, log_probs: Array, validate: bool) -> Array:
    floating = xp.isdtype(log_probs.dtype, "real floating")
    if log_probs.ndim == 0 or log_probs.shape[-1] == 0 or not floating:
        raise ValueError(
            f"{name} must be a floating array of shape (..., K), "
            f"got {log_probs.dtype} of shape {tuple(log_probs.shape)}"
        )
    log_probs = _without_gradient(log_probs)
    tolerance = 1e-3
    if xp.finfo(log_probs.dtype).bits < 32:
        log_probs, tolerance = xp.astype(log_probs, xp.float32), 5e-2
    if validate:
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
                f"axis; apply log_softmax to logits first"
            )
    return log_probs


def _without_gradient(x: Array) -> Array:
    if api.is_torch_array(x):
        return x.detach()
    if api.is_jax_array(x):
        from jax.lax import stop_gradient

        return stop_gradient(x)
    return x


def _has_values(x: Array) -> bool:
    """Whether values can be looked at: not while JAX traces or torch compiles."""
    if api.is_jax_array(x):
        from jax.core import Tracer

        return not isinstance(x, Tracer)
    if api.is_torch_array(x):
        from torch.compiler import is_compiling

        return not is_compiling()
    return True
