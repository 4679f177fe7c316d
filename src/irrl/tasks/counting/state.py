"""What a run of counting must remember: model, optimiser, oracle; to and from a checkpoint."""

from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from irrl.errors import UserError
from irrl.nn.models import (
    ORACLE,
    Arrays,
    fill,
    learned_parameters,
    make_adam,
    open_oracle,
    restore_adam,
    tensors_of,
    to_arrays,
)
from irrl.runs.checkpoint import Checkpoint
from irrl.runs.run import Run
from irrl.tasks.counting.config import CountingConfig
from irrl.tasks.counting.model import Model, initial_model

CountingRun = Run[CountingConfig]

MODEL = "model."
SEEN_ALIKE = ("resolution", "max_moves")
"""Settings in which an oracle must agree: it is fed the views of the run it judges."""


class Learner(NamedTuple):
    """Everything that changes while a run trains, and the oracle, which does not."""

    model: Model
    optimiser: torch.optim.Adam
    oracle: Model | None

    @property
    def parameters(self) -> list[nn.Parameter]:
        """Those that learn."""
        return [parameter for _, parameter in learned_parameters(self.model)]


def initial_learner(config: CountingConfig, device: torch.device) -> Learner:
    oracle = read_oracle(Path(config.oracle), config, device) if config.oracle else None
    model = initial_model(config, device)
    return Learner(model, make_optimiser(config, model), oracle)


def make_optimiser(config: CountingConfig, model: Model) -> torch.optim.Adam:
    parameters = [parameter for _, parameter in learned_parameters(model)]
    groups = [{"params": parameters, "lr": config.learning_rate}]
    return make_adam(groups, eps=config.adam_epsilon)


# --- an oracle ---


def find_oracle(folder: Path, config: CountingConfig) -> tuple[CountingRun, CountingConfig]:
    """A converged run that can judge another, and its configuration. Loads no model."""
    run, its = open_oracle(folder, config, SEEN_ALIKE)
    if its.supervision == "last":
        raise UserError(
            f"oracle {folder} was taught after the last view only; this run may stop after any: "
            "train an oracle with supervision all"
        )
    return run, its


def read_oracle(folder: Path, config: CountingConfig, device: torch.device) -> Model:
    """The model of a converged run, frozen, for a run that it can judge."""
    run, its = find_oracle(folder, config)
    return restored_model(its, run.last_checkpoint().arrays, device).requires_grad_(False)


# --- to and from a checkpoint ---


def to_checkpoint(learner: Learner, scenes_sha256: str) -> tuple[Arrays, dict[str, Any]]:
    """Arrays and JSON-like state. The backbone and an oracle go in too: a run depends on no other
    folder but that of its scenes, of which it keeps the SHA-256.
    """
    tensors = tensors_of(learner.model, MODEL, learner.optimiser)
    state: dict[str, Any] = {"scenes_sha256": scenes_sha256}
    if learner.oracle is not None:
        tensors.update(tensors_of(learner.oracle, ORACLE))
        state["oracle"] = learner.oracle.config.settings()
    return to_arrays(tensors), state


def restored_learner(
    config: CountingConfig, checkpoint: Checkpoint, scenes_sha256: str, device: torch.device
) -> Learner:
    if checkpoint.state.get("scenes_sha256") != scenes_sha256:
        raise UserError(
            f"the train scenes in {config.scenes} are not those the run was begun with; put them "
            "back, or start a new run"
        )
    model = restored_model(config, checkpoint.arrays, device)
    optimiser = make_optimiser(config, model)
    restore_adam(optimiser, model, MODEL, checkpoint.arrays)
    oracle = None
    if config.oracle:
        its = CountingConfig.from_settings(checkpoint.state.get("oracle", {}))
        oracle = fill(Model(its), ORACLE, checkpoint.arrays, device).requires_grad_(False)
    return Learner(model, optimiser, oracle)


def restored_model(config: CountingConfig, arrays: Arrays, device: torch.device) -> Model:
    return fill(Model(config), MODEL, arrays, device)
