"""Discriminators with another core than the paper's: a GRU, or a Fourier map."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from irrl.runs.seeding import stream
from irrl.tasks.digits.data import CLASSES
from irrl.tasks.digits.discriminator import (
    Discriminator,
    EpisodeCache,
    Places,
    RecurrentDiscriminator,
    Step,
)
from irrl.tasks.digits.extensions.config import DigitsConfig
from irrl.tasks.digits.extensions.fourier import (
    add_to_map,
    frequency_vectors,
    map_backward,
    phases_at,
    read_from,
)
from irrl.tasks.digits.manual_backward import Layer, grad_of_all, linear, through_relu

SHORTEST_WAVELENGTH = 2.65  # of a map, in glimpses


# --- a GRU ---


def gru_backward(cache: EpisodeCache, from_state: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of the two linear maps into the gates: of the glimpse, of the state before."""
    grad = grad_of_all(grad, cache.states)
    steps, batch, width = grad.shape
    reset, update, new, recalled = cache.inner[2].split(width, dim=2)
    before = torch.cat([torch.zeros_like(cache.states[:1]), cache.states[:-1]])
    # What does not depend on the gradient from above, for all steps at once.
    of_update = (before - new) * update * (1.0 - update)
    of_new = (1.0 - update) * (1.0 - new * new)
    of_reset = of_new * recalled * reset * (1.0 - reset)
    of_recalled = of_new * reset
    to_state = grad.new_empty(steps, batch, 3 * width)
    from_above = torch.zeros_like(grad[0])
    total = torch.empty_like(grad)
    for t in reversed(range(steps)):
        torch.add(grad[t], from_above, out=total[t])
        torch.mul(total[t], of_reset[t], out=to_state[t, :, :width])
        torch.mul(total[t], of_update[t], out=to_state[t, :, width : 2 * width])
        torch.mul(total[t], of_recalled[t], out=to_state[t, :, 2 * width :])
        from_above = torch.addmm(total[t] * update[t], to_state[t], from_state)
    to_glimpse = torch.cat([to_state[:, :, : 2 * width], total * of_new], dim=2)
    return to_glimpse, to_state


class GruDiscriminator(RecurrentDiscriminator):
    """The paper's glimpse network and classifier around a GRU."""

    through_time = staticmethod(gru_backward)
    gates = 3

    def inner_sizes(self) -> tuple[int, ...]:
        return *super().inner_sizes(), 4 * self.config.width

    def fused_core(self, from_glimpse: Layer, from_state: Layer) -> tuple[Layer, Layer]:
        return from_glimpse, from_state

    def advance_core(self, layers: list[Layer], now: Step, before: Tensor | None) -> Tensor:
        features, gates, width = now.inner[1], now.inner[2], self.config.width
        reset, update, new, recalled = gates.chunk(4, dim=1)
        before = torch.zeros_like(now.state) if before is None else before
        driven, kept = (
            torch.addmm(bias, x, weight)
            for (bias, weight), x in zip(layers, (features, before), strict=True)
        )
        both = driven[:, : 2 * width] + kept[:, : 2 * width]
        torch.sigmoid(both, out=gates[:, : 2 * width])
        recalled.copy_(kept[:, 2 * width :])
        torch.tanh(torch.addcmul(driven[:, 2 * width :], reset, recalled), out=new)
        return torch.lerp(new, before, update, out=now.state)


# --- a Fourier map ---


class MapDiscriminator(Discriminator):
    """Remembers by a Fourier map, read from the centre of what was seen.

    A recurrent core has to learn what a glimpse means at every place, and it cannot move what it
    has noted when the centre turns out to lie elsewhere. A map can: all that was seen is read anew
    from the present centre. Its recurrence is a sum, so nothing fades and no gradient vanishes.
    """

    frequencies: Tensor

    def __init__(self, config: DigitsConfig, places: Places) -> None:
        super().__init__(config, places)
        units = config.glimpse_width
        rng = stream(config.seed, "discriminator", 1)
        # Dense in a disc, down to wavelengths of a few glimpses: a glimpse shows what is finer.
        shortest = SHORTEST_WAVELENGTH * config.glimpse_size / (0.5 * config.canvas_size)
        lengths = 2.0 * math.pi / shortest * rng.uniform(0.0, 1.0, units) ** 0.5
        self.register_buffer("frequencies", frequency_vectors(rng, lengths), persistent=False)
        self.scale = config.glimpses**-0.5
        self.object_centred = config.object_centred
        self.what = nn.Linear(config.pixels, units)
        self.read = nn.Linear(2 * units, config.width)
        self.classifier = nn.Linear(config.width, config.heads * CLASSES)

    def inner_sizes(self) -> tuple[int, ...]:
        """Of units, phases here, map, phases of the centre, and the map as seen from there."""
        units = self.what.out_features
        return units, 2 * units, 2 * units, 2 * units, 2 * units

    def layers(self) -> tuple[nn.Linear, ...]:
        return self.what, self.read

    def advance(self, cache: EpisodeCache, t: int, location: Tensor) -> Tensor:
        now = cache.steps[t]
        what, read = cache.layers
        seen, here, fourier_map, there, around = now.inner
        linear(what, now.glimpse, seen).relu_()
        phases_at(self.frequencies, location, out=here).mul_(self.scale)
        before = cache.steps[t - 1].inner[2] if t > 0 else None
        add_to_map(seen, here, before, out=fourier_map)
        centre = now.place_inner[2] if self.object_centred else 0.0 * location
        read_from(fourier_map, phases_at(self.frequencies, centre, out=there), out=around)
        return linear(read, around, now.state).relu_()

    def replay(self, cache: EpisodeCache, which: slice) -> Tensor:
        return MapStates.apply(cache, which, *self.weights())


class MapStates(torch.autograd.Function):
    """States as a function of the weights, for an episode that was rolled out."""

    @staticmethod
    def forward(ctx: Any, cache: EpisodeCache, which: slice, *weights: Tensor) -> Tensor:
        ctx.cache = cache
        ctx.save_for_backward(*weights)
        return cache.states[which]

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> Any:
        cache: EpisodeCache = ctx.cache
        seen, here, _, there, around = cache.inner
        read = ctx.saved_tensors[2]
        grad = grad_of_all(grad_outputs[0], cache.states).contiguous()
        state = through_relu(grad, cache.states, torch.empty_like(cache.states))
        units = map_backward(state @ read, here, there, seen).flatten(0, 1)
        state = state.flatten(0, 1)
        return (
            None, None,
            units.t() @ cache.glimpses.flatten(0, 1), units.sum(0),
            state.t() @ around.flatten(0, 1), state.sum(0),
        )  # fmt: skip
