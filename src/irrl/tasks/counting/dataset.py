"""A folder of scenes: a few numbers for each, and what each view shows of each cube.

scenes.json          format version, seed, number of scenes, SHA-256 of each finished split
train.safetensors    the scenes of a split
eval.safetensors
parts/               what is there of a split that is not finished; gone when it is
images-64/           pictures, if asked for; see ``irrl.tasks.counting.images``

``irrl.tasks.counting.generate`` makes them.
"""

import hashlib
import shlex
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NamedTuple

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load

from irrl.errors import UserError, shown
from irrl.runs.reading import is_step, read_json, read_plain
from irrl.tasks.counting.scene import GOALS, KINDS, MAX_CUBES, NONE, VIEWS, Scene, is_seen

VERSION = 1
RECORD, PARTS = "scenes.json", "parts"
SPLITS = ("train", "eval")
CHUNK = 250

FIELDS: dict[str, tuple[type, tuple[int, ...]]] = {
    "goals": (np.int8, ()),
    "kinds": (np.int8, (MAX_CUBES,)),
    "places": (np.float32, (MAX_CUBES, 2)),
    "angles": (np.float32, (MAX_CUBES,)),
    "hidden": (np.int8, ()),
    "visible": (np.uint16, (VIEWS, MAX_CUBES)),
}
"""Type and shape of what is stored of one scene."""

SCENE_BYTES = sum(np.dtype(kind).itemsize * int(np.prod(shape)) for kind, shape in FIELDS.values())
HEADER_BYTES = 1 << 16
MOST_SCENES = 10_000_000


@dataclass(frozen=True)
class Scenes:
    """The scenes of a split, one in each row; where a scene has fewer than 7 cubes, NONE."""

    goals: np.ndarray  # (n,)
    kinds: np.ndarray  # (n, 7)
    places: np.ndarray  # (n, 7, 2)
    angles: np.ndarray  # (n, 7)
    hidden: np.ndarray  # (n,)
    visible: np.ndarray  # (n, 12, 7): pixels that a view of 256 x 256 shows of a cube

    @classmethod
    def empty(cls, count: int) -> "Scenes":
        """Room for so many scenes."""
        arrays: dict[str, np.ndarray] = {
            name: np.zeros((count, *shape), kind) for name, (kind, shape) in FIELDS.items()
        }
        arrays["kinds"][:] = NONE
        return cls(**arrays)

    def put(self, number: int, scene: Scene, visible: np.ndarray) -> None:
        cubes = len(scene.kinds)
        self.goals[number], self.hidden[number] = scene.goal, scene.hidden
        self.kinds[number, :cubes] = scene.kinds
        self.places[number, :cubes] = scene.places
        self.angles[number, :cubes] = scene.angles
        self.visible[number] = visible

    def __len__(self) -> int:
        return len(self.goals)

    def scene(self, number: int) -> Scene:
        there = self.kinds[number] != NONE
        return Scene(
            int(self.goals[number]),
            self.kinds[number][there].astype(np.int64),
            self.places[number][there],
            self.angles[number][there],
            int(self.hidden[number]),
        )

    def part(self, first: int, last: int) -> "Scenes":
        return self.at(slice(first, last))

    def at(self, index: slice | np.ndarray) -> "Scenes":
        return Scenes(**{name: array[index] for name, array in self.arrays().items()})

    @property
    def is_goal(self) -> np.ndarray:
        """Which cubes are of their goal's kind, (n, 7)."""
        return self.kinds == self.goals[:, None]

    @property
    def seen(self) -> np.ndarray:
        """Which cubes each view lets see, (n, 12, 7)."""
        return is_seen(self.visible, self.kinds[:, None])

    @property
    def counts(self) -> np.ndarray:
        """The labels, (n,)."""
        return self.is_goal.sum(axis=1)

    def arrays(self) -> dict[str, np.ndarray]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True)
class Plan:
    """All that decides what the scenes of a folder are."""

    seed: int = 0
    train: int = 100_000
    eval: int = 1_000

    def count(self, split: str) -> int:
        return {"train": self.train, "eval": self.eval}[split]

    @property
    def total(self) -> int:
        return self.train + self.eval

    def command(self, folder: Path, resolution: int | None = None) -> str:
        """What makes these scenes, goes on with them, or mends them."""
        words = f"irrl data scenes --train {self.train} --eval {self.eval} --seed {self.seed}"
        pictures = f" --resolution {resolution}" if resolution else ""
        return f"`{words} --out {shlex.quote(str(folder))}{pictures}`"


