"""What each action of an episode is paid for the rewards of what it led to. Pure functions."""

import numpy as np


def payments(pay: str, potential: np.ndarray, before: np.ndarray, ended: np.ndarray) -> np.ndarray:
    """What one more action of each of several episodes is paid.

    Args:
        pay: ``"end"``, ``"differences"``, ``"steps"``, or ``"environment"``, which pays itself.
        potential: reward of all that was seen so far, the new observation included.
        before: the same before it; zero after the first observation, which no action led to: then
            differences add up to the reward of the end.
        ended: whether the episode ends here.

    Returns:
        Payments, of the shape of all these.
    """
    if pay == "environment":
        return np.zeros_like(potential)
    if pay == "end":
        return np.where(ended, potential, 0.0)
    if pay == "differences":
        return potential - before
    return potential


def is_paid(pay: str, acted: np.ndarray, ended: np.ndarray) -> np.ndarray:
    """Which actions are paid at all.

    Args:
        pay: as above.
        acted: which environments took one.
        ended: whether the episode ends here.

    Returns:
        A mask of their shape.
    """
    if pay == "environment":
        return np.zeros_like(acted)
    return acted & ended if pay == "end" else acted


def payments_of_episode(pay: str, potentials: np.ndarray) -> np.ndarray:
    """What all actions of a whole episode are paid.

    Args:
        pay: as above.
        potentials: rewards after each observation, the first included: shape ``(T + 1,)``.

    Returns:
        Payments of the T actions.
    """
    after = potentials[1:]
    before = np.concatenate([[0.0], after[:-1]])
    ended = np.arange(len(after)) == len(after) - 1
    return payments(pay, after, before[: len(after)], ended)
