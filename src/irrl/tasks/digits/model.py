"""The recurrent attention model: a discriminator that sees and remembers, a policy that looks.

The **discriminator** is the glimpse network, the recurrent core and the classifier; it learns from
the label. The **policy** is the locator (with DT-RAM, a stop as well) and the baseline; it reads
the core's state and passes no gradient back. Locations are (column, row) in [-1, 1].

Rolling out must go step by step, since each glimpse decides on the next. The gradient need not:
`States` keeps what the forward pass computed and runs the backward pass by hand, with one matrix
product over all steps for each weight. It gives what autograd would, in fewer operations.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from irrl.seeding import stream
from irrl.tasks.digits.config import DigitsConfig
from irrl.tasks.digits.data import CLASSES, DEVIATION, MEAN

STOP_LIMIT = 1e-3  # stop probabilities stay within [1e-3, 1 - 1e-3]


class Retina(nn.Module):
    """Cuts glimpses out of canvases: squares of doubling size, each pooled to the first.

    Pixels are normalised by mean and deviation of MNIST; outside the canvas they read zero.
    """

    dark: Tensor
    strides: Tensor

    def __init__(self, config: DigitsConfig) -> None:
        super().__init__()
        self.middle, self.size = 0.5 * config.canvas_size, config.glimpse_size
        self.sides = [config.glimpse_size * 2**k for k in range(config.scales)]
        self.margin = (self.sides[-1] + 1) // 2
        stride = config.canvas_size + 2 * self.margin
        for k, side in enumerate(self.sides):
            span = torch.arange(side) + self.margin - side // 2
            offsets = (span[:, None] * stride + span).flatten()
            self.register_buffer(f"offsets{k}", offsets, persistent=False)
        self.register_buffer("strides", torch.tensor([1, stride]), persistent=False)
        inside = torch.full((config.canvas_size, config.canvas_size), -MEAN / DEVIATION)
        dark = functional.pad(inside, (self.margin,) * 4).flatten()
        self.register_buffer("dark", dark, persistent=False)  # what no light reads, at each pixel

    def prepare(self, images: Tensor) -> Tensor:
        """Images of bytes with a dark margin, one flat row for each."""
        return functional.pad(images, (self.margin,) * 4).flatten(1)

    def forward(self, canvas: Tensor, location: Tensor) -> Tensor:
        # What is not a number looks at the corner; training notices it by its posteriors.
        pixel = (self.middle * (location + 1.0)).nan_to_num_(0.0).long()
        start = (pixel * self.strides).sum(dim=1, keepdim=True)
        glimpses = []
        for k in range(len(self.sides)):
            index = start + getattr(self, f"offsets{k}")
            light = canvas.gather(1, index)
            pixels = torch.add(self.dark[index], light, alpha=1.0 / (255.0 * DEVIATION))
            if k > 0:
                side = self.sides[k]
                square = pixels.view(-1, 1, side, side)
                pixels = functional.avg_pool2d(square, 2**k).flatten(1)
            glimpses.append(pixels)
        return glimpses[0] if len(glimpses) == 1 else torch.cat(glimpses, dim=1)


class Memory(NamedTuple):
    """What a forward pass computed, steps first: all that the backward pass needs."""

    glimpses: Tensor
    brightness: Tensor  # seen so far, and its sum over columns and rows
    places: Tensor
    encoded: Tensor
    features: Tensor
    gates: Tensor
    states: Tensor


class Discriminator(nn.Module):
    """Glimpse network, recurrent core, classifier: q(y | glimpses so far)."""

    frequencies: Tensor

    def __init__(self, config: DigitsConfig) -> None:
        super().__init__()
        seen, half, width = (
            config.scales * config.glimpse_size**2,
            config.glimpse_width,
            config.width,
        )
        gates = {"rnn": 1, "gru": 3}[config.core]
        octaves = torch.arange(config.location_features)
        self.config = config
        self.core, self.width = config.core, width
        self.retina = Retina(config)
        self.what = nn.Linear(seen, half)
        self.object_centred = config.object_centred
        self.where = nn.Linear((2 + 4 * len(octaves)) * (1 + config.object_centred), half)
        self.glimpse = nn.Linear(2 * half, width)  # of both halves: the sum of two layers
        self.from_glimpse = nn.Linear(width, gates * width)
        self.from_state = nn.Linear(width, gates * width)
        self.classify = nn.Linear(width, CLASSES)
        self.register_buffer("frequencies", 0.5 * math.pi * 2.0**octaves, persistent=False)

    def blank(self, steps: int, batch: int) -> Memory:
        """Room for an episode."""
        like = self.what.weight
        sizes = (
            self.what.in_features, 3, self.where.in_features, self.glimpse.in_features,
            self.width, 4 * self.width if self.core == "gru" else 0, self.width,
        )  # fmt: skip
        return Memory(*(like.new_empty(steps, batch, size) for size in sizes))

    @torch.no_grad()
    def look(self, memory: Memory, t: int, canvas: Tensor, location: Tensor) -> Tensor:
        """Take glimpse ``t`` of an episode; returns the new state of the core."""
        memory.glimpses[t] = self.retina(canvas, location)
        return self.remember(memory, t, location)

    @torch.no_grad()
    def remember(self, memory: Memory, t: int, location: Tensor) -> Tensor:
        """The state after glimpse ``t``, which is in the memory already."""
        self.tell_place(memory, t, location)
        what, where = memory.encoded[t].chunk(2, dim=1)
        _linear(self.what, memory.glimpses[t], what).relu_()
        _linear(self.where, memory.places[t], where).relu_()
        features = _linear(self.glimpse, memory.encoded[t], memory.features[t]).relu_()
        state = memory.states[t]
        if self.core == "rnn":
            bias = self.from_glimpse.bias + self.from_state.bias
            torch.addmm(bias, features, self.from_glimpse.weight.t(), out=state)
            if t > 0:
                state.addmm_(memory.states[t - 1], self.from_state.weight.t())
            return state.relu_()
        before = memory.states[t - 1] if t > 0 else torch.zeros_like(state)
        reset, update, new, recalled = memory.gates[t].chunk(4, dim=1)
        driven = self.from_glimpse(features)
        kept = self.from_state(before)
        both = driven[:, : 2 * self.width] + kept[:, : 2 * self.width]
        torch.sigmoid(both, out=memory.gates[t][:, : 2 * self.width])
        recalled.copy_(kept[:, 2 * self.width :])
        torch.tanh(torch.addcmul(driven[:, 2 * self.width :], reset, recalled), out=new)
        return torch.lerp(new, before, update, out=state)

    def tell_place(self, memory: Memory, t: int, location: Tensor) -> None:
        """Write the features of a place: on the canvas, and from the centre of what was seen.

        That centre is the mean of all locations so far, weighted by their brightness. An object
        then looks much the same wherever it lies.
        """
        if not self.object_centred:
            memory.places[t] = self.features_of(location)
            return
        seen = memory.glimpses[t].clamp(min=0.0).mean(dim=1, keepdim=True)
        memory.brightness[t] = torch.cat([seen, seen * location], dim=1)
        if t > 0:
            memory.brightness[t] += memory.brightness[t - 1]
        from_centre = location - centre_of(memory.brightness[t])
        both = [self.features_of(location), self.features_of(from_centre)]
        memory.places[t] = torch.cat(both, dim=1)

    def features_of(self, place: Tensor) -> Tensor:
        """Coordinates, and waves of doubling frequency of them."""
        if len(self.frequencies) == 0:
            return place
        phase = (place[:, :, None] * self.frequencies).flatten(1)
        return torch.cat([place, phase.sin(), phase.cos()], dim=1)

    def states(self, memory: Memory) -> Tensor:
        """The states of an episode, (steps, batch, width), with their gradient."""
        trunk = (self.what, self.where, self.glimpse, self.from_glimpse, self.from_state)
        weights = [parameter for layer in trunk for parameter in (layer.weight, layer.bias)]
        return States.apply(memory, self.core, *weights)

    def log_probs(self, states: Tensor) -> Tensor:
        return functional.log_softmax(self.classify(states), dim=-1)


def centre_of(brightness: Tensor) -> Tensor:
    """The mean location, weighted by brightness; the middle of the canvas if all was dark."""
    weight, total = brightness.split([1, 2], dim=-1)
    return torch.where(weight > 0, total / weight.clamp(min=1e-6), 0.0)


def _linear(layer: nn.Linear, x: Tensor, out: Tensor) -> Tensor:
    return torch.addmm(layer.bias, x, layer.weight.t(), out=out)


class States(torch.autograd.Function):
    """States of the core as a function of the weights, for an episode that was rolled out."""

    @staticmethod
    def forward(ctx: Any, memory: Memory, core: str, *weights: Tensor) -> Tensor:
        ctx.memory, ctx.core = memory, core
        ctx.save_for_backward(*weights)
        return memory.states.view_as(memory.states)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> Any:
        (grad_states,) = grad_outputs
        memory: Memory = ctx.memory
        weights = ctx.saved_tensors
        what, _, _, _, glimpse, _, from_glimpse, _, from_state, _ = weights
        through_time = _rnn_backward if ctx.core == "rnn" else _gru_backward
        driven, kept = through_time(memory, from_state, grad_states)
        before = memory.states[:-1].flatten(0, 1)
        half = what.shape[0]

        driven, kept = driven.flatten(0, 1), kept.flatten(0, 1)
        batch = grad_states.shape[1]
        features = _through_relu(driven @ from_glimpse, memory.features.flatten(0, 1))
        encoded = _through_relu(features @ glimpse, memory.encoded.flatten(0, 1))
        grad_what, grad_where = encoded[:, :half], encoded[:, half:]
        grads = [
            grad_what.t() @ memory.glimpses.flatten(0, 1), grad_what.sum(0),
            grad_where.t() @ memory.places.flatten(0, 1), grad_where.sum(0),
            features.t() @ memory.encoded.flatten(0, 1), features.sum(0),
            driven.t() @ memory.features.flatten(0, 1), driven.sum(0),
            kept[batch:].t() @ before, kept.sum(0),
        ]  # fmt: skip
        return None, None, *grads


def _through_relu(grad: Tensor, output: Tensor, out: Tensor | None = None) -> Tensor:
    """The gradient of a rectifier's input, from that of its output; in place if not told where."""
    out = grad if out is None else out
    return torch.ops.aten.threshold_backward.grad_input(grad, output, 0, grad_input=out)


