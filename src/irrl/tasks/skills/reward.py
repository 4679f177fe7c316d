"""Rewards as the compiled loop calls them: (log-probabilities, label, log prior) -> float32."""

import re
from collections.abc import Callable
from functools import cache
from types import FunctionType

import numpy as np
from numba import njit

from irrl.errors import UserError
from irrl.rewards import LOG_FLOOR, Reward, clip_at_prior, g_shape
from irrl.tasks.skills import arithmetic
from irrl.tasks.skills.kernels import REWARD_SIGNATURE

f32 = np.float32


@cache
def compiled_reward(reward_fn: Reward) -> Callable:
    """A reward of the library, or of one's own, as a compiled function.

    Compiled once in a process: workers of a sweep do many runs.
    """
    if reward_fn.g is None:
        return _compile(reward_fn)
    try:
        return _compile(reward_fn)
    except Exception as error:  # compiling runs nothing of the user's: it is Numba that gave up
        raise UserError(
            f"reward {reward_fn.name!r} cannot be compiled for skills: {_reason(error)}; write its "
            "g as arithmetic and NumPy functions of one number"
        ) from None


def largest_reward(reward_fn: Reward, codes: int) -> float:
    """What a code earns where it is certain: the unit of settings that are told by ratios."""
    certain = np.full(codes, -np.inf, f32)
    certain[0] = 0.0
    largest = float(compiled_reward(reward_fn)(certain, 0, f32(-arithmetic.log(codes))))
    if not largest > 0:
        raise UserError(
            f"optimism needs a reward that pays for certainty; {reward_fn.name} gives "
            f"{largest:.3g} for it: set initial-value"
        )
    return largest


def _compile(reward_fn: Reward) -> Callable:
    if reward_fn.shape is None:

        @njit(REWARD_SIGNATURE)
        def accuracy(log_q, label, log_p):
            return f32(np.argmax(log_q) == label)

        return accuracy
    shape = njit(reward_fn.shape if reward_fn.g is None else g_shape(_compiled_g(reward_fn.g)))
    clip, clipped, floor = njit(clip_at_prior), reward_fn.clipped, f32(LOG_FLOOR)

    @njit(REWARD_SIGNATURE)
    def of_posterior(log_q, label, log_p):
        value = shape(arithmetic, max(log_q[label], floor), log_p)
        return f32(clip(arithmetic, value)) if clipped else f32(value)

    return of_posterior


def _compiled_g(g: Callable) -> Callable:
    """What Numba knows already, such as ``numpy.sqrt`` or a compiled function, stays as it is."""
    return njit(g) if isinstance(g, FunctionType) else g


def _reason(error: Exception) -> str:
    """The line of Numba's report that tells what is wrong, without its colours."""
    report = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    lines = [line.strip() for line in report.splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith("Failed in ")] or [type(error).__name__]
    first = " ".join(told[:2]) if told[0].endswith(":") else told[0]
    return first.rstrip(".:")
