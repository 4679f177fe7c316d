"""The discriminator: it sees, remembers and tells how likely each digit is, q(y | glimpses so far).

It is the glimpse network, the core and the classifier, and learns from the label. Locations are
(column, row) in [-1, 1].

Rolling out must go step by step, since each glimpse decides on the next. The gradient need not: the
forward pass keeps what it computed, and the backward pass is written by hand, with one matrix
product over all steps for each weight. It gives what autograd would, in fewer operations.
"""

import math
from itertools import repeat
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from irrl.runs.seeding import stream
from irrl.tasks.digits.by_hand import Layer, linear, one_by_one, through_relu
from irrl.tasks.digits.config import DigitsConfig
from irrl.tasks.digits.data import CLASSES
from irrl.tasks.digits.retina import Retina
from irrl.tasks.digits.waves import (
    features_from,
    features_of,
    noted,
    octaves,
    phases_at,
    read_from,
    seen_by,
    wave_vectors,
)


class Step(NamedTuple):
    """What a glimpse adds to the memory."""

    entered: Tensor
    glimpse: Tensor
    place: Tensor
    light: Tensor  # brightness seen so far, and its sums over columns and rows
    left: Tensor  # what fading leaves of that brightness: it holds the centre
    centre: Tensor  # of the brightness seen so far
    state: Tensor
    inner: tuple[Tensor, ...]  # what the core computed on the way


class Memory(NamedTuple):
    """What a forward pass computed, steps first: all that the backward pass needs."""

    entered: Tensor  # glimpses and places side by side, of which the next two are views
    glimpses: Tensor
    places: Tensor
    light: Tensor
    left: Tensor
    centres: Tensor
    states: Tensor
    inner: tuple[Tensor, ...]
    steps: list[Step]  # the same, one by one
    layers: tuple[Layer, ...]  # that a step passes through


ALL = slice(None)
WAVE_IN_GLIMPSES = 2.65  # shortest wave of a map


class Discriminator(nn.Module):
    """What all cores have in common; each says how it remembers."""

    frequencies: Tensor
    classify: nn.Linear

    def __init__(self, config: DigitsConfig) -> None:
        super().__init__()
        self.config = config
        self.object_centred = config.object_centred
        self.retina = Retina(config)
        self.pixels = config.scales * config.glimpse_size**2
        self.place_features = (2 + 4 * config.location_features) * (1 + config.object_centred)
        self.register_buffer("frequencies", octaves(config.location_features), persistent=False)

    def inner_sizes(self) -> tuple[int, ...]:
        """Of what the core computes in a step."""
        raise NotImplementedError

    def layers(self) -> tuple[nn.Linear, ...]:
        """Whose weights the states depend on."""
        raise NotImplementedError

    def passes(self) -> tuple[Layer, ...]:
        """What a step passes through: these layers, in as few products as will do."""
        return tuple((layer.bias, layer.weight.t()) for layer in self.layers())

    def advance(self, memory: Memory, t: int, location: Tensor) -> Tensor:
        """Write the state after glimpse ``t``."""
        raise NotImplementedError

    def states(self, memory: Memory, which: slice = ALL) -> Tensor:
        """The states of an episode, or the last of them, (steps, batch, width), with gradient."""
        raise NotImplementedError

    def blank(self, steps: int, batch: int) -> Memory:
        """Room for an episode."""

        def room(size: int) -> Tensor:
            return self.classify.weight.new_empty(steps, batch, size)

        entered = room(self.pixels + self.place_features)
        glimpses, places = entered.split([self.pixels, self.place_features], dim=2)
        centred = (3, 1, 2) if self.object_centred else (0, 0, 0)
        light, left, centres, states = map(room, (*centred, self.classify.in_features))
        outer = (entered, glimpses, places, light, left, centres, states)
        inner = tuple(map(room, self.inner_sizes()))
        inside = zip(*map(one_by_one, inner), strict=True)
        views = zip(*map(one_by_one, outer), inside, strict=True)
        return Memory(*outer, inner, [Step(*view) for view in views], self.passes())

    def look(self, memory: Memory, t: int, canvas: Tensor, location: Tensor) -> Tensor:
        """Take glimpse ``t`` of an episode; returns the new state of the core."""
        self.retina.look(canvas, location, out=memory.steps[t].glimpse)
        return self.remember(memory, t, location)

    def remember(self, memory: Memory, t: int, location: Tensor) -> Tensor:
        """The state after glimpse ``t``, which is in the memory already."""
        self.tell_place(memory, t, location)
        return self.advance(memory, t, location)

    def tell_place(self, memory: Memory, t: int, location: Tensor) -> None:
        """Write the features of a place: on the canvas, and from the centre of what was seen.

        That centre is the mean of all locations so far, weighted by their brightness. An object
        then looks much the same wherever it lies. If old light is forgotten, light that is found
        while too little of it is left to hold the centre begins a new one.
        """
        now = memory.steps[t]
        if not self.object_centred:
            now.place.copy_(features_of(location, self.frequencies))
            return
        seen = now.glimpse.clamp(min=0.0).mean(dim=1, keepdim=True)
        torch.cat([seen, seen * location], dim=1, out=now.light)
        now.left.copy_(seen)
        if t > 0:
            before = memory.steps[t - 1]
            faded = self.config.centre_fade * before.left
            now.left.add_(faded)
            light, enough = before.light, self.config.centre_light
            if self.config.centre_forgets:
                light = torch.where((before.left < enough) & (seen >= enough), 0.0, light)
            now.light.add_(light)
        now.centre.copy_(centre_of(now.light))
        now.place.copy_(features_from(location, now.centre, self.frequencies))

    def log_probs(self, states: Tensor) -> Tensor:
        return functional.log_softmax(self.classify(states), dim=-1)


