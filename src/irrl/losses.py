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
