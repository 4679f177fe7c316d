"""A PPO batch in minibatches, and these in parts that threads and processes share."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from irrl.nn.parallel import part_edges
from irrl.runs.seeding import stream
from irrl.tasks.counting.config import CountingConfig
from irrl.tasks.counting.rollout import Trajectory


class MinibatchPart(NamedTuple):
    """Some episodes of a minibatch, their shares of it, and the randomness of their dropout.

    Means over parts, weighted by their shares, add up to the mean over the minibatch.
    """

    chosen: Tensor  # which episodes of the batch
    action_share: float
    episode_share: float
    view_share: float
    generator: torch.Generator


def minibatches(
    config: CountingConfig, trajectory: Trajectory, done: int
) -> Iterator[list[MinibatchPart]]:
    """All episodes in each epoch, in a new order, by minibatches of nearly equal size, in parts."""
    count = len(trajectory.lengths)
    number = -(-count // config.minibatch_episodes)
    for n in range(config.n_epochs):
        order = torch.from_numpy(stream(config.seed, "policy", 1, done, n).permutation(count))
        for first, last in part_edges(count, number):
            yield cut_minibatch(config, trajectory, order[first:last], (done, n, first))


def cut_minibatch(
    config: CountingConfig, trajectory: Trajectory, chosen: Tensor, address: tuple[int, ...]
) -> list[MinibatchPart]:
    """A minibatch in parts; the address is that of their random numbers."""
    device = trajectory.lengths.device
    chosen = chosen.to(device)
    lengths, acted = trajectory.lengths[chosen], trajectory.acted[chosen]
    parts = []
    for first, last in part_edges(len(chosen), config.parts):
        seed = stream(config.seed, "discriminator", 1, *address, first).integers(2**62)
        parts.append(
            MinibatchPart(
                chosen[first:last],
                (acted[first:last].sum() / acted.sum()).item(),
                (last - first) / len(chosen),
                (lengths[first:last].sum() / lengths.sum()).item(),
                torch.Generator(device).manual_seed(int(seed)),
            )
        )
    return parts
