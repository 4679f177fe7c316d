"""The policy: a locator that, with DT-RAM, also decides to stop, and a baseline."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from irrl.losses import gaussian_log_prob
from irrl.seeding import stream
from irrl.tasks.digits.by_hand import Layer, Recalled, linear
from irrl.tasks.digits.config import DigitsConfig
from irrl.tasks.digits.discriminator import Memory
from irrl.tasks.digits.waves import (
    features_of,
    noted,
    octaves,
    phases_at,
    read_from,
    wave_vectors,
)

STOP_LIMIT = 1e-3  # stop probabilities stay within [1e-3, 1 - 1e-3]


class Policy(nn.Module):
    """Where to look next, whether to stop, and what to expect.

    The authors' policy reads the core's state, and nothing of its gradient goes back. That state is
    shaped by classification, and early on says little about where things are. With
    ``policy_memory`` the policy therefore keeps a map of its own: waves over the canvas, each
    weighted by what was seen where, summed over glimpses, with weights learned from the reward.
    Read from where a move starts, it tells what lies in which direction, wherever that is.
    """

    waves: Tensor
    clock: Tensor
    grid: Tensor
    frequencies: Tensor

    def __init__(self, config: DigitsConfig) -> None:
        super().__init__()
        self.stops, self.moves = config.stops, config.moves
        self.centre_light, self.centre_fade = config.centre_light, config.centre_fade
        self.register_buffer("frequencies", octaves(config.location_features), persistent=False)
        self.reach = 1.0 if config.moves == "absolute" else config.stride
        known, units = config.width, config.policy_memory
        self.what = None
        if units > 0:
            self.what = nn.Linear(config.scales * config.glimpse_size**2, units)
            places = (2 + 4 * config.location_features) * (1 + config.object_centred)
            known += 2 * units + places + config.steps - 1
        # Which glimpse it is: one row for each, so that a way to scan can be learned as such.
        self.register_buffer("clock", torch.eye(config.steps - 1)[:, None], persistent=False)
        rng = stream(config.seed, "policy", 2)
        # From the width of the canvas to a few pixels.
        lengths = 0.5 * math.pi * 2.0 ** rng.uniform(0.0, 4.0, units)
        self.register_buffer("waves", wave_vectors(rng, lengths), persistent=False)
        self.hidden = nn.Linear(known, config.locator_width)
        side = torch.linspace(-self.reach, self.reach, config.grid)
        grid = torch.cartesian_prod(side, side) if config.grid > 0 else side.new_empty(0, 2)
        self.register_buffer("grid", grid, persistent=False)
        self.aims = len(grid) or 2
        self.act = nn.Linear(config.locator_width, self.aims + config.stops)
        # Whether a place was seen is a linear question to the map: no need to think.
        self.glance = nn.Linear(known, self.aims + config.stops) if config.grid > 0 else None
        self.alike = nn.Parameter(torch.zeros(2 * units)) if config.equivariant else None
        self.before_map = config.width
        wide = config.baseline_width
        self.foresee = nn.Linear(known, wide) if wide > 0 else None
        self.expect = nn.Linear(wide or known, 1)

    def phases(self, location: Tensor, out: Tensor) -> Tensor:
        """Of the map's waves at a place; nothing without a map."""
        return out if self.what is None else phases_at(self.waves, location, out)

    def note(self, glimpses: Tensor, phases: Tensor) -> Tensor | None:
        """What glimpses add to the map."""
        return None if self.what is None else noted(functional.relu(self.what(glimpses)), phases)

    def knows(
        self, states: Tensor, notes: Tensor | None, anchor: Tensor, places: Tensor, clock: Tensor
    ) -> Tensor:
        """What the policy decides by: the core's state, the map from the anchor, place and time."""
        if notes is None:
            return states
        around = read_from(notes, phases_at(self.waves, anchor))
        time = clock.expand(*places.shape[:-1], -1)
        return torch.cat([states, *around, places, time], dim=-1)

    def light_left(self, memory: Memory, t: int, before: Tensor | None) -> Tensor | None:
        """Brightness that still holds the centre, (batch, 1): of the past, a glimpse lets some go.

        Nothing if the centre needs none to be held.
        """
        if self.centre_light == 0:
            return None
        total = memory.steps[t].light[:, :1]
        if before is None:
            return total
        return self.centre_fade * before + (total - memory.steps[t - 1].light[:, :1])

    def anchor(self, location: Tensor, centre: Tensor, left: Tensor | None = None) -> Tensor:
        """Where moves start: the middle of the canvas, here, or the centre of what was seen.

        A crumb of clutter is a centre, too, and what is out of reach from there is not found any
        more. Where too little light is left, moves therefore start from the middle again.
        """
        if self.moves == "absolute":
            return torch.zeros_like(location)
        if self.moves == "relative":
            return location
        return centre if left is None else torch.where(left >= self.centre_light, centre, 0.0)

    def place(self, location: Tensor, place: Tensor, anchor: Tensor) -> Tensor:
        """Features of a place: those of the discriminator, unless moves start elsewhere."""
        if self.centre_light == 0:
            return place
        both = (features_of(x, self.frequencies) for x in (location, location - anchor))
        return torch.cat(list(both), dim=-1)

    def think(self, known: Tensor, out: Tensor) -> Tensor:
        """The hidden units of the locator, while rolling out."""
        return linear((self.hidden.bias, self.hidden.weight.t()), known, out).relu_()

    def recall(self, known: Tensor, thought: Tensor) -> Tensor:
        """The same with their gradient, for what was thought while rolling out."""
        return Recalled.apply(thought, known, self.hidden.weight, self.hidden.bias)

    def glances(self) -> Layer | None:
        """Bias and transposed weight by which each place of the grid is judged at a glance.

        Every place has weights of its own. An equivariant policy adds the same question for all:
        what does the map show, seen from there? It learns once for all places that one was looked
        at, or lies beside something bright.
        """
        if self.glance is None:
            return None
        weight = self.glance.weight
        if self.alike is not None:
            cosine, sine = phases_at(self.waves, self.grid).chunk(2, dim=-1)
            even, odd = self.alike.chunk(2)
            asked = torch.cat([even * cosine - odd * sine, even * sine + odd * cosine], dim=-1)
            after = weight.shape[1] - self.before_map - asked.shape[1]
            stops = weight.shape[0] - asked.shape[0]
            weight = weight + functional.pad(asked, (self.before_map, after, 0, stops))
        return self.glance.bias, weight.t()

    def forward(
        self, known: Tensor, thought: Tensor, anchor: Tensor, glances: Layer | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """What it aims at, and the probability of stopping in place of going there.

        The aim is the mean of the next location; with a grid, the log-probability of each place.
        A rollout computes the layer of glances once for all steps.
        """
        raw = self.act(thought)
        glances = glances or self.glances()
        if glances is not None:
            bias, weight = glances
            raw = raw + (known @ weight + bias)
        aim = raw[..., : self.aims]
        if len(self.grid) > 0:
            aim = functional.log_softmax(aim, dim=-1)
        else:
            aim = torch.add(anchor, torch.tanh(aim), alpha=self.reach)
        if not self.stops:
            return aim, None
        return aim, torch.sigmoid(raw[..., -1]).clamp(STOP_LIMIT, 1.0 - STOP_LIMIT)

    def choose(self, aim: Tensor, anchor: Tensor, lot: Tensor | None, out: Tensor) -> Tensor:
        """The mean of the next location. A place of the grid is drawn by lot, or the likeliest."""
        if len(self.grid) == 0:
            return aim
        if lot is None:
            torch.argmax(aim, dim=-1, out=out)
        else:
            below = aim.exp().cumsum(dim=-1) < lot[:, None]
            torch.sum(below, dim=-1, out=out).clamp_(max=len(self.grid) - 1)
        return anchor + self.grid[out]

    def log_prob(self, aim: Tensor, samples: Tensor, choices: Tensor, std: float) -> Tensor:
        """Of locations as they were drawn; around a place of the grid, chance is not its own."""
        if len(self.grid) == 0:
            return gaussian_log_prob(samples, aim, std)
        return aim.gather(-1, choices[..., None])[..., 0]

    def baseline(self, known: Tensor) -> Tensor:
        if self.foresee is not None:
            known = functional.relu(self.foresee(known))
        return self.expect(known)[..., 0]
