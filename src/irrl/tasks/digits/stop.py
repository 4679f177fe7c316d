"""DT-RAM's stop: a probability that can always be left again."""

import math
from typing import Any

import torch
from torch import Tensor

STOP_LIMIT = 0.01  # stop probabilities stay within [0.01, 0.99]: neither is ever given up
STOP_LOGIT_LIMIT = math.log(1.0 / STOP_LIMIT - 1.0)


def stop_probability(logit: Tensor) -> Tensor:
    return torch.sigmoid(Bounded.apply(logit, STOP_LOGIT_LIMIT))


class Bounded(torch.autograd.Function):
    """A value within ``limit`` of zero, whose gradient still leads back from the bound.

    That of `clamp` is zero there: what has reached a bound stays at it for ever.
    """

    @staticmethod
    def forward(ctx: Any, value: Tensor, limit: float) -> Tensor:
        ctx.save_for_backward(value)
        ctx.limit = limit
        return value.clamp(-limit, limit)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> Any:
        (grad,) = grad_outputs
        (value,) = ctx.saved_tensors
        leads_out = (value.abs() >= ctx.limit) & (value * grad < 0)  # a step goes against it
        return torch.where(leads_out, 0.0, grad), None
