"""Scenes and pictures as training needs them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from irrl.errors import UserError
from irrl.tasks.counting.config import CountingConfig
from irrl.tasks.counting.dataset import RECORD, Plan, Record, Scenes, find_scenes, load_scenes
from irrl.tasks.counting.images import find_images, open_images


@dataclass(frozen=True)
class Split:
    """Some scenes with the pictures of all their views."""

    scenes: Scenes
    images: np.ndarray  # (n, 12, side, side, 3)
    goals: np.ndarray  # (n,)
    labels: np.ndarray  # (n,)
    sha256: str  # of the scenes

    def __len__(self) -> int:
        return len(self.labels)


def check_split(config: CountingConfig, split: str) -> None:
    """Raise where `load_split` would, but for damage: reads neither scenes nor pictures."""
    find_split(config, split)
    find_images(Path(config.scenes), split, config.resolution)


def find_split(config: CountingConfig, split: str) -> tuple[Record, int]:
    """What a folder says about its scenes, and how many of them a run uses."""
    folder = Path(config.scenes)
    if not (folder / RECORD).is_file():
        plan = Plan(train=config.train_scenes or Plan.train, eval=config.eval_scenes or Plan.eval)
        raise UserError(
            f"there are no scenes in {folder}; {plan.command(folder, config.resolution)} makes them"
        )
    record, _ = find_scenes(folder, split)
    there = record.plan.count(split)
    wanted = config.train_scenes if split == "train" else config.eval_scenes
    if wanted is not None and wanted > there:
        raise UserError(
            f"{split}-scenes asks for {wanted} scenes, {folder} has {there}; ask for fewer, "
            "or make more in another folder"
        )
    return record, there if wanted is None else wanted


def load_split(config: CountingConfig, split: str) -> Split:
    """The scenes of a split, ``train`` or ``eval``, that a run uses."""
    return load_splits([config], split)[0]


def load_splits(configs: Sequence[CountingConfig], split: str) -> list[Split]:
    """The same for several runs; scenes that several of them use are read once."""
    read: dict[Path, Scenes] = {}
    splits = []
    for config in configs:
        folder = Path(config.scenes)
        record, count = find_split(config, split)
        if folder not in read:
            read[folder] = load_scenes(folder, split)
        scenes = read[folder].part(0, count)
        images = open_images(folder, split, config.resolution, verify=True, count=count)
        goals, labels = scenes.goals.astype(np.int64), scenes.counts.astype(np.int64)
        splits.append(Split(scenes, images, goals, labels, record.sha256[split]))
    return splits
