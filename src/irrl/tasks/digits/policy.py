"""The policy: a locator that, with DT-RAM, also decides to stop, and a baseline."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from irrl.losses import gaussian_log_prob
from irrl.runs.seeding import stream
from irrl.tasks.digits.by_hand import Bounded, Layer, linear, one_by_one, through_relu
from irrl.tasks.digits.config import DigitsConfig
from irrl.tasks.digits.discriminator import Memory, Step
from irrl.tasks.digits.waves import (
    features_from,
    noted,
    octaves,
    phases_at,
    read_from,
    seen_by,
    turned_back,
    wave_vectors,
)


class Moment(NamedTuple):
    """What the policy made of a glimpse."""

    location: Tensor
    known: Tensor  # the core's state, the map from the anchor, what was covered, place and time
    thought: Tensor  # of the layers that read it: hidden units, and a glance at each place
    seen: Tensor  # units of the map
    here: Tensor  # their phases where the glimpse was taken
    there: Tensor  # and from where the map was read


class Mind(NamedTuple):
    """The same for all actions of an episode, (steps - 1, batch, ...): what backward needs."""

    locations: Tensor
    known: Tensor
    thought: Tensor
    seen: Tensor
    here: Tensor
    there: Tensor
    moments: list[Moment]  # the same, one by one
    layers: tuple[Layer, ...]  # of what is done and thought and, with a map, of what is seen


STOP_LIMIT = 0.01  # stop probabilities stay within [0.01, 0.99]: neither is ever given up
STOP_LOGIT_LIMIT = math.log(1.0 / STOP_LIMIT - 1.0)


class Policy(nn.Module):
    """Where to look next, whether to stop, and what to expect.

    The authors' policy reads the core's state, and nothing of its gradient goes back. That state is
    shaped by classification, and early on says little about where things are. With
    ``policy_memory`` the policy therefore keeps a map of its own: waves over the canvas, each
    weighted by what was seen where, summed over glimpses, with weights learned from the reward.
    Read from where a move starts, it tells what lies in which direction, wherever that is.
    """

    middle: Tensor  # of the canvas
    waves: Tensor
    clock: Tensor
    side: Tensor  # of the grid
    grid: Tensor
    frequencies: Tensor

    def __init__(self, config: DigitsConfig) -> None:
        super().__init__()
        self.stops, self.moves = config.stops, config.moves
        self.centre_light = config.centre_light
        self.register_buffer("frequencies", octaves(config.location_features), persistent=False)
        self.reach = 1.0 if config.moves == "absolute" else config.stride
        self.register_buffer("middle", torch.zeros(2), persistent=False)
        known, units = config.width, config.policy_memory
        self.width = config.width
        self.what = None
        if units > 0:
            self.what = nn.Linear(config.scales * config.glimpse_size**2, units)
            places = (2 + 4 * config.location_features) * (1 + config.object_centred)
            covered = config.grid**2 if config.inhibition > 0 else 0
            known += 2 * units + covered + places + config.steps - 1
        # Which glimpse it is: one row for each, so that a way to scan can be learned as such.
        self.register_buffer("clock", torch.eye(config.steps - 1)[:, None], persistent=False)
        rng = stream(config.seed, "policy", 2)
        # From the width of the canvas to a few pixels.
        lengths = 0.5 * math.pi * 2.0 ** rng.uniform(0.0, 4.0, units)
        self.register_buffer("waves", wave_vectors(rng, lengths), persistent=False)
        self.hidden = nn.Linear(known, config.locator_width)
        side = torch.linspace(-self.reach, self.reach, config.grid)
        self.register_buffer("side", side, persistent=False)
        grid = torch.cartesian_prod(side, side) if config.grid > 0 else side.new_empty(0, 2)
        self.register_buffer("grid", grid, persistent=False)
        self.places = len(grid)
        self.aims = self.places or 2
        self.act = nn.Linear(config.locator_width, self.aims + config.stops)
        # Whether a place was seen is a linear question to the map: no need to think.
        self.glance = nn.Linear(known, self.aims + config.stops) if config.grid > 0 else None
        self.alike = nn.Parameter(torch.zeros(2 * units)) if config.equivariant else None
        self.glimpse_size = 2.0 * config.glimpse_size / config.canvas_size
        self.inhibition = config.inhibition
        self.shun = nn.Parameter(torch.zeros(1)) if config.inhibition > 0 else None
        wide = config.baseline_width
        self.foresee = nn.Linear(known, wide) if wide > 0 else None
        self.expect = nn.Linear(wide or known, 1)

    def blank(self, memory: Memory) -> Mind:
        """Room for the actions of an episode. Without a map, the states are all that is known."""
        states = memory.states[:-1]

        def room(size: int) -> Tensor:
            return states.new_empty(*states.shape[:-1], size)

        bias, weight = self.reads()
        front = self.hidden.out_features + (0 if self.glance is None else self.glance.out_features)
        layers = [(self.act.bias, self.act.weight.t()), (bias[:front], weight[:front].t())]
        known, units = states, self.waves.shape[1]
        if self.what is not None:
            known = room(weight.shape[1])
            known[..., weight.shape[1] - len(self.clock) :] = self.clock[: len(known)]
            layers.append((self.what.bias, self.what.weight.t()))
        sizes = (2 if self.shun is not None else 0, front, units, 2 * units, 2 * units)
        locations, thought, seen, here, there = map(room, sizes)
        views = map(one_by_one, (locations, known, thought, seen, here, there))
        moments = [Moment(*view) for view in zip(*views, strict=True)]
        return Mind(locations, known, thought, seen, here, there, moments, tuple(layers))

    def anchor(self, location: Tensor, centre: Tensor, left: Tensor, out: Tensor) -> Tensor:
        """Where moves start: the middle of the canvas, here, or the centre of what was seen.

        A crumb of clutter is a centre, too, and what is out of reach from there is not found any
        more. Where too little light is left, moves therefore start from the middle again. ``out``
        is the middle to begin with.
        """
        if self.moves == "absolute":
            return out
        if self.moves == "relative":
            return out.copy_(location)
        return torch.where(left >= self.centre_light, centre, self.middle, out=out)

    def place(self, location: Tensor, place: Tensor, anchor: Tensor) -> Tensor:
        """Features of a place: those of the discriminator, unless moves start elsewhere."""
        if self.centre_light == 0:
            return place
        return features_from(location, anchor, self.frequencies)

    def think(
        self, mind: Mind, t: int, seen: Step, notes: Tensor | None, location: Tensor, anchor: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        """Write what is known and thought after glimpse ``t``; returns its urge, and the map."""
        now = mind.moments[t]
        if self.what is not None:
            linear(mind.layers[2], seen.glimpse, now.seen).relu_()
            phases_at(self.waves, location, out=now.here)
            notes = noted(now.seen, now.here, notes, out=torch.empty_like(now.here))
            phases_at(self.waves, anchor, out=now.there)
            place = self.place(location, seen.place, anchor)
            after = self.width + notes.shape[1]
            now.known[:, : self.width] = seen.state
            read_from(notes, now.there, out=now.known[:, self.width : after])
            if self.shun is not None:
                now.location.copy_(location)
                looked = mind.locations[: t + 1]
                covered = covered_by(looked, anchor, self.side, self.glimpse_size)
                place = torch.cat([covered, place], dim=1)
            now.known[:, after : after + place.shape[1]] = place
        (bias, weight), read = mind.layers[:2]
        linear(read, now.known, now.thought)
        if self.glance is None:
            return torch.addmm(bias, now.thought.relu_(), weight), notes
        units, glance = self.split(now.thought)
        return torch.addmm(bias, units.relu_(), weight).add_(glance), notes

    def split(self, thought: Tensor) -> Sequence[Tensor]:
        """The hidden units and the glance."""
        return thought.tensor_split([self.hidden.out_features], dim=-1)

    def recall(self, mind: Mind, glimpses: Tensor) -> tuple[Tensor, Tensor]:
        """All that was thought, and what the baseline makes of what was known, with gradients."""
        seen = () if self.what is None else (self.what.weight, self.what.bias)
        hidden = self.hidden.out_features
        return Recalled.apply(mind, glimpses, self.width, hidden, *self.reads(), *seen)

    def reads(self) -> tuple[Tensor, Tensor]:
        """Bias and weight of all layers that read what is known: hidden, glance, baseline."""
        last = self.expect if self.foresee is None else self.foresee
        layers = [self.hidden, *filter(None, [self.glance]), last]
        weights = [layer.weight for layer in layers]
        if self.alike is not None:
            weights[1] = weights[1] + self.asked()
        if self.shun is not None:
            weights[1] = weights[1] + self.shunned()
        return torch.cat([layer.bias for layer in layers]), torch.cat(weights)

    def asked(self) -> Tensor:
        """The part of a glance at each place that is the same question for all.

        What does the map show, seen from there? So it is learned once for all places that one was
        looked at, or lies beside something bright.
        """
        assert self.alike is not None
        asked = turned_back(self.alike, phases_at(self.waves, self.grid))
        return self.of_a_glance(asked, self.width)

    def shunned(self) -> Tensor:
        """The part of a glance at each place that counts against what was covered of it."""
        assert self.shun is not None
        strength = self.inhibition * self.shun.exp()
        against = -strength * torch.eye(len(self.grid), device=strength.device)
        return self.of_a_glance(against, self.width + 2 * self.waves.shape[1])

    def of_a_glance(self, weights: Tensor, before: int) -> Tensor:
        """Weights of the places on some of what is known, as part of those of a whole glance."""
        assert self.glance is not None
        after = self.glance.in_features - before - weights.shape[1]
        return functional.pad(weights, (before, after, 0, self.glance.out_features - len(weights)))

    def forward(self, thought: Tensor, anchor: Tensor) -> tuple[Tensor, Tensor | None]:
        """What it aims at, and the probability of stopping in place of going there.

        The aim is the mean of the next location; with a grid, the log-probability of each place.
        """
        if self.glance is None:
            return self.decide(self.act(thought), anchor)
        units, glance = self.split(thought)
        return self.decide(self.act(units) + glance, anchor)

    def decide(self, urge: Tensor, anchor: Tensor) -> tuple[Tensor, Tensor | None]:
        """The same from what a thought urges."""
        aim = urge[..., : self.aims] if self.stops else urge
        if self.places > 0:
            aim = functional.log_softmax(aim, dim=-1)
        else:
            aim = torch.tanh(aim)
            if self.moves != "absolute":
                aim = torch.add(anchor, aim, alpha=self.reach)
        if not self.stops:
            return aim, None
        return aim, torch.sigmoid(Bounded.apply(urge[..., -1], STOP_LOGIT_LIMIT))

    def choose(self, aim: Tensor, anchor: Tensor, lot: Tensor | None, out: Tensor) -> Tensor:
        """The mean of the next location. A place of the grid is drawn by lot, or the likeliest."""
        if self.places == 0:
            return aim
        if lot is None:
            torch.argmax(aim, dim=-1, out=out)
        else:
            below = aim.exp().cumsum(dim=-1) < lot[:, None]
            torch.sum(below, dim=-1, out=out).clamp_(max=self.places - 1)
        return anchor + self.grid[out]

    def log_prob(self, aim: Tensor, samples: Tensor, choices: Tensor, std: float) -> Tensor:
        """Of locations as they were drawn; around a place of the grid, chance is not its own."""
        if self.places == 0:
            return gaussian_log_prob(samples, aim, std)
        return aim.gather(-1, choices[..., None])[..., 0]

    def baseline(self, foreseen: Tensor) -> Tensor:
        """What to expect, from what `recall` tells."""
        if self.foresee is not None:
            foreseen = self.expect(functional.relu(foreseen))
        return foreseen[..., 0]


def covered_by(looked: Tensor, anchor: Tensor, side: Tensor, size: float) -> Tensor:
    """How much of a glimpse at each place of a grid others have shown, added up, (batch, places).

    ``looked`` is where, (glimpses, batch, 2); ``side`` the columns, and the rows, of the grid from
    its ``anchor``. Two squares share what their columns share times what their rows do.
    """
    there = (anchor[..., None] + side).clamp(-1.0, 1.0)
    shared = (1.0 - (there - looked[..., None]).abs() / size).clamp_(min=0.0)
    columns, rows = shared.permute(2, 1, 3, 0)
    return (columns @ rows.transpose(1, 2)).flatten(1)


class Recalled(torch.autograd.Function):
    """Thoughts as a function of the weights, for an episode that was rolled out.

    States and places carry no gradient; the map does, to what it notes of a glimpse.
    """

    @staticmethod
    def forward(
        ctx: Any, mind: Mind, glimpses: Tensor, before: int, hidden: int, *weights: Tensor
    ) -> tuple[Tensor, Tensor]:
        bias, weight, *_ = weights
        done = mind.thought.shape[-1]
        ctx.mind, ctx.glimpses, ctx.before, ctx.hidden = mind, glimpses, before, hidden
        ctx.save_for_backward(weight)
        return mind.thought.view_as(mind.thought), mind.known @ weight[done:].t() + bias[done:]

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> Any:
        mind: Mind = ctx.mind
        (weight,) = ctx.saved_tensors
        grad = torch.cat(grad_outputs, dim=-1)
        through_relu(grad[..., : ctx.hidden], mind.thought[..., : ctx.hidden])
        rows = grad.flatten(0, 1)
        grads = [rows.sum(0), rows.t() @ mind.known.flatten(0, 1)]
        if len(mind.layers) > 2:
            waves = mind.here.shape[-1]
            around = grad @ weight[:, ctx.before : ctx.before + waves]
            seen = seen_by(around, mind.here, mind.there, mind.seen).flatten(0, 1)
            grads += [seen.t() @ ctx.glimpses.flatten(0, 1), seen.sum(0)]
        return None, None, None, None, *grads
