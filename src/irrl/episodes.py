"""Episodes of different lengths side by side, in PyTorch: which steps count, and their means.

Time is the first axis, the batch the second.
"""

import torch
from torch import Tensor


def steps_taken(steps: int, lengths: Tensor) -> Tensor:
    """Mark the steps that belong to an episode.

    Args:
        steps: how many there are, T.
        lengths: of the episodes, shape ``(B,)``.

    Returns:
        Whether ``t < lengths``, shape ``(T, B)``.

    Example:
        >>> import torch
        >>> steps_taken(2, torch.tensor([1, 2]))
        tensor([[ True,  True],
                [False,  True]])
    """
    return torch.arange(steps, device=lengths.device)[:, None] < lengths


def at_last_step(per_step: Tensor, lengths: Tensor) -> Tensor:
    """Pick the last step of each episode.

    Args:
        per_step: shape ``(T, B, ...)``; with T = 1 it is taken to be kept for that step only.
        lengths: of the episodes, from 1 to T, shape ``(B,)``.

    Returns:
        Shape ``(B, ...)``.

    Example:
        >>> import torch
        >>> at_last_step(torch.tensor([[1, 2], [3, 4]]), torch.tensor([1, 2]))
        tensor([1, 4])
    """
    if per_step.shape[1:2] != lengths.shape:
        raise ValueError(
            "per_step must have shape (T, B, ...) and lengths (B,), got "
            f"{tuple(per_step.shape)} and {tuple(lengths.shape)}"
        )
    if len(per_step) == 1:
        return per_step[0]
    return per_step[lengths - 1, torch.arange(len(lengths), device=per_step.device)]


def mean_over_taken(values_t: Tensor, taken_t: Tensor) -> Tensor:
    """Mean over the actions that were taken.

    Args:
        values_t: shape ``(T, B)``.
        taken_t: the same shape, bool.

    Returns:
        A scalar; zero if no action was taken.

    Example:
        >>> import torch
        >>> mean_over_taken(torch.tensor([[1.0, torch.inf]]), torch.tensor([[True, False]]))
        tensor(1.)
    """
    require_one_shape(values_t=values_t, taken_t=taken_t)
    return torch.where(taken_t, values_t, 0.0).sum() / taken_t.sum().clamp(min=1)


def require_one_shape(**tensors: Tensor) -> None:
    """Refuse tensors whose shapes differ: broadcasting would hide a mistake.

    Args:
        **tensors: by name.

    Returns:
        Nothing.

    Raises:
        ValueError: with the names and their shapes.

    Example:
        >>> import torch
        >>> require_one_shape(a=torch.ones(2, 3), b=torch.ones(3))
        Traceback (most recent call last):
            ...
        ValueError: tensors must have one shape, got a (2, 3), b (3,)
    """
    if len({x.shape for x in tensors.values()}) > 1:
        said = ", ".join(f"{name} {tuple(x.shape)}" for name, x in tensors.items())
        raise ValueError(f"tensors must have one shape, got {said}")
