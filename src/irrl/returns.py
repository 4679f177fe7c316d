"""From rewards to what actions are worth. Pure functions; time is the first axis.

For NumPy and PyTorch arrays alike: they use nothing but arithmetic and slices.
"""

from typing import Any

Array = Any


def gains(worth: Array) -> Array:
    """What each step adds: ``worth[t + 1] - worth[t]``. Their sum is the last minus the first."""
    return worth[1:] - worth[:-1]


def rewards_to_go(rewards: Array, discount: float = 1.0) -> Array:
    """``rewards[t] + discount * rewards[t + 1] + ...`` for every t."""
    if not 0.0 <= discount <= 1.0:
        raise ValueError(f"discount must lie between 0 and 1, got {discount}")
    returns = rewards + 0  # a copy
    for t in reversed(range(len(rewards) - 1)):
        returns[t] += discount * returns[t + 1]
    return returns
