"""What tasks with PyTorch models share: the device, Adam, and both to and from a checkpoint."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from irrl.errors import UserError
from irrl.nn.distributed import World, current_world
from irrl.runs.config import Config
from irrl.runs.run import Run, read_settings, resume_command

ORACLE = "oracle."
MOMENTS = ("step", "exp_avg", "exp_avg_sq")

Arrays = dict[str, np.ndarray]
SomeModel = TypeVar("SomeModel", bound=nn.Module)
SomeConfig = TypeVar("SomeConfig", bound=Config)


# --- the device ---


def choose_device(name: str) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = own_device(torch.device(name), current_world())
        torch.zeros(1, device=device).cpu()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"device {name} cannot be used here: {reason}") from None
    return device


def own_device(device: torch.device, world: World) -> torch.device:
    """Of several processes, each has a GPU of its own, or all use the processor."""
    if world.size == 1 or device.type == "cpu":
        return device
    if device != torch.device("cuda"):
        raise UserError(f"device {device} is one for all {world.size} processes; give cuda or cpu")
    if world.local_rank >= torch.cuda.device_count():
        raise UserError(
            f"there are {torch.cuda.device_count()} GPUs here for {world.local_rank + 1} or more "
            "processes; start fewer, or give --device cpu"
        )
    torch.cuda.set_device(world.local_rank)
    return torch.device("cuda", world.local_rank)


def device_to_look(name: str) -> torch.device:
    """The device of a run, or the processor where that one is not there: good enough to look."""
    try:
        return choose_device(name)
    except UserError:
        return torch.device("cpu")


# --- Adam ---


def make_adam(groups: list[dict[str, Any]], **options: Any) -> torch.optim.Adam:
    try:
        optimiser = torch.optim.Adam(groups, fused=True, **options)
    except RuntimeError:  # an older PyTorch, or a device that has none
        optimiser = torch.optim.Adam(groups, **options)
    for group in optimiser.param_groups:
        for parameter in group["params"]:
            # As Adam does with its first step, so that a run can be saved before that.
            moments = {name: torch.zeros_like(parameter) for name in MOMENTS}
            optimiser.state[parameter] = {**moments, "step": parameter.new_zeros(())}
    return optimiser


def restore_adam(
    optimiser: torch.optim.Adam, model: nn.Module, prefix: str, arrays: Arrays
) -> None:
    """Give Adam the moments of a checkpoint. It goes by addresses, so shapes are checked here."""
    for name, parameter in learned_parameters(model):
        for moment, now in optimiser.state[parameter].items():
            its_name = f"adam.{moment}.{prefix}{name}"
            value = restored(arrays, its_name)
            require_like(its_name, value, now)
            optimiser.state[parameter][moment] = value.to(parameter.device)


def require_like(name: str, value: Tensor, expected: Tensor) -> None:
    """Raise unless what a checkpoint has is finite, and of the type and shape of what is there."""
    if value.shape != expected.shape or value.dtype != expected.dtype:
        raise UserError(
            f"the checkpoint is damaged or of another configuration: {name} is {value.dtype} of "
            f"shape {tuple(value.shape)}, expected {expected.dtype} of shape "
            f"{tuple(expected.shape)}"
        )
    if not torch.isfinite(value).all():
        raise UserError(f"the checkpoint is damaged: {name} must be finite")


def learned_parameters(model: nn.Module) -> list[tuple[str, nn.Parameter]]:
    return [(name, p) for name, p in model.named_parameters() if p.requires_grad]


# --- to and from a checkpoint ---


def to_arrays(tensors: dict[str, Tensor]) -> Arrays:
    return {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}


def tensors_of(
    model: nn.Module, prefix: str, optimiser: torch.optim.Adam | None = None
) -> dict[str, Tensor]:
    """A model by names, and what Adam remembers of each parameter that learns."""
    tensors = {prefix + name: tensor for name, tensor in model.state_dict().items()}
    if optimiser is not None:
        for name, parameter in learned_parameters(model):
            for moment in MOMENTS:
                tensors[f"adam.{moment}.{prefix}{name}"] = optimiser.state[parameter][moment]
    return tensors


def fill(
    model: SomeModel, prefix: str, arrays: Mapping[str, np.ndarray], device: torch.device
) -> SomeModel:
    """Give a model the tensors of a checkpoint."""
    for name, tensor in model.state_dict().items():
        value = restored(arrays, prefix + name)
        if value.shape != tensor.shape:
            raise UserError(
                f"the checkpoint is of another configuration: {prefix}{name} has shape "
                f"{tuple(value.shape)}, expected {tuple(tensor.shape)}"
            )
        if value.dtype != tensor.dtype or not torch.isfinite(value).all():
            raise UserError(
                f"the checkpoint is damaged: {prefix}{name} must hold finite numbers of "
                f"{tensor.dtype}, got {value.dtype}"
            )
        tensor.copy_(value)
    return model.to(device)


def restored(arrays: Mapping[str, np.ndarray], name: str) -> Tensor:
    if name not in arrays:
        raise UserError(f"the checkpoint is of another configuration: it has no {name}")
    try:
        return torch.tensor(arrays[name])
    except TypeError:  # numbers of a kind that PyTorch does not have
        raise UserError(
            f"the checkpoint is damaged: {name} has numbers of type {arrays[name].dtype}"
        ) from None


# --- an oracle ---


def open_oracle(folder: Path, config: SomeConfig, alike: Sequence[str]) -> tuple[Run, SomeConfig]:
    """A finished run of the same task that agrees in some settings, and its configuration."""
    task, settings = read_settings(folder)
    if task != config.task:
        raise UserError(f"oracle {folder} is a run of {task}, not of {config.task}")
    other = type(config).from_settings(settings)
    run = Run(folder, other)
    for name in alike:
        mine, its = getattr(config, name), getattr(other, name)
        if mine != its:
            raise UserError(
                f"oracle {folder} cannot judge this run: its {name.replace('_', '-')} is {its}, "
                f"here it is {mine}"
            )
    if not run.is_finished:
        raise UserError(f"oracle {folder} is not finished; `{resume_command(run.folder)}` first")
    return run, other