def _rnn_backward(memory: Memory, from_state: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    """Gradient of what goes into the rectifier of each step, from glimpse and state alike."""
    steps = len(grad)
    grads = torch.empty_like(grad)
    for t in reversed(range(steps)):
        total = grad[t] if t == steps - 1 else torch.addmm(grad[t], grads[t + 1], from_state)
        _through_relu(total, memory.states[t], out=grads[t])
    return grads, grads


def _gru_backward(memory: Memory, from_state: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of the two linear maps into the gates: of the glimpse, of the state before."""
    steps, batch, width = grad.shape
    reset, update, new, recalled = memory.gates.split(width, dim=2)
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


class Recalled(torch.autograd.Function):
    """A rectified linear layer whose output is known already."""

    @staticmethod
    def forward(ctx: Any, output: Tensor, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(output, x, weight)
        return output.view_as(output)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> Any:
        output, x, weight = ctx.saved_tensors
        grad = _through_relu(grad_outputs[0].contiguous(), output, torch.empty_like(output))
        rows = grad.flatten(0, -2)
        grad_x = grad @ weight if ctx.needs_input_grad[1] else None
        return None, grad_x, rows.t() @ x.flatten(0, -2), rows.sum(0)


def draw_waves(seed: int, count: int) -> Tensor:
    """Wave vectors (2, count) in all directions, from the width of the canvas to a few pixels."""
    rng = stream(seed, "policy", 2)
    angle, octave = rng.uniform(0.0, 2.0 * math.pi, count), rng.uniform(0.0, 4.0, count)
    length = 0.5 * math.pi * 2.0**octave
    return torch.tensor(np.stack([length * np.cos(angle), length * np.sin(angle)])).float()


class Policy(nn.Module):
    """Where to look next, whether to stop, and what to expect.

    The authors' policy reads the core's state, and nothing of its gradient goes back. That state is
    shaped by classification, and early on says little about where things are. With
    ``policy_memory`` the policy therefore keeps a map of its own: waves over the canvas, each
    weighted by what was seen where, summed over glimpses, with weights learned from the reward.
    Read at the present location, it tells what lies in which direction, wherever that is.
    """

    waves: Tensor

    def __init__(self, config: DigitsConfig) -> None:
        super().__init__()
        self.stops, self.moves = config.stops, config.moves
        self.reach = 1.0 if config.moves == "absolute" else config.stride
        known, units = config.width, config.policy_memory
        self.what = None
        if units > 0:
            self.what = nn.Linear(config.scales * config.glimpse_size**2, units)
            known += 2 * units + (2 + 4 * config.location_features) * (1 + config.object_centred)
        self.register_buffer("waves", draw_waves(config.seed, units), persistent=False)
        self.hidden = nn.Linear(known, config.locator_width)
        self.act = nn.Linear(config.locator_width, 3 if config.stops else 2)
        wide = config.baseline_width
        self.foresee = nn.Linear(known, wide) if wide > 0 else None
        self.expect = nn.Linear(wide or known, 1)

    def phases(self, location: Tensor, out: Tensor) -> Tensor:
        """Cosine and sine of each wave at a place."""
        phase = location @ self.waves
        return torch.cat([phase.cos(), phase.sin()], dim=-1, out=out)

    def note(self, glimpses: Tensor, phases: Tensor) -> Tensor | None:
        """What glimpses add to the map: each wave, as much as was seen."""
        if self.what is None:
            return None
        seen = functional.relu(self.what(glimpses))
        return torch.cat([seen, seen], dim=-1) * phases

    def knows(self, states: Tensor, notes: Tensor | None, phases: Tensor, places: Tensor) -> Tensor:
        """All that the policy decides by: the core's state, the map seen from here, the place."""
        if notes is None:
            return states
        cosine, sine = phases.chunk(2, dim=-1)
        even, odd = notes.chunk(2, dim=-1)
        around = (even * cosine + odd * sine, odd * cosine - even * sine)
        return torch.cat([states, *around, places], dim=-1)

    def anchor(self, locations: Tensor, brightness: Tensor) -> Tensor:
        """Where moves start: the middle of the canvas, here, or the centre of what was seen."""
        if self.moves == "absolute":
            return locations.new_zeros(2)
        return locations if self.moves == "relative" else centre_of(brightness)

    def think(self, known: Tensor, out: Tensor) -> Tensor:
        """The hidden units of the locator, while rolling out."""
        return _linear(self.hidden, known, out).relu_()

    def recall(self, known: Tensor, thought: Tensor) -> Tensor:
        """The same with their gradient, for what was thought while rolling out."""
        return Recalled.apply(thought, known, self.hidden.weight, self.hidden.bias)

    def forward(self, thought: Tensor, anchor: Tensor) -> tuple[Tensor, Tensor | None]:
        """Mean of the next location, and the probability of stopping in place of going there."""
        raw = self.act(thought)
        mean = torch.add(anchor, torch.tanh(raw[..., :2]), alpha=self.reach)
        if not self.stops:
            return mean, None
        return mean, torch.sigmoid(raw[..., 2]).clamp(STOP_LIMIT, 1.0 - STOP_LIMIT)

    def baseline(self, known: Tensor) -> Tensor:
        if self.foresee is not None:
            known = functional.relu(self.foresee(known))
        return self.expect(known)[..., 0]