def centre_of(light: Tensor) -> Tensor:
    """The mean location, weighted by brightness; the middle of the canvas if all was dark."""
    brightness, total = light.split([1, 2], dim=-1)
    return torch.where(brightness > 0, total / brightness.clamp(min=1e-6), 0.0)


# --- recurrent cores ---


class Recurrent(Discriminator):
    """The authors' discriminator, with their rectified core or a GRU."""

    def __init__(self, config: DigitsConfig) -> None:
        super().__init__(config)
        half, width = config.glimpse_width, config.width
        gates = {"rnn": 1, "gru": 3}[config.core]
        self.core, self.width = config.core, width
        self.what = nn.Linear(self.pixels, half)
        self.where = nn.Linear(self.place_features, half)
        self.glimpse = nn.Linear(2 * half, width)  # of both halves: the sum of two layers
        self.from_glimpse = nn.Linear(width, gates * width)
        self.from_state = nn.Linear(width, gates * width)
        self.classify = nn.Linear(width, CLASSES)

    def inner_sizes(self) -> tuple[int, ...]:
        gates = 4 * self.width if self.core == "gru" else 0
        return self.glimpse.in_features, self.width, gates

    def layers(self) -> tuple[nn.Linear, ...]:
        return self.what, self.where, self.glimpse, self.from_glimpse, self.from_state

    def passes(self) -> tuple[Layer, ...]:
        what, where, glimpse, from_glimpse, (bias, weight) = super().passes()
        both = torch.cat([what[0], where[0]]), torch.block_diag(what[1], where[1])
        if self.core == "rnn":
            from_glimpse = from_glimpse[0] + bias, from_glimpse[1]
        return both, glimpse, from_glimpse, (bias, weight)

    def advance(self, memory: Memory, t: int, location: Tensor) -> Tensor:
        now, before = memory.steps[t], memory.steps[t - 1].state if t > 0 else None
        to_both, to_features, from_glimpse, from_state = memory.layers
        encoded, features, gates = now.inner
        linear(to_both, now.entered, encoded).relu_()
        linear(to_features, encoded, features).relu_()
        if self.core == "rnn":
            linear(from_glimpse, features, now.state)
            if before is not None:
                now.state.addmm_(before, from_state[1])
            return now.state.relu_()
        reset, update, new, recalled = gates.chunk(4, dim=1)
        before = torch.zeros_like(now.state) if before is None else before
        driven, kept = (
            torch.addmm(bias, x, weight)
            for (bias, weight), x in ((from_glimpse, features), (from_state, before))
        )
        both = driven[:, : 2 * self.width] + kept[:, : 2 * self.width]
        torch.sigmoid(both, out=gates[:, : 2 * self.width])
        recalled.copy_(kept[:, 2 * self.width :])
        torch.tanh(torch.addcmul(driven[:, 2 * self.width :], reset, recalled), out=new)
        return torch.lerp(new, before, update, out=now.state)

    def states(self, memory: Memory, which: slice = ALL) -> Tensor:
        weights = [p for layer in self.layers() for p in (layer.weight, layer.bias)]
        return RecurrentStates.apply(memory, which, self.core, *weights)


