"""Losses of policies, in PyTorch. Pure functions; time is the first axis, the batch the second."""

import math

import torch
from torch import Tensor


def gaussian_log_prob(sample: Tensor, mean: Tensor, std: float) -> Tensor:
    """Log-density of a diagonal Gaussian, summed over the last axis."""
    z = (sample - mean) / std
    normaliser = sample.shape[-1] * (math.log(std) + 0.5 * math.log(2.0 * math.pi))
    return -0.5 * z.square().sum(dim=-1) - normaliser


def reinforce_loss(log_prob_t: Tensor, advantage_t: Tensor, taken_t: Tensor) -> Tensor:
    """Summed over the actions taken, averaged over the batch; advantages are constants."""
    if not log_prob_t.shape == advantage_t.shape == taken_t.shape:
        raise ValueError(
            "log_prob_t, advantage_t and taken_t must have one shape, got "
            f"{tuple(log_prob_t.shape)}, {tuple(advantage_t.shape)}, {tuple(taken_t.shape)}"
        )
    weighted = torch.where(taken_t, log_prob_t * advantage_t.detach(), 0.0)
    return -weighted.sum(dim=0).mean()


def baseline_loss(expected_t: Tensor, return_t: Tensor, taken_t: Tensor) -> Tensor:
    """Mean squared error over the actions that were taken."""
    errors = torch.where(taken_t, (expected_t - return_t).square(), 0.0)
    return errors.sum() / taken_t.sum().clamp(min=1)


# --- PPO ---


def mean_over_taken(values_t: Tensor, taken_t: Tensor) -> Tensor:
    """Over the actions that were taken; what the others hold does no harm."""
    if values_t.shape != taken_t.shape:
        raise ValueError(
            f"values and taken_t must have one shape, got {tuple(values_t.shape)}, "
            f"{tuple(taken_t.shape)}"
        )
    return torch.where(taken_t, values_t, 0.0).sum() / taken_t.sum().clamp(min=1)


def ppo_loss(
    log_prob_t: Tensor, old_log_prob_t: Tensor, advantage_t: Tensor, taken_t: Tensor, clip: float
) -> Tensor:
    """The clipped surrogate of PPO, averaged over the actions taken; advantages are constants.

    Nothing is gained by making an action more, or less, likely than ``1 + clip``, or ``1 - clip``,
    times what it was.
    """
    advantage_t, old_log_prob_t = advantage_t.detach(), old_log_prob_t.detach()
    ratio = torch.exp(torch.where(taken_t, log_prob_t - old_log_prob_t, 0.0))
    clipped = ratio.clamp(1.0 - clip, 1.0 + clip)
    return -mean_over_taken(torch.minimum(ratio * advantage_t, clipped * advantage_t), taken_t)


def value_loss(
    value_t: Tensor, old_value_t: Tensor, return_t: Tensor, taken_t: Tensor, clip: float
) -> Tensor:
    """Squared error over the actions taken; nothing is gained by moving farther than ``clip``."""
    old_value_t, return_t = old_value_t.detach(), return_t.detach()
    near = old_value_t + (value_t - old_value_t).clamp(-clip, clip)
    errors = torch.maximum((value_t - return_t).square(), (near - return_t).square())
    return mean_over_taken(errors, taken_t)


def entropy(log_probs: Tensor) -> Tensor:
    """Of distributions over the last axis, in nats."""
    return -(log_probs.exp() * log_probs).sum(dim=-1)
