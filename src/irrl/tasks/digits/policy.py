"""The policy as training uses it: a locator that, with DT-RAM, also decides to stop; a baseline.

It has the layers of `ram`. A rollout writes what it computes into a cache, from which
`manual_backward` takes the gradient.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from irrl.losses import gaussian_log_prob
from irrl.tasks.digits.config import RamConfig
from irrl.tasks.digits.discriminator import EpisodeCache, Step
from irrl.tasks.digits.manual_backward import (
    Layer,
    LocatorOutputs,
    Versions,
    linear,
    one_by_one,
    require_fresh,
    weight_versions,
)
from irrl.tasks.digits.ram import Locator


class Actions(NamedTuple):
    """What is said of the actions of an episode, (glimpses - 1, batch, ...); with gradient."""

    location_log_prob: Tensor  # of the next locations as they were sampled
    stop: Tensor | None  # probability of stopping in place of going there; None for RAM
    expected: Tensor  # by the baseline
    choice: Tensor | None = None  # log-probabilities of what it chose among, if it did


class Policy(nn.Module):
    """What a rollout and the losses ask of a policy."""

    locator: Locator

    def new_cache(self, cache: EpisodeCache, locations: Tensor) -> Any:
        """Room for the actions of an episode, beside that for its glimpses and their locations."""
        raise NotImplementedError

    def act(
        self, cache: Any, t: int, seen: Step, location: Tensor, uniform: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Mean of the next location, and the probability of stopping, after glimpse ``t``.

        ``uniform`` are random numbers for what else there is to choose; without them, the likeliest
        is chosen.
        """
        raise NotImplementedError

    def actions(self, cache: Any, episode: EpisodeCache, samples: Tensor, std: float) -> Actions:
        """The same for an episode that was rolled out. Raises if the weights changed since."""
        raise NotImplementedError

    def output_layers(self) -> tuple[nn.Linear, ...]:
        """Those whose outputs decide."""
        return (self.locator.out,)


class PolicyCache(NamedTuple):
    """What a rollout computed of all actions, (glimpses - 1, batch, ...)."""

    inputs: Tensor  # states of the core
    hidden: Tensor  # units of the locator
    steps: list[tuple[Tensor, Tensor]]  # the same, one by one
    layers: tuple[Layer, Layer]  # to the hidden units, and to the outputs
    versions: Versions  # of the weights that computed it


class GaussianPolicy(Policy):
    """The paper's: it reads the core's state, and nothing of its gradient goes back."""

    def __init__(self, config: RamConfig) -> None:
        super().__init__()
        self.locator = Locator(config.width, config.locator_width, stops=config.stops)
        self.baseline = nn.Linear(config.width, 1)

    def new_cache(self, cache: EpisodeCache, locations: Tensor) -> PolicyCache:
        inputs, locator = cache.states[:-1], self.locator
        hidden = inputs.new_empty(*inputs.shape[:-1], locator.hidden.out_features)
        first, last = ((x.bias, x.weight.t()) for x in (locator.hidden, locator.out))
        steps = list(zip(one_by_one(inputs), one_by_one(hidden), strict=True))
        return PolicyCache(inputs, hidden, steps, (first, last), weight_versions(self))

    def act(
        self, cache: PolicyCache, t: int, seen: Step, location: Tensor, uniform: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        inputs, hidden = cache.steps[t]
        to_hidden, (bias, weight) = cache.layers
        linear(to_hidden, inputs, hidden).relu_()
        return self.locator.decide(torch.addmm(bias, hidden, weight))

    def actions(
        self, cache: PolicyCache, episode: EpisodeCache, samples: Tensor, std: float
    ) -> Actions:
        require_fresh(self, cache.versions)
        locator, baseline = self.locator, self.baseline
        hidden, expected = LocatorOutputs.apply(
            cache, locator.hidden.weight, locator.hidden.bias, baseline.weight, baseline.bias
        )
        mean, stop = locator.decide(locator.out(hidden))
        return Actions(gaussian_log_prob(samples, mean, std), stop, expected[..., 0])