class RecurrentStates(torch.autograd.Function):
    """States of the core as a function of the weights, for an episode that was rolled out."""

    @staticmethod
    def forward(ctx: Any, memory: Memory, which: slice, core: str, *weights: Tensor) -> Tensor:
        ctx.memory, ctx.core = memory, core
        ctx.save_for_backward(*weights)
        return memory.states[which]

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> Any:
        (grad_states,) = grad_outputs
        memory: Memory = ctx.memory
        seen, thought, _ = (inner.flatten(0, 1) for inner in memory.inner)
        what, _, _, _, glimpse, _, from_glimpse, _, from_state, _ = ctx.saved_tensors
        through_time = _rnn_backward if ctx.core == "rnn" else _gru_backward
        driven, kept = (g.flatten(0, 1) for g in through_time(memory, from_state, grad_states))
        before = memory.states[:-1].flatten(0, 1)
        (half, pixels), batch = what.shape, grad_states.shape[1]

        features = through_relu(driven @ from_glimpse, thought)
        encoded = through_relu(features @ glimpse, seen)
        both, bias = (memory.entered.flatten(0, 1).t() @ encoded).t(), encoded.sum(0)
        grads = [
            both[:half, :pixels], bias[:half],
            both[half:, pixels:], bias[half:],
            features.t() @ seen, features.sum(0),
            driven.t() @ thought, driven.sum(0),
            kept[batch:].t() @ before, kept.sum(0),
        ]  # fmt: skip
        return None, None, None, *grads


