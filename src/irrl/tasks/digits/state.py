"""What a run of digits must remember: models, optimiser, oracle; to and from a checkpoint."""

import dataclasses
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from irrl.runs.checkpoint import Checkpoint
from irrl.errors import UserError
from irrl.nn.models import (
    ORACLE,
    check_settings,
    fill,
    make_adam,
    open_oracle,
    restore_adam,
    tensors_of,
    to_arrays,
)
from irrl.runs.seeding import stream
from irrl.tasks.digits.config import DigitsConfig
from irrl.tasks.digits.discriminator import Discriminator, make_discriminator
from irrl.tasks.digits.policy import Policy

SEEN_ALIKE = ("canvas_size", "glimpse_size", "scales", "steps")
"""Settings in which an oracle must agree: it is fed the glimpses of the run it judges."""


class Learner(NamedTuple):
    """Everything that changes while a run trains."""

    discriminator: Discriminator
    policy: Policy
    optimiser: torch.optim.Adam
    oracle: Discriminator | None


# --- made anew ---


def initial_learner(config: DigitsConfig, device: torch.device) -> Learner:
    discriminator, policy = initial_models(config, device)
    oracle = read_oracle(Path(config.oracle), config, device) if config.oracle else None
    return Learner(discriminator, policy, make_optimiser(config, discriminator, policy), oracle)


def initial_models(config: DigitsConfig, device: torch.device) -> tuple[Discriminator, Policy]:
    """PyTorch's usual initialisation, drawn from the streams of the run.

    The glimpse layer stands for two of half its input, and is drawn as these would be.
    """
    discriminator, policy = make_discriminator(config), Policy(config)
    for name, model in (("discriminator", discriminator), ("policy", policy)):
        rng = stream(config.seed, name, 0)
        for layer in model.modules():
            if isinstance(layer, nn.Linear):
                layers = 2 if layer is getattr(discriminator, "glimpse", None) else 1
                bound = (layer.in_features / layers) ** -0.5
                weight = rng.uniform(-bound, bound, tuple(layer.weight.shape))
                bias = rng.uniform(-bound, bound, (layers, *layer.bias.shape)).sum(axis=0)
                layer.weight.data.copy_(torch.from_numpy(weight))
                layer.bias.data.copy_(torch.from_numpy(bias))
    for layer in filter(None, (policy.act, policy.glance)):
        for parameter in layer.parameters():
            parameter.data.mul_(config.initial_policy)
    if config.stops:
        odds = config.initial_stop / (1.0 - config.initial_stop)
        policy.act.bias.data[-1] += math.log(odds)
    return discriminator.to(device), policy.to(device)


def make_optimiser(
    config: DigitsConfig, discriminator: Discriminator, policy: Policy
) -> torch.optim.Adam:
    groups: list[dict[str, Any]] = [
        {"params": list(discriminator.parameters()), "lr": config.learning_rate},
        {"params": list(policy.parameters()), "lr": config.policy_learning_rate},
    ]
    return make_adam(groups)


def read_oracle(folder: Path, config: DigitsConfig, device: torch.device) -> Discriminator:
    """The discriminator of a converged run, frozen, for a run that it can judge."""
    run, other = open_oracle(folder, config, SEEN_ALIKE)
    if (config.stops or config.credit == "dense") and other.supervision == "last":
        raise UserError(
            f"oracle {folder} was taught after the last glimpse only; this run asks it after each "
            "(it stops, or has dense credit): train an oracle with supervision all"
        )
    return restored_models(other, run.last_checkpoint().arrays, device)[0].requires_grad_(False)


# --- to and from a checkpoint ---


def to_checkpoint(
    config: DigitsConfig, learner: Learner
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and JSON-like state. An oracle goes in too: a run depends on no other folder."""
    tensors: dict[str, torch.Tensor] = {}
    for prefix, model in _parts(learner.discriminator, learner.policy):
        tensors.update(tensors_of(model, prefix, learner.optimiser))
    state = {"settings": dataclasses.asdict(config)}
    if learner.oracle is not None:
        tensors.update(tensors_of(learner.oracle, ORACLE))
        state["oracle"] = dataclasses.asdict(learner.oracle.config)
    return to_arrays(tensors), state


def restored_learner(config: DigitsConfig, checkpoint: Checkpoint, device: torch.device) -> Learner:
    check_settings(config, checkpoint.state.get("settings", {}))
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
    config: DigitsConfig, arrays: dict[str, np.ndarray], device: torch.device
) -> tuple[Discriminator, Policy]:
    discriminator, policy = make_discriminator(config), Policy(config)
    for prefix, model in _parts(discriminator, policy):
        fill(model, prefix, arrays, device)
    return discriminator, policy


def _parts(discriminator: Discriminator, policy: Policy) -> tuple[tuple[str, nn.Module], ...]:
    return ("discriminator.", discriminator), ("policy.", policy)
