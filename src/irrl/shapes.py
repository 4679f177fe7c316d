"""The shapes of rewards: pure functions of a label's posterior and prior.

A shape is called as ``shape(xp, log_q, log_p)``: ``xp`` is the library of the arrays (NumPy,
PyTorch, JAX), ``log_q`` the log-posterior of the label, ``log_p`` its log-prior, two arrays of
one shape (or floats, with NumPy). It returns rewards of that shape. Most are ``g(q) - g(p)`` for
an increasing g. All of them are written so that Numba can compile them, with ``xp`` = NumPy.

`irrl.rewards` gives shapes their names, checks what goes in and stops the gradient.
"""

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

Array = Any
Shape = Callable[[ModuleType, Array, Array], Array]
G = Callable[[Array], Array]

LOG_FLOOR = -1e4
"""A log-probability below this counts as this: that of an impossible label is minus infinity."""

RATIO_LIMIT = 80.0
"""Likelihood ratios saturate at exp(80): finite in single precision, and so is 80 * exp(80)."""

G_LOG_FLOOR = -87.0
"""What a g of one's own is given at least, exp(-87): a normal number in single precision."""


def log_shape(xp: ModuleType, log_q: Array, log_p: Array) -> Array:
    """The logarithm, ``log q - log p``: the pointwise mutual information.

    Args:
        xp: the library of the arrays.
        log_q: log-posteriors, any shape.
        log_p: log-priors, the same shape.

    Returns:
        Rewards of that shape, in nats.

    Example:
        >>> import numpy as np
        >>> float(log_shape(np, -1.0, -2.0))
        1.0
    """
    return log_q - log_p


def linear_shape(xp: ModuleType, log_q: Array, log_p: Array) -> Array:
    """The paper's choice, ``q - p``: symmetric noise of the posterior gives it no bias.

    Args:
        xp: the library of the arrays.
        log_q: log-posteriors, any shape.
        log_p: log-priors, the same shape.

    Returns:
        Rewards of that shape.

    Example:
        >>> import numpy as np
        >>> float(linear_shape(np, np.log(0.75), np.log(0.25)))
        0.5
    """
    return xp.exp(log_q) - xp.exp(log_p)


def exp_shape(xp: ModuleType, log_q: Array, log_p: Array) -> Array:
    """The exponential, ``exp(q) - exp(p)``.

    Args:
        xp: the library of the arrays.
        log_q: log-posteriors, any shape.
        log_p: log-priors, the same shape.

    Returns:
        Rewards of that shape.

    Example:
        >>> import numpy as np
        >>> round(float(exp_shape(np, np.log(1.0), np.log(0.5))), 4)
        1.0696
    """
    return xp.exp(xp.exp(log_q)) - xp.exp(xp.exp(log_p))


def log1p_shape(xp: ModuleType, log_q: Array, log_p: Array) -> Array:
    """A logarithm that is finite at zero, ``log(1 + q) - log(1 + p)``.

    Args:
        xp: the library of the arrays.
        log_q: log-posteriors, any shape.
        log_p: log-priors, the same shape.

    Returns:
        Rewards of that shape.

    Example:
        >>> import numpy as np
        >>> round(float(log1p_shape(np, np.log(1.0), np.log(0.5))), 4)
        0.2877
    """
    return xp.log1p(xp.exp(log_q)) - xp.log1p(xp.exp(log_p))


def power_shape(exponent: float) -> Shape:
    """Make the shape ``q^exponent - p^exponent``; exponents below one are roots.

    Args:
        exponent: above zero, or g would not increase.

    Returns:
        The shape.

    Example:
        >>> import numpy as np
        >>> float(power_shape(2)(np, np.log(0.75), np.log(0.25)))
        0.5
    """
    if not exponent > 0:
        raise ValueError(f"exponent must be positive, got {exponent}: only then is g increasing")

    def shape(xp: ModuleType, log_q: Array, log_p: Array) -> Array:
        return xp.exp(exponent * log_q) - xp.exp(exponent * log_p)

    return shape


def g_shape(g: G) -> Shape:
    """Make the shape ``g(q) - g(p)`` of a function of the probability.

    A probability below ``exp(G_LOG_FLOOR)`` counts as that, so that a g which is minus infinity
    at zero stays finite. To compile it: ``njit(g_shape(njit(g)))``.

    Args:
        g: increasing; an array of probabilities to an array of the same shape.

    Returns:
        The shape.

    Example:
        >>> import numpy as np
        >>> float(g_shape(lambda q: 2 * q)(np, np.log(0.75), np.log(0.25)))
        1.0
    """

    def shape(xp: ModuleType, log_q: Array, log_p: Array) -> Array:
        q = xp.exp(xp.maximum(log_q, G_LOG_FLOOR))
        p = xp.exp(xp.maximum(log_p, G_LOG_FLOOR))
        return g(q) - g(p)

    return shape


