"""The manual backward pass: gradients of episodes from what their rollout left behind.

Rolling out must go step by step, since each glimpse decides on the next. The gradient need not:
the rollout keeps what it computed, and the backward pass takes one matrix product over all steps
for each weight. It gives what autograd gives for `ram`, in fewer operations.

What was kept holds for the weights it was computed with, and for no others: `require_fresh`.
"""

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional

if TYPE_CHECKING:
    from irrl.tasks.digits.discriminator import EpisodeCache
    from irrl.tasks.digits.policy import PolicyCache

Layer = tuple[Tensor, Tensor]
"""Bias and transposed weight."""

Versions = tuple[tuple[int, int], ...]
ThroughTime = Callable[["EpisodeCache", Tensor, Tensor], tuple[Tensor, Tensor]]
"""(cache, weight from state to state, gradient of states) -> gradients of both inputs of a core."""


# --- activations belong to weights ---


def weight_versions(model: nn.Module) -> Versions:
    """Where the parameters of a model lie, and how often each was changed in place."""
    return tuple((p.data_ptr(), p._version) for p in model.parameters())


def require_fresh(model: nn.Module, versions: Versions) -> None:
    """Raise if the weights of a model are not those with which an episode was rolled out."""
    if weight_versions(model) != versions:
        raise RuntimeError(
            f"the weights of {type(model).__name__} changed after this episode was rolled out: "
            "its activations are stale; roll out again"
        )


# --- pieces ---


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


def grad_of_all(grad: Tensor, states: Tensor) -> Tensor:
    """The gradient of all states, from that of the last of them."""
    return functional.pad(grad, (0, 0, 0, 0, len(states) - len(grad), 0))


# --- the discriminator ---


class RecurrentStates(torch.autograd.Function):
    """States of the core as a function of the weights, for an episode that was rolled out."""

    @staticmethod
    def forward(
        ctx: Any, cache: "EpisodeCache", which: slice, through_time: ThroughTime, *weights: Tensor
    ) -> Tensor:
        ctx.cache, ctx.through_time = cache, through_time
        ctx.save_for_backward(*weights)
        return cache.states[which]

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> Any:
        (grad_states,) = grad_outputs
        cache: EpisodeCache = ctx.cache
        encoded, features = (inner.flatten(0, 1) for inner in cache.inner[:2])
        what, _, _, _, combine, _, from_glimpse, _, from_state, _ = ctx.saved_tensors
        to_glimpse, to_state = (
            grad.flatten(0, 1) for grad in ctx.through_time(cache, from_state, grad_states)
        )
        before = cache.states[:-1].flatten(0, 1)
        (half, pixels), batch = what.shape, grad_states.shape[1]

        to_features = through_relu(to_glimpse @ from_glimpse, features)
        to_encoded = through_relu(to_features @ combine, encoded)
        both, bias = (cache.entered.flatten(0, 1).t() @ to_encoded).t(), to_encoded.sum(0)
        grads = [
            both[:half, :pixels], bias[:half],
            both[half:, pixels:], bias[half:],
            to_features.t() @ encoded, to_features.sum(0),
            to_glimpse.t() @ features, to_glimpse.sum(0),
            to_state[batch:].t() @ before, to_state.sum(0),
        ]  # fmt: skip
        return None, None, None, *grads


def rnn_backward(cache: "EpisodeCache", from_state: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    """Gradient of what goes into the rectifier of each step, from glimpse and state alike."""
    grads = torch.empty_like(cache.states)
    later: Tensor | None = None
    given = [*repeat(None, len(grads) - len(grad)), *grad]
    for here, step, out in zip(given[::-1], cache.steps[::-1], grads.unbind()[::-1], strict=True):
        if here is None:
            assert later is not None
            here = torch.mm(later, from_state)
        elif later is not None:
            here = torch.addmm(here, later, from_state)
        later = through_relu(here, step.state, out=out)
    return grads, grads


# --- the policy ---


class LocatorOutputs(torch.autograd.Function):
    """Hidden units and baseline as functions of the weights; states carry no gradient."""

    @staticmethod
    def forward(ctx: Any, cache: "PolicyCache", *weights: Tensor) -> tuple[Tensor, Tensor]:
        _, _, baseline_weight, baseline_bias = weights
        ctx.cache = cache
        expected = cache.inputs @ baseline_weight.t() + baseline_bias
        return cache.hidden.view_as(cache.hidden), expected

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> Any:
        cache: PolicyCache = ctx.cache
        grad, units = torch.cat(grad_outputs, dim=-1), cache.hidden.shape[-1]
        through_relu(grad[..., :units], cache.hidden)
        rows = grad.flatten(0, 1)
        weight, bias = rows.t() @ cache.inputs.flatten(0, 1), rows.sum(0)
        return None, weight[:units], bias[:units], weight[units:], bias[units:]
