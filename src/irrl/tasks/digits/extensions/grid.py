"""A grid of places to choose among, with inhibition of return and one query for all places."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from irrl.tasks.digits.extensions.config import DigitsConfig
from irrl.tasks.digits.extensions.fourier import phases_at, turn_back


class PlaceGrid(nn.Module):
    """Places within reach of where a move starts. Each gets a logit by what the policy knows.

    ``logits`` are linear in all of the policy's inputs: whether a place was seen is a linear
    question to its map. What is added to their weights:

    * equivariance: the same query to the map as seen from each place. So it is learned once for all
      places that one was looked at, or lies beside something bright.
    * inhibition of return: minus ``inhibition_scale`` times how much of a place was shown.
    """

    side: Tensor
    offsets: Tensor

    def __init__(self, config: DigitsConfig, inputs: int, reach: float) -> None:
        super().__init__()
        side = torch.linspace(-reach, reach, config.grid)
        self.register_buffer("side", side, persistent=False)
        self.register_buffer("offsets", torch.cartesian_prod(side, side), persistent=False)
        self.logits = nn.Linear(inputs, len(self.offsets) + config.stops)
        units, self.inhibition = 2 * config.policy_memory, config.inhibition
        self.query = nn.Parameter(torch.zeros(units)) if config.equivariant else None
        inhibits = config.inhibition > 0
        self.inhibition_log_scale = nn.Parameter(torch.zeros(1)) if inhibits else None
        self.map_columns = slice(config.width, config.width + units)
        self.overlaps = len(self.offsets) if inhibits else 0  # inputs that tell them
        self.glimpse_size = 2.0 * config.glimpse_size / config.canvas_size

    def weight(self, frequencies: Tensor) -> Tensor:
        """All weights of the logits; ``frequencies`` are those of the policy's map."""
        weight = self.logits.weight
        if self.query is not None:
            asked = turn_back(self.query, phases_at(frequencies, self.offsets))
            weight = weight + self._among_inputs(asked, self.map_columns.start)
        if self.inhibition_log_scale is not None:
            against = -self.inhibition_scale() * torch.eye(len(self.offsets), device=weight.device)
            weight = weight + self._among_inputs(against, self.map_columns.stop)
        return weight

    def inhibition_scale(self) -> Tensor:
        assert self.inhibition_log_scale is not None
        return self.inhibition * self.inhibition_log_scale.exp()

    def _among_inputs(self, weights: Tensor, first: int) -> Tensor:
        """Weights of the places on some of the inputs, as part of those on all of them."""
        after = self.logits.in_features - first - weights.shape[1]
        stop = self.logits.out_features - len(weights)
        return functional.pad(weights, (first, after, 0, stop))

    def overlap(self, looked: Tensor, anchor: Tensor) -> Tensor:
        """How much of a glimpse at each place others at ``looked`` have shown, (batch, places)."""
        return overlap_with(looked, anchor, self.side, self.glimpse_size)

    def choose(
        self, log_probs: Tensor, anchor: Tensor, uniform: Tensor | None, out: Tensor
    ) -> Tensor:
        """A place by uniform random numbers, or the likeliest; its index is written to ``out``."""
        if uniform is None:
            torch.argmax(log_probs, dim=-1, out=out)
        else:
            below = log_probs.exp().cumsum(dim=-1) < uniform[:, None]
            torch.sum(below, dim=-1, out=out).clamp_(max=len(self.offsets) - 1)
        return anchor + self.offsets[out]


def overlap_with(looked: Tensor, anchor: Tensor, side: Tensor, size: float) -> Tensor:
    """How much of a glimpse at each place of a grid others have shown, added up, (batch, places).

    ``looked`` is where, (glimpses, batch, 2); ``side`` the columns, and the rows, of the grid from
    its ``anchor``. Two squares share what their columns share times what their rows do.
    """
    there = (anchor[..., None] + side).clamp(-1.0, 1.0)
    shared = (1.0 - (there - looked[..., None]).abs() / size).clamp_(min=0.0)
    columns, rows = shared.permute(2, 1, 3, 0)
    return (columns @ rows.transpose(1, 2)).flatten(1)
