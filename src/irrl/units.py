"""The unit of a reward: what certainty earns.

Rewards differ in size: with ten labels the clipped log pays up to 2.3, the clipped linear reward
0.9. Constants that meet a reward, such as initial values, the weight of a bonus, the range to which
PPO clips values or a cost per move, then mean something else for each of them. Divided by its unit,
a reward is at most one, and can be exchanged for another.
"""

import numpy as np

from irrl._arrays import Array
from irrl.errors import UserError, unknown_name
from irrl.rewards import Reward, reward
from irrl.shapes import G

__all__ = ["REWARD_UNITS", "largest_reward", "require_unit", "reward_unit"]

REWARD_UNITS = ("absolute", "largest")
"""Rewards as their formula says, as in the paper, or divided by the largest of them."""


def largest_reward(source: str | G | Reward, log_prior: Array | int) -> float:
    """What a reward pays at most: that of a label which is certain, the least likely one before.

    Args:
        source: what `irrl.reward` takes: a name, a function g, a reward.
        log_prior: log-priors of the labels, shape ``(K,)``; or K, for labels all equally likely.

    Returns:
        A positive number. That of ``disdain`` is without its bonus.

    Raises:
        ValueError: for a prior without labels, or a reward that does not pay for certainty.

    Example:
        >>> largest_reward("clipped-linear", 10)
        0.9
        >>> round(largest_reward("clipped-log", 10), 4)
        2.3026
    """
    prior = np.full(log_prior, -np.log(log_prior)) if isinstance(log_prior, int) else log_prior
    log_p = np.asarray(prior, dtype=float)
    if log_p.ndim != 1 or log_p.size < 2 or not np.isfinite(log_p.max()) or (log_p > 0).any():
        raise UserError(
            "log_prior must be log-probabilities of two or more labels, or their number"
        )
    reward_fn, log_p = reward(source), log_p[np.isfinite(log_p)]
    if reward_fn.shape is None:
        return 1.0
    largest = float(np.max(reward_fn.of_log_posterior(np, np.zeros_like(log_p), log_p)))
    if not largest > 0:
        raise UserError(
            f"reward {reward_fn.name!r} has no unit: it pays {largest:.3g} for certainty, "
            "expected more than 0"
        )
    return largest


def reward_unit(name: str, source: str | G | Reward, log_prior: Array | int) -> float:
    """What rewards are divided by: a name of ``REWARD_UNITS`` as a number.

    Args:
        name: ``"absolute"`` or ``"largest"``.
        source: the reward.
        log_prior: log-priors of the labels, or their number.

    Returns:
        One, or the largest reward.

    Example:
        >>> reward_unit("absolute", "clipped-linear", 10), reward_unit("largest", "accuracy", 10)
        (1.0, 1.0)
    """
    if name not in REWARD_UNITS:
        raise UserError(unknown_name("reward unit", name, REWARD_UNITS))
    return 1.0 if name == "absolute" else largest_reward(source, log_prior)


def require_unit(name: str, source: str | G | Reward) -> None:
    """Raise if rewards cannot be told in a unit, whatever the labels are.

    Args:
        name: a name of ``REWARD_UNITS``.
        source: the reward.

    Example:
        >>> require_unit("largest", "clipped-log")
    """
    reward_unit(name, source, 2)
