"""Several classifiers on one hidden state, side by side in one linear layer.

They start apart, and each learns by a cross-entropy of its own. What they say is read as their
mixture; where they disagree, too little was seen to tell which of them is right.
"""

import array_api_compat.torch as xp
import torch
from torch import Tensor, nn
from torch.nn import functional

from irrl.ensembles import disagreement, log_mean_exp
from irrl.losses import discriminator_loss


def head_log_probs(layer: nn.Linear, states: Tensor, heads: int) -> Tensor:
    """What each head says of states (..., width): (heads, ..., labels)."""
    logits = layer(states).unflatten(-1, (heads, -1))
    return functional.log_softmax(logits, dim=-1).movedim(-2, 0)


def mixture(log_probs: Tensor) -> Tensor:
    """What all heads say together, (..., labels), with gradient; that of one as it is."""
    if len(log_probs) == 1:
        return log_probs[0]
    return log_mean_exp(xp, log_probs)


def heads_loss(
    log_probs: Tensor, labels: Tensor, lengths: Tensor, supervision: str, **shares: float
) -> Tensor:
    """The mean over heads (heads, steps, batch, labels) of what `discriminator_loss` says of each.

    A head learns nothing from another, so that they stay apart where nothing was learned.
    """
    losses = [
        discriminator_loss(head, labels, lengths, supervision, **shares) for head in log_probs
    ]
    return torch.stack(losses).mean()


def mean_disagreement(log_probs: Tensor) -> dict[str, float]:
    """A metric of heads (heads, n, labels), in nats; none of a single head."""
    if len(log_probs) == 1:
        return {}
    gaps = disagreement(log_probs.detach().double(), validate=False)
    return {"ensemble_disagreement": float(gaps.mean())}
