"""What a run of digits must remember: models, optimiser, oracle; to and from a checkpoint."""

from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from irrl.errors import UserError
from irrl.nn.models import (
    ORACLE,
    Arrays,
    fill,
    make_adam,
    open_oracle,
    restore_adam,
    tensors_of,
    to_arrays,
)
from irrl.runs.checkpoint import Checkpoint
from irrl.runs.run import Run
from irrl.tasks.digits.discriminator import Discriminator
from irrl.tasks.digits.extensions.config import DigitsConfig
from irrl.tasks.digits.models import initial_models, make_discriminator, make_policy
from irrl.tasks.digits.policy import Policy

SEEN_ALIKE = ("canvas_size", "glimpse_size", "scales", "glimpses")
"""Settings in which an oracle must agree: it is fed the glimpses of the run it judges."""


class Learner(NamedTuple):
    """Everything that changes while a run trains."""

    discriminator: Discriminator
    policy: Policy
    optimiser: torch.optim.Adam
    oracle: Discriminator | None

    def parameters(self) -> list[Tensor]:
        return [p for group in self.optimiser.param_groups for p in group["params"]]


# --- made anew ---


def initial_learner(config: DigitsConfig, device: torch.device) -> Learner:
    discriminator, policy = initial_models(config, device)
    oracle = read_oracle(Path(config.oracle), config, device) if config.oracle else None
    return Learner(discriminator, policy, make_optimiser(config, discriminator, policy), oracle)


def make_optimiser(
    config: DigitsConfig, discriminator: Discriminator, policy: Policy
) -> torch.optim.Adam:
    groups: list[dict[str, Any]] = [
        {"params": list(discriminator.parameters()), "lr": config.learning_rate},
        {"params": list(policy.parameters()), "lr": config.policy_learning_rate},
    ]
    optimiser = make_adam(groups)
    optimiser.register_step_post_hook(note_changes)
    return optimiser


def note_changes(optimiser: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
    """Count a step as a change of the weights, by which stale activations are noticed.

    Fused Adam changes them without autograd's knowledge.
    """
    for group in optimiser.param_groups:
        for parameter in group["params"]:
            torch.autograd.graph.increment_version(parameter)


def read_oracle(folder: Path, config: DigitsConfig, device: torch.device) -> Discriminator:
    """The discriminator of a converged run, frozen, for a run that it can judge."""
    run, other = check_oracle(folder, config)
    return restored_models(other, run.last_checkpoint().arrays, device)[0].requires_grad_(False)


def check_oracle(folder: Path, config: DigitsConfig) -> tuple[Run, DigitsConfig]:
    """The run of an oracle and its configuration, if it can judge a run of this one."""
    run, other = open_oracle(folder, config, SEEN_ALIKE)
    if (config.stops or config.credit == "dense") and other.supervision == "last":
        raise UserError(
            f"oracle {folder} was taught after the last glimpse only; this run asks it after each "
            "(it stops, or has dense credit): train an oracle with supervision all"
        )
    return run, other


# --- to and from a checkpoint ---


def to_checkpoint(learner: Learner) -> tuple[Arrays, dict[str, Any]]:
    """Arrays and JSON-like state. An oracle goes in too: a run depends on no other folder."""
    tensors: dict[str, Tensor] = {}
    for prefix, model in _parts(learner.discriminator, learner.policy):
        tensors.update(tensors_of(model, prefix, learner.optimiser))
    if learner.oracle is None:
        return to_arrays(tensors), {}
    tensors.update(tensors_of(learner.oracle, ORACLE))
    return to_arrays(tensors), {"oracle": learner.oracle.config.settings()}


def restored_learner(config: DigitsConfig, checkpoint: Checkpoint, device: torch.device) -> Learner:
    discriminator, policy = restored_models(config, checkpoint.arrays, device)
    optimiser = make_optimiser(config, discriminator, policy)
    for prefix, model in _parts(discriminator, policy):
        restore_adam(optimiser, model, prefix, checkpoint.arrays)
    oracle = None
    if config.oracle:
        its = DigitsConfig.from_settings(checkpoint.state.get("oracle", {}))
        oracle = fill(make_discriminator(its), ORACLE, checkpoint.arrays, device)
        oracle.requires_grad_(False)
    return Learner(discriminator, policy, optimiser, oracle)


def restored_models(
    config: DigitsConfig, arrays: Arrays, device: torch.device
) -> tuple[Discriminator, Policy]:
    discriminator, policy = make_discriminator(config), make_policy(config)
    for prefix, model in _parts(discriminator, policy):
        fill(model, prefix, arrays, device)
    return discriminator, policy


def _parts(discriminator: Discriminator, policy: Policy) -> tuple[tuple[str, nn.Module], ...]:
    return ("discriminator.", discriminator), ("policy.", policy)
