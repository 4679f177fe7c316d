"""What a run needs before it trains: scenes, device, learner."""

from pathlib import Path
from typing import NamedTuple

import torch

from irrl.nn.distributed import current_world
from irrl.nn.models import choose_device
from irrl.runs.checkpoint import Checkpoint
from irrl.tasks.counting.config import CountingConfig
from irrl.tasks.counting.data import Split, check_split, load_split
from irrl.tasks.counting.resnet import check_file
from irrl.tasks.counting.state import Learner, find_oracle, initial_learner, restored_learner


class Prepared(NamedTuple):
    """A run that can be trained: its data, and its learner after some episodes."""

    config: CountingConfig
    device: torch.device
    training: Split
    held_out: Split
    learner: Learner
    done: int  # episodes
    is_new: bool  # nothing was logged or saved yet


def check(config: CountingConfig) -> None:
    """Raise where `prepare` would for want of scenes, weights, device or oracle.

    Cheap: it reads no scene and builds no model.
    """
    current_world().require_parts(config.parts, config.minibatch_episodes)
    choose_device(config.device)
    for split in ("train", "eval"):
        check_split(config, split)
    if config.backbone_weights is not None:
        check_file(Path(config.backbone_weights))
    if config.oracle:
        find_oracle(Path(config.oracle), config)


def prepare(config: CountingConfig, checkpoint: Checkpoint | None) -> Prepared:
    """A new run, or one as its checkpoint has it."""
    current_world().require_parts(config.parts, config.minibatch_episodes)
    device = choose_device(config.device)
    training, held_out = (load_split(config, split) for split in ("train", "eval"))
    if checkpoint is None:
        learner = initial_learner(config, device)
        return Prepared(config, device, training, held_out, learner, done=0, is_new=True)
    learner = restored_learner(config, checkpoint, training.sha256, device)
    return Prepared(config, device, training, held_out, learner, done=checkpoint.step, is_new=False)
