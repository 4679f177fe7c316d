"""Pieces of forward and backward passes that are written by hand."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

Layer = tuple[Tensor, Tensor]
"""Bias and transposed weight."""


def linear(layer: Layer, x: Tensor, out: Tensor) -> Tensor:
    bias, weight = layer
    return torch.addmm(bias, x, weight, out=out)


def through_relu(grad: Tensor, output: Tensor, out: Tensor | None = None) -> Tensor:
    """The gradient of a rectifier's input, from that of its output; in place if not told where."""
    out = grad if out is None else out
    return torch.ops.aten.threshold_backward.grad_input(grad, output, 0, grad_input=out)


def one_by_one(per_step: Tensor) -> Sequence[Tensor]:
    """Views of (steps, ...); of one that is empty, the same for all, since each takes its time."""
    return per_step.unbind() if per_step.numel() > 0 else [per_step] * len(per_step)


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
