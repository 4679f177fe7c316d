"""What a run of digits must remember: models, optimiser, oracle; to and from a checkpoint."""

import dataclasses
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from irrl.checkpoint import Checkpoint
from irrl.errors import UserError
from irrl.run import Run, resume_command
from irrl.seeding import stream
from irrl.tasks.digits.config import DigitsConfig
from irrl.tasks.digits.discriminator import Discriminator, make_discriminator
from irrl.tasks.digits.policy import Policy

ORACLE = "oracle."
MOMENTS = ("step", "exp_avg", "exp_avg_sq")
SEEN_ALIKE = ("canvas_size", "glimpse_size", "scales", "steps")
"""Settings in which an oracle must agree: it is fed the glimpses of the run it judges."""


class Learner(NamedTuple):
    """Everything that changes while a run trains."""

    discriminator: Discriminator
    policy: Policy
    optimiser: torch.optim.Adam
    oracle: Discriminator | None


def choose_device(config: DigitsConfig) -> torch.device:
    if config.device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(config.device)
        torch.zeros(1, device=device).cpu()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"device {config.device} cannot be used here: {reason}") from None
    return device


def device_to_look(config: DigitsConfig) -> torch.device:
    """The device of a run, or the processor where that one is not there: good enough to look."""
    try:
        return choose_device(config)
    except UserError:
        return torch.device("cpu")


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
    try:
        optimiser = torch.optim.Adam(groups, fused=True)
    except RuntimeError:  # an older PyTorch, or a device that has none
        optimiser = torch.optim.Adam(groups)
    for group in optimiser.param_groups:
        for parameter in group["params"]:
            # As Adam does with its first step, so that a run can be saved before that.
            moments = {name: torch.zeros_like(parameter) for name in MOMENTS}
            optimiser.state[parameter] = {**moments, "step": parameter.new_zeros(())}
    return optimiser


def read_oracle(folder: Path, config: DigitsConfig, device: torch.device) -> Discriminator:
    """The discriminator of a converged run, frozen, for a run that it can judge."""
    run = Run.open(folder)
    if run.task != "digits":
        raise UserError(f"oracle {folder} is a run of {run.task}, not of digits")
    other = DigitsConfig.from_settings(run.settings)
    for name in SEEN_ALIKE:
        mine, its = getattr(config, name), getattr(other, name)
        if mine != its:
            raise UserError(
                f"oracle {folder} cannot judge this run: its {name.replace('_', '-')} is {its}, "
                f"here it is {mine}"
            )
    if (config.stops or config.credit == "dense") and other.supervision == "last":
        raise UserError(
            f"oracle {folder} was taught after the last glimpse only; this run asks it after each "
            "(it stops, or has dense credit): train an oracle with supervision all"
        )
    if not run.is_finished:
        raise UserError(f"oracle {folder} is not finished; `{resume_command(run.folder)}` first")
    return restored_models(other, run.last_checkpoint().arrays, device)[0].requires_grad_(False)


# --- to and from a checkpoint ---


def to_checkpoint(
    config: DigitsConfig, learner: Learner
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and JSON-like state. An oracle goes in too: a run depends on no other folder."""
    tensors = {}
    for prefix, model in _parts(learner.discriminator, learner.policy):
        for name, parameter in model.named_parameters():
            tensors[prefix + name] = parameter
            for moment in MOMENTS:
                tensors[f"adam.{moment}.{prefix}{name}"] = learner.optimiser.state[parameter][
                    moment
                ]
    state = {"settings": dataclasses.asdict(config)}
    if learner.oracle is not None:
        tensors.update({ORACLE + n: p for n, p in learner.oracle.named_parameters()})
        state["oracle"] = dataclasses.asdict(learner.oracle.config)
    return {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}, state


def restored_learner(config: DigitsConfig, checkpoint: Checkpoint, device: torch.device) -> Learner:
    check_settings(config, checkpoint.state.get("settings", {}))
    discriminator, policy = restored_models(config, checkpoint.arrays, device)
    optimiser = make_optimiser(config, discriminator, policy)
    for prefix, model in _parts(discriminator, policy):
        for name, parameter in model.named_parameters():
            optimiser.state[parameter] = {
                moment: _restored(checkpoint.arrays, f"adam.{moment}.{prefix}{name}").to(device)
                for moment in MOMENTS
            }
    oracle = None
    if config.oracle:
        its = DigitsConfig.from_settings(checkpoint.state.get("oracle", {}))
        oracle = _fill(make_discriminator(its), ORACLE, checkpoint.arrays, device).requires_grad_(
            False
        )
    return Learner(discriminator, policy, optimiser, oracle)


def check_settings(config: DigitsConfig, settings: dict[str, Any]) -> None:
    """Raise if a checkpoint was made with other settings; the device may change."""
    for name, value in dataclasses.asdict(config).items():
        if name != "device" and name in settings and settings[name] != value:
            raise UserError(
                f"the checkpoint is of another configuration: its {name.replace('_', '-')} is "
                f"{settings[name]!r}, config.json says {value!r}"
            )


def restored_models(
    config: DigitsConfig, arrays: dict[str, np.ndarray], device: torch.device
) -> tuple[Discriminator, Policy]:
    discriminator, policy = make_discriminator(config), Policy(config)
    for prefix, model in _parts(discriminator, policy):
        _fill(model, prefix, arrays, device)
    return discriminator, policy


def _parts(discriminator: Discriminator, policy: Policy) -> tuple[tuple[str, nn.Module], ...]:
    return ("discriminator.", discriminator), ("policy.", policy)


def _fill(model: Any, prefix: str, arrays: dict[str, np.ndarray], device: torch.device) -> Any:
    for name, parameter in model.named_parameters():
        value = _restored(arrays, prefix + name)
        if value.shape != parameter.shape:
            raise UserError(
                f"the checkpoint is of another configuration: {prefix}{name} has shape "
                f"{tuple(value.shape)}, expected {tuple(parameter.shape)}"
            )
        parameter.data = value
    return model.to(device)


def _restored(arrays: dict[str, np.ndarray], name: str) -> torch.Tensor:
    if name not in arrays:
        raise UserError(f"the checkpoint is of another configuration: it has no {name}")
    return torch.tensor(arrays[name])
