"""The global generators that agents draw from: set from streams of the run, or kept aside."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from gymnasium import spaces

from irrl.runs.seeding import stream


def seed_of(seed: int, name: str, *index: int) -> int:
    """A whole number from a named stream, for libraries that want one."""
    return int(stream(seed, name, *index).integers(2**31))


def set_generators(seed: int) -> None:
    """Begin the global generators anew: Stable-Baselines3 has no others."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


@contextmanager
def generators_aside(seed: int, actions: spaces.Space[Any]) -> Iterator[None]:
    """Other chance for a while; afterwards all generators stand where they stood.

    ``actions`` is the agent's space of actions: one that explores draws from its generator.
    """
    before = random.getstate(), np.random.get_state()
    of_actions = actions.np_random.bit_generator
    state = of_actions.state
    with torch.random.fork_rng(devices=[]):
        set_generators(seed)
        try:
            yield
        finally:
            random.setstate(before[0])
            np.random.set_state(before[1])
            of_actions.state = state