class Record(NamedTuple):
    """What a folder says about its scenes."""

    plan: Plan
    sha256: dict[str, str]  # of the splits that are finished


# --- reading ---


def load_scenes(folder: str | Path, split: str) -> Scenes:
    """The scenes of a split, ``train`` or ``eval``; damage is noticed."""
    folder = Path(folder)
    record, path = find_scenes(folder, split)
    content = read_plain(path, SCENE_BYTES * record.plan.count(split) + HEADER_BYTES)
    if hashlib.sha256(content).hexdigest() != record.sha256[split]:
        raise UserError(
            f"{path} is damaged: its SHA-256 is not the one in {RECORD}; "
            f"{record.plan.command(folder)} makes it again"
        )
    return scenes_of(path, content, record.plan.count(split))


def scenes_of(path: Path, content: bytes, count: int) -> Scenes:
    """The scenes in a file, if they are so many, and such as are made."""
    try:
        arrays = load(content)
    except (SafetensorError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{path} holds no scenes, or is damaged: {shown(error)}") from None
    expected = {name: ((count, *shape), np.dtype(kind)) for name, (kind, shape) in FIELDS.items()}
    found = {name: (array.shape, array.dtype) for name, array in arrays.items()}
    for name in {**expected, **found}:
        if expected.get(name) != found.get(name):
            raise UserError(
                f"{path} is not of {count} scenes: {shown(name)} is {found.get(name, 'missing')}, "
                f"expected {expected.get(name, 'none of that name')}"
            )
    within = {"goals": (0, len(GOALS)), "kinds": (NONE, len(KINDS)), "hidden": (NONE, MAX_CUBES)}
    for name, array in arrays.items():
        low, high = within.get(name, (-np.inf, np.inf))
        if not np.isfinite(array).all() or (array < low).any() or (array >= high).any():
            raise UserError(f"{path} is damaged: {name} has numbers that cannot be")
    return Scenes(**arrays)


def find_scenes(folder: Path, split: str) -> tuple[Record, Path]:
    """What a folder says about its scenes, and the file of a split. Reads only the record."""
    record, path = finished_record(folder, split), scenes_path(folder, split)
    if not path.is_file():
        raise UserError(f"{path} is missing; {record.plan.command(folder)} makes it again")
    return record, path


def finished_record(folder: Path, split: str) -> Record:
    """What a folder says about its scenes, if a split is finished."""
    if split not in SPLITS:
        raise UserError(f"unknown split {split!r}, known: {', '.join(SPLITS)}")
    record = read_record(folder)
    if split not in record.sha256:
        raise UserError(
            f"the {split} scenes of {folder} are not finished; go on with "
            f"{record.plan.command(folder)}"
        )
    return record


def read_record(folder: Path) -> Record:
    path = folder / RECORD
    if not path.is_file():
        raise UserError(
            f"{folder} holds no scenes: it has no {RECORD}; `irrl data scenes --out DIR` makes them"
        )
    content = read_json(path)
    version = content.get("version") if isinstance(content, dict) else None
    if version is not None and version != VERSION:
        raise UserError(
            f"the scenes in {folder} are of format {version}, this irrl reads {VERSION}; make them "
            "again in another folder, or use the irrl they were made with"
        )
    try:
        plan = Plan(**{field.name: content[field.name] for field in fields(Plan)})
        if not all(map(is_step, (plan.seed, plan.train, plan.eval))) or plan.total > MOST_SCENES:
            raise ValueError
        sha256 = {split: str(digest) for split, digest in content["sha256"].items()}
    except (KeyError, TypeError, ValueError, AttributeError):
        raise UserError(
            f"{path} is not the record of a folder of scenes, or damaged; put it back, or make the "
            "scenes again in another folder"
        ) from None
    return Record(plan, sha256)


def scenes_path(folder: Path, split: str) -> Path:
    return folder / f"{split}.safetensors"
