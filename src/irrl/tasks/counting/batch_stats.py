"""What is measured while a run trains: its episodes as they were sampled, and its updates."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from irrl.diagnostics import discriminator_health
from irrl.nn.distributed import World
from irrl.tasks.contract import Metrics
from irrl.tasks.counting.config import CountingConfig
from irrl.tasks.counting.evaluate import log_prior_of


class BatchStats(NamedTuple):
    """Of a batch of episodes, and of the updates made from it."""

    log_count: Tensor  # (n, 7)
    labels: Tensor  # (n,)
    rewards: Tensor  # (n,): without the bonus
    paid: Tensor  # (n,): with it
    moves: Tensor  # (n,)
    updates: list[Metrics]  # of each update, as far as this process has worked on it


def training_metrics(config: CountingConfig, recent: Sequence[BatchStats], world: World) -> Metrics:
    """Metrics of the batches since the last row; none before the first batch."""
    if not recent:
        return {}
    log_count, labels, rewards, paid, moves = (
        torch.cat([getattr(stats, name) for stats in recent]).cpu()
        for name in ("log_count", "labels", "rewards", "paid", "moves")
    )
    health = discriminator_health(
        log_count.numpy(), labels.numpy(), config.reward_fn(), log_prior_of(config)
    )
    shares = world.gather([metrics for stats in recent for metrics in stats.updates])
    updates = [summed(of_update) for of_update in zip(*shares, strict=True)]
    metrics = {
        "moves": moves.float().mean().item(),
        **health,
        "reward_mean": rewards.mean().item(),  # by an oracle, if there is one
        "reward_std": rewards.std(correction=0).item(),
        **({"bonus_mean": (paid - rewards).mean().item()} if config.has_bonus else {}),
        **{name: float(np.mean([u[name] for u in updates])) for name in updates[0]},
    }
    return {f"train_{name}": value for name, value in metrics.items()}


def summed(shares: Sequence[Metrics]) -> Metrics:
    return {name: sum(metrics[name] for metrics in shares) for name in shares[0]}