# The f-mutual-information rewards are F(x) = (f(x) + f(0) (x - 1)) / x at x = q/p: of all f that
# give the same divergence, the one with f(0) = 0. Its F is increasing in q, and its expectation
# is the divergence even where the joint has zeros. `irrl.divergences` has each f.


def chi2_shape(xp: ModuleType, log_q: Array, log_p: Array) -> Array:
    """F of the chi-squared divergence, ``q/p - 1``.

    Args:
        xp: the library of the arrays.
        log_q: log-posteriors, any shape.
        log_p: log-priors, the same shape.

    Returns:
        Rewards of that shape.

    Example:
        >>> import numpy as np
        >>> round(float(chi2_shape(np, np.log(0.75), np.log(0.25))), 6)
        2.0
    """
    return xp.expm1(xp.minimum(log_q - log_p, RATIO_LIMIT))


def total_variation_shape(xp: ModuleType, log_q: Array, log_p: Array) -> Array:
    """F of the total variation, ``max(1 - p/q, 0)``: clipped at the prior by itself.

    Args:
        xp: the library of the arrays.
        log_q: log-posteriors, any shape.
        log_p: log-priors, the same shape.

    Returns:
        Rewards of that shape.

    Example:
        >>> import numpy as np
        >>> round(float(total_variation_shape(np, np.log(0.75), np.log(0.25))), 6)
        0.666667
    """
    return -xp.expm1(-xp.maximum(log_q - log_p, 0.0))


def hellinger_shape(xp: ModuleType, log_q: Array, log_p: Array) -> Array:
    """F of the squared Hellinger distance, ``2 - 2 sqrt(p/q)``.

    Args:
        xp: the library of the arrays.
        log_q: log-posteriors, any shape.
        log_p: log-priors, the same shape.

    Returns:
        Rewards of that shape.

    Example:
        >>> import numpy as np
        >>> round(float(hellinger_shape(np, np.log(1.0), np.log(0.25))), 6)
        1.0
    """
    return -2.0 * xp.expm1(xp.minimum(0.5 * (log_p - log_q), RATIO_LIMIT))


def le_cam_shape(xp: ModuleType, log_q: Array, log_p: Array) -> Array:
    """F of the Le Cam divergence, ``(q - p) / (2q + 2p)``.

    Args:
        xp: the library of the arrays.
        log_q: log-posteriors, any shape.
        log_p: log-priors, the same shape.

    Returns:
        Rewards of that shape.

    Example:
        >>> import numpy as np
        >>> round(float(le_cam_shape(np, np.log(0.75), np.log(0.25))), 6)
        0.25
    """
    return 0.5 * xp.tanh(0.5 * (log_q - log_p))


def jensen_shannon_shape(xp: ModuleType, log_q: Array, log_p: Array) -> Array:
    """F of the Jensen-Shannon divergence.

    Args:
        xp: the library of the arrays.
        log_q: log-posteriors, any shape.
        log_p: log-priors, the same shape.

    Returns:
        Rewards of that shape.

    Example:
        >>> import numpy as np
        >>> round(float(jensen_shannon_shape(np, np.log(1.0), np.log(0.5))), 4)
        0.4315
    """
    ratio = log_q - log_p
    softplus = xp.maximum(ratio, 0.0) + xp.log1p(xp.exp(-xp.abs(ratio)))
    near = xp.maximum(ratio, -RATIO_LIMIT)  # below it, log(1 + x) / x is 1 to the last digit
    near_softplus = xp.maximum(near, 0.0) + xp.log1p(xp.exp(-xp.abs(near)))
    return ratio - softplus - near_softplus * xp.exp(-near) + 2.0 * math.log(2.0)


def reverse_kl_shape(xp: ModuleType, log_q: Array, log_p: Array) -> Array:
    """F of the reverse KL divergence, ``(p/q) log(p/q)``: the one that does not increase with q.

    Args:
        xp: the library of the arrays.
        log_q: log-posteriors, any shape.
        log_p: log-priors, the same shape.

    Returns:
        Rewards of that shape.

    Example:
        >>> import numpy as np
        >>> round(float(reverse_kl_shape(np, np.log(1.0), np.log(0.5))), 4)
        -0.3466
    """
    inverse_ratio = xp.minimum(log_p - log_q, RATIO_LIMIT)
    return inverse_ratio * xp.exp(inverse_ratio)


def clip_at_prior(xp: ModuleType, rewards: Array) -> Array:
    """Zero below the prior. For increasing g this is ``g(max(q, p)) - g(p)`` (Eq. 8).

    Args:
        xp: the library of the array.
        rewards: what a shape returned.

    Returns:
        Rewards of the same shape, none below zero.

    Example:
        >>> import numpy as np
        >>> clip_at_prior(np, np.array([-0.5, 0.5])).tolist()
        [0.0, 0.5]
    """
    return xp.maximum(rewards, 0.0)
