"""From rewards to returns and advantages. Pure functions; time is the first axis.

Names are those of rlax: ``r_t[t]`` is the reward of action t, ``discount_t[t]`` what the rest
counts after it (zero where an episode ends), ``v_t[t]`` the value of the state after it. NumPy,
PyTorch and JAX arrays work alike, under ``jax.jit`` too.

Whole numbers and booleans are promoted to the floating type of the other arrays, or to the
default one of the library: nothing is cut off.
"""

from types import ModuleType
from typing import Any

import array_api_compat as api

from irrl._arrays import Array, is_floating, namespace


def lambda_returns(
    r_t: Array, discount_t: Array | float, v_t: Array, lambda_: float = 1.0
) -> Array:
    """Returns after each action, partly as they came and partly as they were expected.

    ``G[t] = r_t[t] + discount_t[t] * ((1 - lambda_) * v_t[t] + lambda_ * G[t + 1])``, with
    ``G[T] = v_t[-1]``. With ``lambda_`` 1 this is the sum of discounted rewards, and of the last
    value where the rollout was cut.

    Args:
        r_t: rewards, shape ``(T, ...)``.
        discount_t: the same shape, or one number for all. Zero where an episode ends.
        v_t: values of the states after each action, the same shape. The last one is what a
            rollout that was cut would still have earned; zero where its episode had ended.
        lambda_: from 0, the value of the next state, to 1, the rewards as they came.

    Returns:
        Shape ``(T, ...)``.

    Example:
        >>> import numpy as np
        >>> lambda_returns(np.array([1.0, 2.0]), 0.5, np.array([0.0, 8.0])).tolist()
        [4.0, 6.0]
    """
    if not 0.0 <= lambda_ <= 1.0:
        raise ValueError(f"lambda_ must lie between 0 and 1, got {lambda_}")
    xp, r_t, discount_t, v_t = _accept(r_t, discount_t, v_t)
    if r_t.shape[0] == 0:
        return r_t

    def backwards(later: Array, now: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        r, discount, v = now
        later = r + discount * ((1.0 - lambda_) * v + lambda_ * later)
        return later, later

    if api.is_jax_namespace(xp):
        from jax.lax import scan

        return scan(backwards, v_t[-1], (r_t, discount_t, v_t), reverse=True)[1]
    later, found = v_t[-1], []
    for t in reversed(range(r_t.shape[0])):
        later, _ = backwards(later, (r_t[t], discount_t[t], v_t[t]))
        found.append(later)
    return xp.astype(xp.stack(found[::-1]), r_t.dtype, copy=False)


def gae(r_t: Array, discount_t: Array | float, values: Array, lambda_: float = 1.0) -> Array:
    """How much better than expected each action was: generalised advantage estimation.

    The sum of ``r_t[t] + discount_t[t] * values[t + 1] - values[t]`` from each action on, each
    weighted by the discounts and the powers of ``lambda_`` before it.

    Args:
        r_t: rewards, shape ``(T, ...)``.
        discount_t: the same shape, or one number for all. Zero where an episode ends.
        values: of all states, shape ``(T + 1, ...)``. The last one is what a rollout that was cut
            would still have earned; zero where its episode had ended.
        lambda_: from 0, one step, to 1, the rewards as they came.

    Returns:
        Advantages, shape ``(T, ...)``; plus ``values[:-1]`` they are the `lambda_returns`.

    Example:
        >>> import numpy as np
        >>> gae(np.array([0.0, 1.0]), 0.5, np.array([0.5, 0.25, 0.0])).tolist()
        [0.0, 0.75]
    """
    xp = namespace(r_t=r_t, values=values)
    expected = (r_t.shape[0] + 1, *r_t.shape[1:]) if r_t.ndim else ()
    if tuple(values.shape) != expected:
        raise ValueError(
            f"values must have shape {expected}, one step more than r_t, got {tuple(values.shape)}"
        )
    returns = lambda_returns(r_t, discount_t, values[1:], lambda_)
    return returns - xp.astype(values[:-1], returns.dtype, copy=False)


def potential_differences(potential: Array) -> Array:
    """What each step adds to a potential; the sum of all is the last minus the first.

    Args:
        potential: of each state, shape ``(T + 1, ...)``.

    Returns:
        ``potential[t + 1] - potential[t]``, shape ``(T, ...)``.

    Example:
        >>> import numpy as np
        >>> potential_differences(np.array([0.0, 0.5, 0.25])).tolist()
        [0.5, -0.25]
    """
    xp = namespace(potential=potential)
    if potential.ndim == 0 or potential.shape[0] == 0:
        raise ValueError(f"potential must have shape (T + 1, ...), got {tuple(potential.shape)}")
    if not is_floating(xp, potential):  # unsigned numbers have no negative differences
        potential = xp.astype(potential, xp.asarray(0.0).dtype)
    return potential[1:] - potential[:-1]


def _accept(r_t: Array, discount_t: Any, v_t: Array) -> tuple[ModuleType, Array, Array, Array]:
    """The arrays in one floating type and of one shape, and their library."""
    each = {"r_t": r_t, "v_t": v_t}
    if getattr(discount_t, "ndim", 0) > 0 or not hasattr(discount_t, "__float__"):
        each["discount_t"] = discount_t
    xp = namespace(**each)
    shapes = {name: tuple(x.shape) for name, x in each.items()}
    if r_t.ndim == 0 or len(set(shapes.values())) > 1:
        said = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(f"r_t, discount_t and v_t must have one shape (T, ...), got {said}")
    floating = [x for x in each.values() if is_floating(xp, x)] or [xp.asarray(0.0)]
    dtype = xp.result_type(*floating)
    if "discount_t" not in each:
        discount_t = xp.asarray(discount_t, dtype=dtype, device=api.device(r_t))
    r_t, discount_t, v_t = (xp.astype(x, dtype, copy=False) for x in (r_t, discount_t, v_t))
    return xp, r_t + 0.0, xp.broadcast_to(discount_t, r_t.shape), v_t  # no negative zero
