"""Episodes: from a batch of images to glimpses, states and actions."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from irrl.runs.seeding import stream
from irrl.tasks.digits.config import DigitsConfig
from irrl.tasks.digits.discriminator import Discriminator, Memory
from irrl.tasks.digits.policy import Mind, Policy

STOP_THRESHOLD = 0.5  # in evaluation, where stopping is not drawn


class Draws(NamedTuple):
    """The random numbers of some episodes, drawn beforehand; the batch is the last but one axis."""

    first: Tensor  # (batch, 2): first location, uniform
    noise: Tensor  # (steps - 1, batch, 2): of locations, standard normal
    coins: Tensor  # (steps - 1, batch): uniform, for stopping; empty for RAM
    lots: Tensor  # (steps - 1, batch): uniform, for places of a grid; empty without

    def batch(self, first: int, last: int) -> "Draws":
        rest = (x[:, first:last] for x in (self.noise, self.coins, self.lots))
        return Draws(self.first[first:last], *rest)


class Trajectory(NamedTuple):
    """A batch of episodes. Actions are taken after all glimpses but the last, t = 0..steps-2."""

    memory: Memory  # what the discriminator computed on the way
    mind: Mind  # and the policy
    anchors: Tensor  # (steps - 1, batch, 2): where moves started
    locations: Tensor  # (steps, batch, 2): where each glimpse was taken
    samples: Tensor  # (steps - 1, batch, 2): next locations as drawn, before they were clamped
    choices: Tensor  # (steps - 1, batch): places of the grid; of no meaning without
    lengths: Tensor  # (batch): glimpses until the episode ended

    @property
    def steps(self) -> int:
        return len(self.locations)

    @property
    def moved(self) -> Tensor:
        """(steps - 1, batch): whether the action was to go on."""
        return self._action < self.lengths - 1

    @property
    def stopped(self) -> Tensor:
        """(steps - 1, batch): whether the action was to stop."""
        return self._action == self.lengths - 1

    @property
    def _action(self) -> Tensor:
        return torch.arange(self.steps - 1, device=self.lengths.device)[:, None]

    def last(self, per_step: Tensor) -> Tensor:
        """The entries of (steps, batch, ...) at the last glimpse of each episode."""
        if len(per_step) == 1:  # kept for the last glimpse only
            return per_step[0]
        return per_step[self.lengths - 1, torch.arange(len(self.lengths), device=per_step.device)]


def draw_epoch(config: DigitsConfig, epoch: int, device: torch.device) -> tuple[Tensor, Draws]:
    """Order of the canvases in an epoch, and all random numbers of its episodes."""
    count, actions = config.train_images, config.steps - 1
    order = stream(config.seed, "data", 3, epoch).permutation(count)
    rng = stream(config.seed, "policy", 1, epoch)
    first = stream(config.seed, "environment", epoch).random((count, 2), np.float32) * 2 - 1
    noise = rng.standard_normal((actions, count, 2), np.float32)
    coins = rng.random((actions, count if config.stops else 0), np.float32)
    lots = rng.random((actions, count if config.grid > 0 else 0), np.float32)
    draws = Draws(*(torch.from_numpy(array).to(device) for array in (first, noise, coins, lots)))
    return torch.from_numpy(order).to(device), draws


@torch.no_grad()
def rollout(
    discriminator: Discriminator,
    policy: Policy,
    images: Tensor,
    first: Tensor,
    steps: int,
    chance: Draws | None = None,
    std: float = 0.0,
) -> Trajectory:
    """Episodes of a batch of images.

    With ``chance`` locations and stops are drawn, as in training; without it locations are the
    means, and an episode stops where that is the more likely.
    """
    batch = len(first)
    canvas = discriminator.retina.prepare(images)
    memory = discriminator.blank(steps, batch)
    mind = policy.blank(memory)
    locations, samples = first.new_empty(steps, batch, 2), first.new_empty(steps - 1, batch, 2)
    locations[0] = first
    choices = torch.empty_like(samples[..., 0], dtype=torch.long)
    lengths = torch.full((batch,), 1 if policy.stops else steps, device=first.device)
    running = torch.ones(batch, dtype=torch.bool, device=first.device)
    notes: Tensor | None = None
    anchors = torch.zeros_like(samples)
    here = first
    never = [None] * (steps - 1)
    noise = never if chance is None else chance.noise
    lots = never if chance is None or chance.lots.shape[1] == 0 else chance.lots
    steps_of = (locations[1:], samples, choices, anchors, noise, lots)
    for t, (there, drawn, choice, anchor, shake, lot) in enumerate(zip(*steps_of, strict=True)):
        discriminator.look(memory, t, canvas, here)
        seen = memory.steps[t]
        policy.anchor(here, seen.centre, seen.left, out=anchor)
        urge, notes = policy.think(mind, t, seen, notes, here, anchor)
        aim, stop = policy.decide(urge, anchor)
        mean = policy.choose(aim, anchor, lot, out=choice)
        if shake is None:
            drawn.copy_(mean)
        else:
            torch.add(mean, shake, alpha=std, out=drawn)
        here = torch.clamp(drawn, -1.0, 1.0, out=there)
        if stop is not None:
            running &= (STOP_THRESHOLD if chance is None else chance.coins[t]) >= stop
            lengths += running
    discriminator.look(memory, steps - 1, canvas, here)
    return Trajectory(memory, mind, anchors, locations, samples, choices, lengths)
