"""Losses of policies and discriminators, in PyTorch. Pure functions.

Time is the first axis, the batch the second. ``taken_t`` (T, B) marks the actions that were taken:
what the others hold, be it infinite, does no harm.
"""

import math

import torch
from torch import Tensor

from irrl.episodes import at_last_step, mean_over_taken, require_one_shape, steps_taken

__all__ = [
    "NORMALISATION",
    "SUPERVISION",
    "at_last_step",
    "baseline_loss",
    "discriminator_loss",
    "entropy",
    "gaussian_log_prob",
    "label_nll",
    "mean_over_taken",
    "normalise_advantage",
    "ppo_loss",
    "reinforce_loss",
    "steps_taken",
    "value_loss",
]

SUPERVISION = ("last", "all")
"""Where a discriminator is taught: after the last step, or after every step as well."""

NORMALISATION = ("none", "scale", "standardise")
"""What can be done to advantages."""


# --- the discriminator ---


def label_nll(log_probs: Tensor, labels: Tensor) -> Tensor:
    """Negative log-probability of each label: its cross-entropy.

    Args:
        log_probs: shape ``(..., B, K)``.
        labels: shape ``(B,)``, the same for all leading axes.

    Returns:
        Shape ``(..., B)``.

    Example:
        >>> import torch
        >>> label_nll(torch.tensor([[-0.5, -1.0], [-2.0, -0.25]]), torch.tensor([0, 1]))
        tensor([0.5000, 0.2500])
    """
    if labels.ndim != 1 or labels.shape != log_probs.shape[-2:-1]:
        raise ValueError(
            "log_probs must have shape (..., B, K) and labels (B,), got "
            f"{tuple(log_probs.shape)} and {tuple(labels.shape)}"
        )
    return -log_probs.gather(-1, labels.expand(log_probs.shape[:-1])[..., None])[..., 0]


def discriminator_loss(
    log_probs: Tensor,
    labels: Tensor,
    lengths: Tensor,
    supervision: str = "last",
    *,
    episode_share: float = 1.0,
    step_share: float = 1.0,
) -> Tensor:
    """Cross-entropy after the last step; if all are supervised, the mean over all steps is added.

    Args:
        log_probs: shape ``(T, B, K)``; with T = 1 of the last step of each episode.
        labels: shape ``(B,)``.
        lengths: of the episodes, shape ``(B,)``.
        supervision: "last" or "all".
        episode_share: weight of the first mean: for a part of a batch, its share of the episodes.
        step_share: weight of the second mean: for a part of a batch, its share of the steps.

    Returns:
        A scalar.

    Example:
        >>> import torch
        >>> log_probs = torch.tensor([[[0.5, 0.5]], [[0.25, 0.75]]]).log()
        >>> discriminator_loss(log_probs, torch.tensor([1]), torch.tensor([2]))
        tensor(0.2877)
        >>> discriminator_loss(log_probs, torch.tensor([1]), torch.tensor([2]), "all")
        tensor(0.7781)
    """
    if supervision not in SUPERVISION:
        raise ValueError(
            f"supervision must be one of {', '.join(SUPERVISION)}, got {supervision!r}"
        )
    nll_t = label_nll(log_probs, labels)
    loss = episode_share * at_last_step(nll_t, lengths).mean()
    if supervision == "last":
        return loss
    return loss + step_share * mean_over_taken(nll_t, steps_taken(len(nll_t), lengths))


# --- the policy: REINFORCE ---


def gaussian_log_prob(sample: Tensor, mean: Tensor, std: float) -> Tensor:
    """Log-density of a diagonal Gaussian.

    Args:
        sample: shape ``(..., D)``.
        mean: the same shape.
        std: standard deviation on each axis.

    Returns:
        Summed over the last axis, shape ``(...)``.

    Example:
        >>> import torch
        >>> gaussian_log_prob(torch.zeros(1, 2), torch.zeros(1, 2), 1.0)
        tensor([-1.8379])
    """
    z = (sample - mean) / std
    normaliser = sample.shape[-1] * (math.log(std) + 0.5 * math.log(2.0 * math.pi))
    return -0.5 * z.square().sum(dim=-1) - normaliser


def normalise_advantage(advantage_t: Tensor, taken_t: Tensor, how: str) -> Tensor:
    """Bring advantages to unit size over the actions taken.

    Args:
        advantage_t: shape ``(T, B)``.
        taken_t: the same shape, bool.
        how: "none"; "scale" divides by their standard deviation; "standardise" subtracts their
            mean first.

    Returns:
        The same shape.

    Example:
        >>> import torch
        >>> advantage_t, taken_t = torch.tensor([[1.0, 3.0]]), torch.tensor([[True, True]])
        >>> normalise_advantage(advantage_t, taken_t, "scale")
        tensor([[1., 3.]])
        >>> normalise_advantage(advantage_t, taken_t, "standardise")
        tensor([[-1.,  1.]])
    """
    require_one_shape(advantage_t=advantage_t, taken_t=taken_t)
    if how not in NORMALISATION:
        raise ValueError(f"how must be one of {', '.join(NORMALISATION)}, got {how!r}")
    if how == "none" or advantage_t.numel() == 0:
        return advantage_t
    among = advantage_t[taken_t]
    centred = advantage_t - among.mean() if how == "standardise" else advantage_t
    return centred / among.std(correction=0).clamp(min=1e-6)


