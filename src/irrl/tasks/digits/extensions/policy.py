"""A policy with a Fourier map of its own, that may choose among places of a grid."""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from irrl.losses import gaussian_log_prob
from irrl.runs.seeding import stream
from irrl.tasks.digits.discriminator import EpisodeCache, Step
from irrl.tasks.digits.extensions.config import DigitsConfig
from irrl.tasks.digits.extensions.fourier import (
    add_to_map,
    features_from,
    frequency_vectors,
    map_backward,
    octaves,
    phases_at,
    read_from,
)
from irrl.tasks.digits.extensions.grid import PlaceGrid
from irrl.tasks.digits.extensions.places import features_of_place
from irrl.tasks.digits.manual_backward import (
    Layer,
    Versions,
    linear,
    one_by_one,
    require_fresh,
    through_relu,
    weight_versions,
)
from irrl.tasks.digits.policy import Actions, Policy
from irrl.tasks.digits.ram import Locator
from irrl.tasks.digits.stop import stop_probability


class MapPolicyStep(NamedTuple):
    """What the policy made of a glimpse."""

    inputs: Tensor  # the core's state, the map from the anchor, overlaps, place and time
    outputs: Tensor  # of the layers that read them: hidden units, and logits of places
    seen: Tensor  # units of the map
    here: Tensor  # their phases where the glimpse was taken
    there: Tensor  # and from where the map was read
    anchor: Tensor  # where the move started
    choice: Tensor  # place of the grid; of no meaning without


class MapPolicyCache(NamedTuple):
    """The same for all actions of an episode, (glimpses - 1, batch, ...)."""

    inputs: Tensor
    outputs: Tensor
    seen: Tensor
    here: Tensor
    there: Tensor
    anchors: Tensor
    choices: Tensor
    steps: list[MapPolicyStep]  # the same, one by one
    maps: Tensor  # (2, batch, ...): that after this glimpse, and that before, in turns
    locations: Tensor  # of the glimpses
    layers: tuple[Layer, ...]  # to the outputs, to the logits and, with a map, to its units
    versions: Versions  # of the weights that computed it