def _rnn_backward(memory: Memory, from_state: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    """Gradient of what goes into the rectifier of each step, from glimpse and state alike."""
    grads = torch.empty_like(memory.states)
    later: Tensor | None = None
    given = [*repeat(None, len(grads) - len(grad)), *grad]
    for here, step, out in zip(given[::-1], memory.steps[::-1], grads.unbind()[::-1], strict=True):
        if here is None:
            assert later is not None
            here = torch.mm(later, from_state)
        elif later is not None:
            here = torch.addmm(here, later, from_state)
        later = through_relu(here, step.state, out=out)
    return grads, grads


def _gru_backward(memory: Memory, from_state: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of the two linear maps into the gates: of the glimpse, of the state before."""
    grad = of_all(grad, memory)
    steps, batch, width = grad.shape
    reset, update, new, recalled = memory.inner[2].split(width, dim=2)
    before = torch.cat([torch.zeros_like(memory.states[:1]), memory.states[:-1]])
    # What does not depend on the gradient from above, for all steps at once.
    of_update = (before - new) * update * (1.0 - update)
    of_new = (1.0 - update) * (1.0 - new * new)
    of_reset = of_new * recalled * reset * (1.0 - reset)
    of_recalled = of_new * reset
    kept = grad.new_empty(steps, batch, 3 * width)
    from_above = torch.zeros_like(grad[0])
    total = torch.empty_like(grad)
    for t in reversed(range(steps)):
        torch.add(grad[t], from_above, out=total[t])
        torch.mul(total[t], of_reset[t], out=kept[t, :, :width])
        torch.mul(total[t], of_update[t], out=kept[t, :, width : 2 * width])
        torch.mul(total[t], of_recalled[t], out=kept[t, :, 2 * width :])
        from_above = torch.addmm(total[t] * update[t], kept[t], from_state)
    driven = torch.cat([kept[:, :, : 2 * width], total * of_new], dim=2)
    return driven, kept


def of_all(grad: Tensor, memory: Memory) -> Tensor:
    """The gradient of all states, from that of the last of them."""
    return functional.pad(grad, (0, 0, 0, 0, len(memory.states) - len(grad), 0))


# --- a map ---


class Mapped(Discriminator):
    """Remembers by a map of waves, read from the centre of what was seen.

    A recurrent core has to learn what a glimpse means at every place, and it cannot move what it
    has noted when the centre turns out to lie elsewhere. A map can: all that was seen is read anew
    from the present centre. Its recurrence is a sum, so nothing fades and no gradient vanishes.
    """

    waves: Tensor

    def __init__(self, config: DigitsConfig) -> None:
        super().__init__(config)
        units = config.glimpse_width
        rng = stream(config.seed, "discriminator", 1)
        # Dense in a disc, down to waves of a few glimpses: what is finer, a glimpse itself shows.
        shortest = WAVE_IN_GLIMPSES * config.glimpse_size / (0.5 * config.canvas_size)
        lengths = 2.0 * math.pi / shortest * rng.uniform(0.0, 1.0, units) ** 0.5
        self.register_buffer("waves", wave_vectors(rng, lengths), persistent=False)
        self.scale = config.steps**-0.5
        self.what = nn.Linear(self.pixels, units)
        self.read = nn.Linear(2 * units, config.width)
        self.classify = nn.Linear(config.width, CLASSES)

    def inner_sizes(self) -> tuple[int, ...]:
        units = self.what.out_features
        return units, 2 * units, 2 * units, 2 * units, 2 * units

    def layers(self) -> tuple[nn.Linear, ...]:
        return self.what, self.read

    def advance(self, memory: Memory, t: int, location: Tensor) -> Tensor:
        now = memory.steps[t]
        what, read = memory.layers
        seen, here, notes, centre, around = now.inner
        linear(what, now.glimpse, seen).relu_()
        phases_at(self.waves, location, out=here).mul_(self.scale)
        noted(seen, here, memory.steps[t - 1].inner[2] if t > 0 else None, out=notes)
        where = now.centre if self.object_centred else 0.0 * location
        read_from(notes, phases_at(self.waves, where, out=centre), out=around)
        return linear(read, around, now.state).relu_()

    def states(self, memory: Memory, which: slice = ALL) -> Tensor:
        weights = [p for layer in self.layers() for p in (layer.weight, layer.bias)]
        return MappedStates.apply(memory, which, *weights)


class MappedStates(torch.autograd.Function):
    """The same for a map."""

    @staticmethod
    def forward(ctx: Any, memory: Memory, which: slice, *weights: Tensor) -> Tensor:
        ctx.memory = memory
        ctx.save_for_backward(*weights)
        return memory.states[which]

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> Any:
        memory: Memory = ctx.memory
        seen, here, _, centre, around = memory.inner
        read = ctx.saved_tensors[2]
        grad = of_all(grad_outputs[0], memory).contiguous()
        state = through_relu(grad, memory.states, torch.empty_like(memory.states))
        seen = seen_by(state @ read, here, centre, seen).flatten(0, 1)
        state = state.flatten(0, 1)
        return (
            None, None,
            seen.t() @ memory.glimpses.flatten(0, 1), seen.sum(0),
            state.t() @ around.flatten(0, 1), state.sum(0),
        )  # fmt: skip


def make_discriminator(config: DigitsConfig) -> Discriminator:
    return Mapped(config) if config.core == "map" else Recurrent(config)
