"""Episodes: from a batch of images to glimpses, states and actions."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from irrl.losses import at_last_step
from irrl.tasks.digits.chance import RandomNumbers
from irrl.tasks.digits.discriminator import Discriminator, EpisodeCache
from irrl.tasks.digits.policy import Policy

STOP_THRESHOLD = 0.5  # in evaluation, where stopping is not sampled


class Trajectory(NamedTuple):
    """A batch of episodes. Actions are taken after all glimpses but the last."""

    cache: EpisodeCache  # what the discriminator computed on the way
    policy_cache: Any  # and the policy
    locations: Tensor  # (glimpses, batch, 2): where each glimpse was taken
    samples: Tensor  # (glimpses - 1, batch, 2): next locations as sampled, before they were clamped
    lengths: Tensor  # (batch): glimpses until the episode ended

    @property
    def glimpses(self) -> int:
        return len(self.locations)

    @property
    def moved(self) -> Tensor:
        """(glimpses - 1, batch): whether the action was to go on."""
        return self._action < self.lengths - 1

    @property
    def stopped(self) -> Tensor:
        """(glimpses - 1, batch): whether the action was to stop."""
        return self._action == self.lengths - 1

    @property
    def _action(self) -> Tensor:
        return torch.arange(self.glimpses - 1, device=self.lengths.device)[:, None]

    def last(self, per_glimpse: Tensor) -> Tensor:
        """The entries of (glimpses, batch, ...) at the last glimpse of each episode."""
        if len(per_glimpse) == 1:  # kept for the last glimpse only
            return per_glimpse[0]
        return at_last_step(per_glimpse, self.lengths)


@torch.no_grad()
def rollout(
    discriminator: Discriminator,
    policy: Policy,
    images: Tensor,
    first: Tensor,
    glimpses: int,
    numbers: RandomNumbers | None = None,
    std: float = 0.0,
) -> Trajectory:
    """Episodes of a batch of images.

    With random ``numbers`` locations and stops are sampled, as in training; without them locations
    are the means, and an episode stops where that is the more likely.
    """
    batch, actions = len(first), glimpses - 1
    canvas = discriminator.retina.prepare(images)
    cache = discriminator.new_cache(glimpses, batch)
    locations, samples = first.new_empty(glimpses, batch, 2), first.new_empty(actions, batch, 2)
    locations[0] = first
    policy_cache = policy.new_cache(cache, locations)
    lengths = torch.full((batch,), 1 if policy.locator.stops else glimpses, device=first.device)
    running = torch.ones(batch, dtype=torch.bool, device=first.device)
    here = first
    noise: Iterable[Tensor | None] = [None] * actions
    uniforms = noise
    if numbers is not None:
        noise, uniforms = numbers.noise, numbers.place_uniform
    per_action = zip(locations[1:], samples, noise, uniforms, strict=True)
    for t, (there, sample, noise_t, uniform) in enumerate(per_action):
        discriminator.look(cache, t, canvas, here)
        mean, stop = policy.act(policy_cache, t, cache.steps[t], here, uniform)
        if noise_t is None:
            sample.copy_(mean)
        else:
            torch.add(mean, noise_t, alpha=std, out=sample)
        here = torch.clamp(sample, -1.0, 1.0, out=there)
        if stop is not None:
            running &= (STOP_THRESHOLD if numbers is None else numbers.stop_uniform[t]) >= stop
            lengths += running
    discriminator.look(cache, actions, canvas, here)
    return Trajectory(cache, policy_cache, locations, samples, lengths)
