"""All randomness of a run comes from one root seed, through named streams.

A stream is addressed, not advanced: the numbers for block 17 of the policy are the same whether
or not blocks 0..16 were drawn before. A resumed run therefore has no generator state to restore,
and evaluating can never change training.
"""

import numpy as np

STREAMS = ("environment", "policy", "data", "discriminator", "evaluation")


def stream(seed: int, name: str, *index: int) -> np.random.Generator:
    """The generator for part ``index`` of a named stream.

    Args:
        seed: the root seed of a run.
        name: one of `STREAMS`.
        *index: such as the number of an update.

    Returns:
        A generator that depends on these alone, whatever was drawn before.

    Example:
        >>> first = stream(0, "policy", 17).random()
        >>> stream(0, "policy", 17).random() == first, stream(0, "policy", 18).random() == first
        (True, False)
    """
    if name not in STREAMS:
        raise ValueError(f"unknown stream {name!r}, known: {', '.join(STREAMS)}")
    key = (STREAMS.index(name), *index)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))
