"""The discriminator as training uses it: it sees, remembers, and tells how likely each digit is.

It has the layers of `ram`, and learns from the label. A rollout writes what it computes into a
cache, from which `manual_backward` takes the gradient.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from irrl.nn.heads import head_log_probs, mixture
from irrl.tasks.digits.config import RamConfig
from irrl.tasks.digits.data import CLASSES
from irrl.tasks.digits.manual_backward import (
    Layer,
    RecurrentStates,
    ThroughTime,
    Versions,
    linear,
    one_by_one,
    require_fresh,
    rnn_backward,
    weight_versions,
)
from irrl.tasks.digits.ram import CoreNetwork, GlimpseNetwork
from irrl.tasks.digits.retina import Retina

ALL = slice(None)


class Step(NamedTuple):
    """What a glimpse adds to the cache."""

    entered: Tensor
    glimpse: Tensor
    place: Tensor
    state: Tensor
    inner: tuple[Tensor, ...]  # what the core computed on the way
    place_inner: tuple[Tensor, ...]  # what the features of the place were computed by


class EpisodeCache(NamedTuple):
    """What a rollout computed, glimpses first: all that the backward pass needs."""

    entered: Tensor  # glimpses and features of places side by side; the next two are views
    glimpses: Tensor
    places: Tensor
    states: Tensor
    inner: tuple[Tensor, ...]
    place_inner: tuple[Tensor, ...]
    steps: list[Step]  # the same, one by one
    layers: tuple[Layer, ...]  # that a step passes through
    versions: Versions  # of the weights that computed it


class Places(nn.Module):
    """Tells a place by its coordinates."""

    features: int = 2
    inner_sizes: tuple[int, ...] = ()

    def write(self, cache: EpisodeCache, t: int, location: Tensor) -> None:
        """Write the features of the place of glimpse ``t``, which is in the cache already."""
        cache.steps[t].place.copy_(location)


class Discriminator(nn.Module):
    """What all cores have in common; each says how it remembers."""

    classifier: nn.Linear

    def __init__(self, config: RamConfig, places: Places) -> None:
        super().__init__()
        self.config, self.places = config, places
        self.retina = Retina(config)

    def inner_sizes(self) -> tuple[int, ...]:
        """Of what the core computes in a step."""
        raise NotImplementedError

    def layers(self) -> tuple[nn.Linear, ...]:
        """Whose weights the states depend on."""
        raise NotImplementedError

    def advance(self, cache: EpisodeCache, t: int, location: Tensor) -> Tensor:
        """Write the state after glimpse ``t``."""
        raise NotImplementedError

    def replay(self, cache: EpisodeCache, which: slice) -> Tensor:
        """The states as a function of the weights."""
        raise NotImplementedError

    def fused_layers(self) -> tuple[Layer, ...]:
        """What a step passes through: the layers, in as few products as will do."""
        return tuple((layer.bias, layer.weight.t()) for layer in self.layers())

    def new_cache(self, count: int, batch: int) -> EpisodeCache:
        """Room for episodes of ``count`` glimpses."""

        def room(size: int) -> Tensor:
            return self.classifier.weight.new_empty(count, batch, size)

        def inside(sizes: tuple[int, ...]) -> tuple[tuple[Tensor, ...], list[tuple[Tensor, ...]]]:
            rooms = tuple(map(room, sizes))
            return rooms, list(zip(*map(one_by_one, rooms), strict=True)) or [()] * count

        pixels, features = self.config.pixels, self.places.features
        entered, states = room(pixels + features), room(self.classifier.in_features)
        glimpses, places = entered.split([pixels, features], dim=2)
        inner, inner_steps = inside(self.inner_sizes())
        place_inner, place_steps = inside(self.places.inner_sizes)
        whole = map(one_by_one, (entered, glimpses, places, states))
        views = zip(*whole, inner_steps, place_steps, strict=True)
        return EpisodeCache(
            entered, glimpses, places, states, inner, place_inner,
            steps=[Step(*view) for view in views],
            layers=self.fused_layers(),
            versions=weight_versions(self),
        )  # fmt: skip

    def look(self, cache: EpisodeCache, t: int, canvas: Tensor, location: Tensor) -> Tensor:
        """Take glimpse ``t`` of an episode; returns the new state of the core."""
        self.retina.look(canvas, location, out=cache.steps[t].glimpse)
        return self.remember(cache, t, location)

    def remember(self, cache: EpisodeCache, t: int, location: Tensor) -> Tensor:
        """The state after glimpse ``t``, which is in the cache already."""
        self.places.write(cache, t, location)
        return self.advance(cache, t, location)

    def states(self, cache: EpisodeCache, which: slice = ALL) -> Tensor:
        """The states of an episode, or the last of them, (glimpses, batch, width), with gradient.

        Raises if the weights changed since the rollout.
        """
        require_fresh(self, cache.versions)
        return self.replay(cache, which)

    def log_probs(self, states: Tensor) -> Tensor:
        """Of all heads together, (..., classes)."""
        return mixture(self.head_log_probs(states))

    def head_log_probs(self, states: Tensor) -> Tensor:
        """(heads, ..., classes)."""
        return head_log_probs(self.classifier, states, self.config.heads)

    def weights(self) -> list[Tensor]:
        """Weight and bias of each of the layers."""
        return [p for layer in self.layers() for p in (layer.weight, layer.bias)]


class RecurrentDiscriminator(Discriminator):
    """The paper's: a glimpse network, a rectified recurrent core, a classifier."""

    through_time: ThroughTime = staticmethod(rnn_backward)
    gates = 1

    def __init__(self, config: RamConfig, places: Places) -> None:
        super().__init__(config, places)
        self.glimpse_network = GlimpseNetwork(config, places.features)
        self.core = CoreNetwork(config.width, self.gates)
        self.classifier = nn.Linear(config.width, config.heads * CLASSES)

    def inner_sizes(self) -> tuple[int, ...]:
        return self.glimpse_network.combine.in_features, self.config.width

    def layers(self) -> tuple[nn.Linear, ...]:
        glimpse, core = self.glimpse_network, self.core
        return glimpse.what, glimpse.where, glimpse.combine, core.from_glimpse, core.from_state

    def fused_layers(self) -> tuple[Layer, ...]:
        what, where, combine, from_glimpse, from_state = super().fused_layers()
        encode = torch.cat([what[0], where[0]]), torch.block_diag(what[1], where[1])
        return encode, combine, *self.fused_core(from_glimpse, from_state)

    def fused_core(self, from_glimpse: Layer, from_state: Layer) -> tuple[Layer, Layer]:
        """Both biases are added at once."""
        return (from_glimpse[0] + from_state[0], from_glimpse[1]), from_state

    def advance(self, cache: EpisodeCache, t: int, location: Tensor) -> Tensor:
        now = cache.steps[t]
        encode, combine, *core = cache.layers
        linear(encode, now.entered, now.inner[0]).relu_()
        linear(combine, now.inner[0], now.inner[1]).relu_()
        return self.advance_core(core, now, cache.steps[t - 1].state if t > 0 else None)

    def advance_core(self, layers: list[Layer], now: Step, before: Tensor | None) -> Tensor:
        """The state from the features of a glimpse and the state before."""
        from_glimpse, from_state = layers
        linear(from_glimpse, now.inner[1], now.state)
        if before is not None:
            now.state.addmm_(before, from_state[1])
        return now.state.relu_()

    def replay(self, cache: EpisodeCache, which: slice) -> Tensor:
        return RecurrentStates.apply(cache, which, self.through_time, *self.weights())