class MapPolicy(Policy):
    """Where to look next, whether to stop, and what to expect.

    The paper's policy reads the core's state, which is shaped by classification and early on says
    little about where things are. With ``policy_memory`` the policy keeps a Fourier map of its own,
    with weights learned from the reward. Read from where a move starts, it tells what lies in which
    direction, wherever that is.
    """

    middle: Tensor  # of the canvas
    frequencies: Tensor  # of the map
    octaves: Tensor  # of the features of places
    clock: Tensor

    def __init__(self, config: DigitsConfig) -> None:
        super().__init__()
        self.moves, self.width = config.moves, config.width
        self.centre_light = config.centre_light
        self.reach = 1.0 if config.moves == "absolute" else config.stride
        inputs, units, actions = config.width, config.policy_memory, config.glimpses - 1
        rng = stream(config.seed, "policy", 2)
        # From the width of the canvas to a few pixels.
        lengths = 0.5 * math.pi * 2.0 ** rng.uniform(0.0, 4.0, units)
        buffers = {
            "middle": torch.zeros(2),
            "octaves": octaves(config.location_features),
            "frequencies": frequency_vectors(rng, lengths),
            # Which glimpse it is: one row for each, so that a way to scan can be learned as such.
            "clock": torch.eye(actions)[:, None],
        }
        for name, buffer in buffers.items():
            self.register_buffer(name, buffer, persistent=False)
        self.map_encoder = None
        if units > 0:
            self.map_encoder = nn.Linear(config.pixels, units)
            overlaps = config.grid**2 if config.inhibition > 0 else 0
            inputs += 2 * units + overlaps + features_of_place(config) + actions
        outputs, hidden = config.grid**2 or 2, config.baseline_width
        self.locator = Locator(inputs, config.locator_width, outputs, config.stops)
        self.grid = PlaceGrid(config, inputs, self.reach) if config.grid > 0 else None
        self.baseline_hidden = nn.Linear(inputs, hidden) if hidden > 0 else None
        self.baseline = nn.Linear(hidden or inputs, 1)

    def output_layers(self) -> tuple[nn.Linear, ...]:
        layers = super().output_layers()
        return layers if self.grid is None else (*layers, self.grid.logits)

    # --- rolling out ---

    def new_cache(self, cache: EpisodeCache, locations: Tensor) -> MapPolicyCache:
        """Without a map, the states are all that is known."""
        states = cache.states[:-1]

        def room(size: int) -> Tensor:
            return states.new_empty(*states.shape[:-1], size)

        bias, weight = self.read_layers()
        front = self.locator.hidden.out_features
        front += 0 if self.grid is None else self.grid.logits.out_features
        out = self.locator.out
        layers = [(bias[:front], weight[:front].t()), (out.bias, out.weight.t())]
        inputs, units = states, self.frequencies.shape[1]
        if self.map_encoder is not None:
            inputs = room(weight.shape[1])
            inputs[..., weight.shape[1] - len(self.clock) :] = self.clock[: len(inputs)]
            layers.append((self.map_encoder.bias, self.map_encoder.weight.t()))
        outputs, seen, here, there = map(room, (front, units, 2 * units, 2 * units))
        anchors = states.new_zeros(*states.shape[:-1], 2)
        choices = torch.empty_like(anchors[..., 0], dtype=torch.long)
        whole = (inputs, outputs, seen, here, there, anchors, choices)
        steps = [MapPolicyStep(*view) for view in zip(*map(one_by_one, whole), strict=True)]
        return MapPolicyCache(
            inputs, outputs, seen, here, there, anchors, choices, steps,
            maps=states.new_empty(2, states.shape[1], 2 * units),
            locations=locations,
            layers=tuple(layers),
            versions=weight_versions(self),
        )  # fmt: skip

    def act(
        self, cache: MapPolicyCache, t: int, seen: Step, location: Tensor, uniform: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        now = cache.steps[t]
        anchor = self.write_anchor(seen, location, now.anchor)
        if self.map_encoder is not None:
            self.write_inputs(cache, t, seen, location)
        read, (bias, weight) = cache.layers[:2]
        linear(read, now.inputs, now.outputs)
        if self.grid is None:
            logits = torch.addmm(bias, now.outputs.relu_(), weight)
            return self.decide(logits, anchor)
        hidden, places = self.split(now.outputs)
        log_probs, stop = self.decide(
            torch.addmm(bias, hidden.relu_(), weight).add_(places), anchor
        )
        return self.grid.choose(log_probs, anchor, uniform, out=now.choice), stop

    def write_anchor(self, seen: Step, location: Tensor, out: Tensor) -> Tensor:
        """Where moves start: the middle of the canvas, here, or the centre of what was seen.

        A crumb of clutter is a centre, too, and what is out of reach from there is not found any
        more. Where too little light is left, moves therefore start from the middle again. ``out``
        is the middle to begin with.
        """
        if self.moves == "absolute":
            return out
        if self.moves == "relative":
            return out.copy_(location)
        _, left, centre = seen.place_inner
        return torch.where(left >= self.centre_light, centre, self.middle, out=out)

    def write_inputs(self, cache: MapPolicyCache, t: int, seen: Step, location: Tensor) -> None:
        """The core's state, the map as seen from the anchor, overlaps with places, the place."""
        now = cache.steps[t]
        linear(cache.layers[2], seen.glimpse, now.seen).relu_()
        phases_at(self.frequencies, location, out=now.here)
        before = cache.maps[(t - 1) % 2] if t > 0 else None
        fourier_map = add_to_map(now.seen, now.here, before, out=cache.maps[t % 2])
        phases_at(self.frequencies, now.anchor, out=now.there)
        rest = self.place(location, seen.place, now.anchor)
        after = self.width + fourier_map.shape[1]
        now.inputs[:, : self.width] = seen.state
        read_from(fourier_map, now.there, out=now.inputs[:, self.width : after])
        if self.grid is not None and self.grid.overlaps > 0:
            overlap = self.grid.overlap(cache.locations[: t + 1], now.anchor)
            rest = torch.cat([overlap, rest], dim=1)
        now.inputs[:, after : after + rest.shape[1]] = rest

    def place(self, location: Tensor, place: Tensor, anchor: Tensor) -> Tensor:
        """Features of a place: those of the discriminator, unless moves start elsewhere."""
        if self.centre_light == 0:
            return place
        return features_from(location, anchor, self.octaves)

    def split(self, outputs: Tensor) -> tuple[Tensor, ...]:
        """The hidden units, and the logits of places."""
        return outputs.tensor_split([self.locator.hidden.out_features], dim=-1)

    def decide(self, logits: Tensor, anchor: Tensor) -> tuple[Tensor, Tensor | None]:
        """The mean of the next location, or the log-probability of each place; and the stop."""
        stops = self.locator.stops
        aim = logits[..., :-1] if stops else logits
        if self.grid is not None:
            aim = functional.log_softmax(aim, dim=-1)
        else:
            aim = torch.tanh(aim)
            if self.moves != "absolute":
                aim = torch.add(anchor, aim, alpha=self.reach)
        return aim, stop_probability(logits[..., -1]) if stops else None

    # --- learning ---

    def actions(
        self, cache: MapPolicyCache, episode: EpisodeCache, samples: Tensor, std: float
    ) -> Actions:
        require_fresh(self, cache.versions)
        outputs, expected = self.outputs(cache, episode)
        if self.baseline_hidden is not None:
            expected = self.baseline(functional.relu(expected))
        aim, stop = self.aims(outputs, cache.anchors)
        if self.grid is None:
            return Actions(gaussian_log_prob(samples, aim, std), stop, expected[..., 0])
        # Around a place of the grid, chance is not a choice of its own.
        log_prob = aim.gather(-1, cache.choices[..., None])[..., 0]
        return Actions(log_prob, stop, expected[..., 0], choice=aim)

    def outputs(self, cache: MapPolicyCache, episode: EpisodeCache) -> tuple[Tensor, Tensor]:
        """Outputs of the layers that read the inputs, those of the baseline apart."""
        encoder, hidden = self.map_encoder, self.locator.hidden.out_features
        encoded = () if encoder is None else (encoder.weight, encoder.bias)
        layout = (self.width, hidden)
        return MapOutputs.apply(cache, episode.glimpses[:-1], layout, *self.read_layers(), *encoded)

    def aims(self, outputs: Tensor, anchors: Tensor) -> tuple[Tensor, Tensor | None]:
        if self.grid is None:
            return self.decide(self.locator.out(outputs), anchors)
        hidden, places = self.split(outputs)
        return self.decide(self.locator.out(hidden) + places, anchors)

    def read_layers(self) -> tuple[Tensor, Tensor]:
        """Bias and weight of all layers that read the inputs: hidden, places, baseline."""
        last = self.baseline if self.baseline_hidden is None else self.baseline_hidden
        biases, weights = [self.locator.hidden.bias], [self.locator.hidden.weight]
        if self.grid is not None:
            biases.append(self.grid.logits.bias)
            weights.append(self.grid.weight(self.frequencies))
        return torch.cat([*biases, last.bias]), torch.cat([*weights, last.weight])


class MapOutputs(torch.autograd.Function):
    """Outputs as a function of the weights, for an episode that was rolled out.

    States and places carry no gradient; the map does, to what its units see of a glimpse.
    """

    @staticmethod
    def forward(
        ctx: Any,
        cache: MapPolicyCache,
        glimpses: Tensor,
        layout: tuple[int, int],
        *weights: Tensor,
    ) -> tuple[Tensor, Tensor]:
        bias, weight, *_ = weights
        done = cache.outputs.shape[-1]
        ctx.cache, ctx.glimpses, ctx.layout = cache, glimpses, layout
        ctx.save_for_backward(weight)
        expected = cache.inputs @ weight[done:].t() + bias[done:]
        return cache.outputs.view_as(cache.outputs), expected

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> Any:
        cache: MapPolicyCache = ctx.cache
        (weight,), (before, hidden) = ctx.saved_tensors, ctx.layout
        grad = torch.cat(grad_outputs, dim=-1)
        through_relu(grad[..., :hidden], cache.outputs[..., :hidden])
        rows = grad.flatten(0, 1)
        grads = [rows.sum(0), rows.t() @ cache.inputs.flatten(0, 1)]
        if len(cache.layers) > 2:
            around = grad @ weight[:, before : before + cache.here.shape[-1]]
            seen = map_backward(around, cache.here, cache.there, cache.seen).flatten(0, 1)
            grads += [seen.t() @ ctx.glimpses.flatten(0, 1), seen.sum(0)]
        return None, None, None, *grads