def reinforce_loss(
    log_prob_t: Tensor, advantage_t: Tensor, taken_t: Tensor, *, detach: bool = True
) -> Tensor:
    """The loss of REINFORCE, summed over the actions taken, averaged over the batch.

    Args:
        log_prob_t: of the actions, shape ``(T, B)``.
        advantage_t: the same shape.
        taken_t: the same shape, bool.
        detach: advantages are constants. False lets the gradient pass through them into the
            discriminator, as the authors' code does.

    Returns:
        A scalar.

    Example:
        >>> import torch
        >>> log_prob_t, taken_t = torch.tensor([[-1.0], [-2.0]]), torch.tensor([[True], [False]])
        >>> reinforce_loss(log_prob_t, torch.ones(2, 1), taken_t)
        tensor(1.)
    """
    require_one_shape(log_prob_t=log_prob_t, advantage_t=advantage_t, taken_t=taken_t)
    if detach:
        advantage_t = advantage_t.detach()
    weighted = torch.where(taken_t, log_prob_t * advantage_t, 0.0)
    return -weighted.sum(dim=0).mean()


def baseline_loss(value_t: Tensor, return_t: Tensor, taken_t: Tensor) -> Tensor:
    """Mean squared error of a baseline over the actions taken.

    Args:
        value_t: what was expected before each action, shape ``(T, B)``.
        return_t: what followed it, the same shape.
        taken_t: the same shape, bool.

    Returns:
        A scalar; zero if no action was taken.

    Example:
        >>> import torch
        >>> taken_t = torch.tensor([[True, False]])
        >>> baseline_loss(torch.tensor([[1.0, 5.0]]), torch.tensor([[3.0, 0.0]]), taken_t)
        tensor(4.)
    """
    require_one_shape(value_t=value_t, return_t=return_t, taken_t=taken_t)
    return mean_over_taken((value_t - return_t).square(), taken_t)


# --- the policy: PPO ---


def ppo_loss(
    log_prob_t: Tensor, old_log_prob_t: Tensor, advantage_t: Tensor, taken_t: Tensor, clip: float
) -> Tensor:
    """The clipped surrogate of PPO, averaged over the actions taken; advantages are constants.

    Nothing is won by making an action more, or less, likely than ``1 + clip``, or ``1 - clip``,
    times what it was.

    Args:
        log_prob_t: of the actions under the policy that learns, shape ``(T, B)``.
        old_log_prob_t: under the policy that acted, the same shape.
        advantage_t: the same shape.
        taken_t: the same shape, bool.
        clip: how far ratios of probabilities count.

    Returns:
        A scalar.

    Example:
        >>> import torch
        >>> new, taken_t = torch.tensor([[0.9]]).log(), torch.tensor([[True]])
        >>> ppo_loss(new, torch.tensor([[0.5]]).log(), torch.ones(1, 1), taken_t, 0.2)
        tensor(-1.2000)
    """
    require_one_shape(log_prob_t=log_prob_t, old_log_prob_t=old_log_prob_t, advantage_t=advantage_t)
    advantage_t, old_log_prob_t = advantage_t.detach(), old_log_prob_t.detach()
    ratio = torch.exp(torch.where(taken_t, log_prob_t - old_log_prob_t, 0.0))
    clipped = ratio.clamp(1.0 - clip, 1.0 + clip)
    return -mean_over_taken(torch.minimum(ratio * advantage_t, clipped * advantage_t), taken_t)


def value_loss(
    value_t: Tensor, old_value_t: Tensor, return_t: Tensor, taken_t: Tensor, clip: float
) -> Tensor:
    """Squared error over the actions taken; nothing is won by moving farther than ``clip``.

    Args:
        value_t: by the critic that learns, shape ``(T, B)``.
        old_value_t: by the critic of the rollout, the same shape.
        return_t: the same shape.
        taken_t: the same shape, bool.
        clip: how far a value may move from the old one.

    Returns:
        A scalar.

    Example:
        >>> import torch
        >>> one = torch.ones(1, 1)
        >>> value_loss(one, 0 * one, one, one.bool(), 0.2)
        tensor(0.6400)
    """
    require_one_shape(value_t=value_t, old_value_t=old_value_t, return_t=return_t)
    old_value_t, return_t = old_value_t.detach(), return_t.detach()
    near = old_value_t + (value_t - old_value_t).clamp(-clip, clip)
    errors = torch.maximum((value_t - return_t).square(), (near - return_t).square())
    return mean_over_taken(errors, taken_t)


def entropy(log_probs: Tensor) -> Tensor:
    """Entropy of distributions over the last axis, in nats.

    Args:
        log_probs: shape ``(..., K)``.

    Returns:
        Shape ``(...)``.

    Example:
        >>> import torch
        >>> entropy(torch.tensor([0.5, 0.5]).log())
        tensor(0.6931)
    """
    return -(log_probs.exp() * log_probs).sum(dim=-1)
