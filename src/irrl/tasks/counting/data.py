"""Scenes and pictures as training needs them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from irrl.errors import UserError
from irrl.tasks.counting.config import CountingConfig
from irrl.tasks.counting.dataset import RECORD, Plan, Scenes, finished_record, load_scenes
from irrl.tasks.counting.images import open_images


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


def load_split(config: CountingConfig, split: str) -> Split:
    """The scenes of a split, ``train`` or ``eval``, that a run uses."""
    folder = Path(config.scenes)
    if not (folder / RECORD).is_file():
        plan = Plan(train=config.train_scenes or Plan.train, eval=config.eval_scenes or Plan.eval)
        raise UserError(
            f"there are no scenes in {folder}; {plan.command(folder, config.resolution)} makes them"
        )
    scenes = load_scenes(folder, split)
    wanted = config.train_scenes if split == "train" else config.eval_scenes
    if wanted is not None and wanted > len(scenes):
        raise UserError(
            f"{split}-scenes asks for {wanted} scenes, {folder} has {len(scenes)}; ask for fewer, "
            "or make more in another folder"
        )
    images = open_images(folder, split, config.resolution)
    scenes = scenes.part(0, len(scenes) if wanted is None else wanted)
    return Split(
        scenes,
        images[: len(scenes)],
        scenes.goals.astype(np.int64),
        scenes.counts.astype(np.int64),
        finished_record(folder, split).sha256[split],
    )
