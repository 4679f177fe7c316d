"""Pieces of forward and backward passes that are written by hand."""

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


class Recalled(torch.autograd.Function):
    """A rectified linear layer whose output is known already."""

    @staticmethod
    def forward(ctx: Any, output: Tensor, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(output, x, weight)
        return output.view_as(output)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> Any:
        output, x, weight = ctx.saved_tensors
        grad = through_relu(grad_outputs[0].contiguous(), output, torch.empty_like(output))
        rows = grad.flatten(0, -2)
        grad_x = grad @ weight if ctx.needs_input_grad[1] else None
        return None, grad_x, rows.t() @ x.flatten(0, -2), rows.sum(0)
