"""The random numbers of episodes, sampled beforehand from the streams of a run."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from irrl.runs.seeding import stream
from irrl.tasks.digits.extensions.config import DigitsConfig


class RandomNumbers(NamedTuple):
    """Those of some episodes; the batch is the last axis, or that before coordinates."""

    first: Tensor  # (batch, 2): first location, uniform
    noise: Tensor  # (glimpses - 1, batch, 2): of locations, standard normal
    stop_uniform: Tensor  # (glimpses - 1, batch): for stopping; empty for RAM
    place_uniform: Tensor  # (glimpses - 1, batch): for places of a grid; empty without

    def batch(self, first: int, last: int) -> "RandomNumbers":
        rest = (x[:, first:last] for x in (self.noise, self.stop_uniform, self.place_uniform))
        return RandomNumbers(self.first[first:last], *rest)


def sample_epoch(
    config: DigitsConfig, epoch: int, device: torch.device
) -> tuple[Tensor, RandomNumbers]:
    """Order of the canvases in an epoch, and all random numbers of its episodes."""
    count, actions = config.train_images, config.glimpses - 1
    order = stream(config.seed, "data", 3, epoch).permutation(count)
    rng = stream(config.seed, "policy", 1, epoch)
    first = stream(config.seed, "environment", epoch).random((count, 2), np.float32) * 2 - 1
    noise = rng.standard_normal((actions, count, 2), np.float32)
    stop_uniform = rng.random((actions, count if config.stops else 0), np.float32)
    place_uniform = rng.random((actions, count if config.grid > 0 else 0), np.float32)
    arrays = (first, noise, stop_uniform, place_uniform)
    numbers = RandomNumbers(*(torch.from_numpy(array).to(device) for array in arrays))
    return torch.from_numpy(order).to(device), numbers
