"""From rewards to what actions are worth. Pure functions; time is the first axis.

For NumPy and PyTorch arrays alike: they use nothing but arithmetic and slices.
"""

from typing import Any

Array = Any


def gains(worth: Array) -> Array:
    """What each step adds: ``worth[t + 1] - worth[t]``. Their sum is the last minus the first."""
    return worth[1:] - worth[:-1]


def lambda_returns(
    reward_t: Array, discount_t: Array, value_t: Array, lambda_: float = 1.0
) -> Array:
    """What follows each action, partly as it came and partly as it was expected.

    ``G[t] = reward[t] + discount[t] * ((1 - lambda) * value[t + 1] + lambda * G[t + 1])``, where
    ``value_t`` is what was expected before each action, and nothing follows the last one. With
    ``lambda_`` 1 it is the sum of discounted rewards; minus ``value_t`` it is the generalised
    advantage (GAE). ``discount_t`` is zero where an episode ends.
    """
    if not 0.0 <= lambda_ <= 1.0:
        raise ValueError(f"lambda_ must lie between 0 and 1, got {lambda_}")
    if not reward_t.shape == discount_t.shape == value_t.shape:
        raise ValueError(
            "reward_t, discount_t and value_t must have one shape, got "
            f"{tuple(reward_t.shape)}, {tuple(discount_t.shape)}, {tuple(value_t.shape)}"
        )
    returns = reward_t + 0  # a copy
    for t in reversed(range(len(returns) - 1)):
        following = (1.0 - lambda_) * value_t[t + 1] + lambda_ * returns[t + 1]
        returns[t] += discount_t[t] * following
    return returns


def gae(reward_t: Array, discount_t: Array, value_t: Array, lambda_: float = 1.0) -> Array:
    """How much better than expected each action was: generalised advantage estimation.

    The sum of ``reward[t] + discount[t] * value[t + 1] - value[t]`` from each action on, each
    weighted by the discounts and the powers of ``lambda_`` before it. ``discount_t`` is zero where
    an episode ends.
    """
    return lambda_returns(reward_t, discount_t, value_t, lambda_) - value_t
