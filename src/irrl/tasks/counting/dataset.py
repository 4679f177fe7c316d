"""Scenes made offline: a few numbers for each, and what each view shows of each cube.

A folder of scenes:

scenes.json          format version, seed, number of scenes, SHA-256 of each finished split
train.safetensors    the scenes of a split
eval.safetensors
parts/               what is there of a split that is not finished; gone when it is
images-64/           pictures, if asked for; see ``irrl.tasks.counting.images``

Scenes come in chunks, each from its own stream of randomness, so that the result depends neither
on the number of workers nor on interruptions.
"""

import hashlib
import shlex
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from irrl.runs.checkpoint import to_json_bytes, write_atomic
from irrl.errors import UserError
from irrl.runs.run import exclusive, read_json
from irrl.runs.seeding import stream
from irrl.tasks.counting.render import Painter
from irrl.tasks.counting.scene import MAX_CUBES, NONE, VIEWS, Scene, is_seen, sample_scene
from irrl.runs.workers import in_processes

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

BYTES_PER_SCENE = sum(
    np.dtype(kind).itemsize * int(np.prod(shape)) for kind, shape in FIELDS.values()
)

Progress = Callable[[str, int, int], None]  # name, scenes done, scenes in all


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
    record = finished_record(folder, split)
    path, again = scenes_path(folder, split), record.plan.command(folder)
    if not path.is_file():
        raise UserError(f"{path} is missing; {again} makes it again")
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != record.sha256[split]:
        raise UserError(
            f"{path} is damaged: its SHA-256 is not the one in {RECORD}; {again} makes it again"
        )
    return Scenes(**load(content))


def finished_record(folder: Path, split: str) -> Record:
    """What a folder says about its scenes, if a split is there."""
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
        plan = Plan(**{field.name: int(content[field.name]) for field in fields(Plan)})
        sha256 = {split: str(digest) for split, digest in content["sha256"].items()}
    except (KeyError, TypeError, ValueError, AttributeError):
        raise UserError(
            f"{path} is not the record of a folder of scenes, or damaged; put it back, or make the "
            "scenes again in another folder"
        ) from None
    return Record(plan, sha256)


def scenes_path(folder: Path, split: str) -> Path:
    return folder / f"{split}.safetensors"


# --- making ---


class Part(NamedTuple):
    """A chunk of a split: its scenes are sampled together, in order, and written to a file."""

    path: Path
    seed: int
    split: str
    number: int
    scenes: int


def check_plan(folder: Path, plan: Plan) -> None:
    """Raise if a folder cannot take these scenes; write nothing."""
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file, not a folder; choose another folder")
    if not (folder / RECORD).exists():
        # A kill while the record was being written leaves no more than a temporary file.
        if folder.exists() and any(p.name != f".{RECORD}.tmp" for p in folder.iterdir()):
            raise UserError(f"{folder} is not empty and holds no scenes; choose another folder")
        return
    there, wanted = asdict(read_record(folder).plan), asdict(plan)
    changed = [
        f"{key} {there[key]}, not {wanted[key]}" for key in wanted if there[key] != wanted[key]
    ]
    if changed:
        raise UserError(
            f"{folder} already holds scenes with {', '.join(changed)}; choose another folder, or "
            f"go on with {Plan(**there).command(folder)}"
        )


def make_scenes(
    folder: Path,
    plan: Plan,
    workers: int = 1,
    on_progress: Progress = lambda name, done, total: None,
) -> None:
    """Make what is missing or damaged of a folder of scenes."""
    check_plan(folder, plan)
    folder.mkdir(parents=True, exist_ok=True)
    with exclusive(folder, "written"):
        sha256 = read_record(folder).sha256 if (folder / RECORD).exists() else {}
        for split in SPLITS:
            if not _is_whole(scenes_path(folder, split), sha256.get(split)):
                sha256.pop(split, None)
                _write_record(folder, plan, sha256)
                sha256[split] = _make_split(folder, plan, split, workers, on_progress)
                _write_record(folder, plan, sha256)
        shutil.rmtree(folder / PARTS, ignore_errors=True)


def _is_whole(path: Path, digest: str | None) -> bool:
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == digest


def _write_record(folder: Path, plan: Plan, sha256: dict[str, str]) -> None:
    record: dict[str, Any] = {"version": VERSION, **asdict(plan), "sha256": sha256}
    write_atomic(folder / RECORD, to_json_bytes(record))


def _make_split(folder: Path, plan: Plan, split: str, workers: int, on_progress: Progress) -> str:
    """Make the parts that are missing and join them all; returns the SHA-256 of the result."""
    (folder / PARTS).mkdir(exist_ok=True)
    parts = parts_of(folder, plan, split)
    missing = [part for part in parts if not part.path.exists()]
    done = plan.count(split) - sum(part.scenes for part in missing)
    for part, _ in in_processes(make_part, missing, workers):
        done += part.scenes
        on_progress(f"{split} scenes", done, plan.count(split))
    arrays = [_read_part(part) for part in parts]
    joined = {name: np.concatenate([part[name] for part in arrays]) for name in FIELDS}
    content = save(joined)
    write_atomic(scenes_path(folder, split), content)
    return hashlib.sha256(content).hexdigest()


def parts_of(folder: Path, plan: Plan, split: str) -> list[Part]:
    total = plan.count(split)
    return [
        Part(
            folder / PARTS / f"{split}-{number:06d}.safetensors",
            plan.seed,
            split,
            number,
            min(CHUNK, total - first),
        )
        for number, first in enumerate(range(0, total, CHUNK))
    ]


def make_part(part: Part) -> None:
    """Sample the scenes of a part, measure all views of each, and write them."""
    rng = stream(part.seed, "data", SPLITS.index(part.split), part.number)
    scenes = Scenes.empty(part.scenes)
    with Painter() as painter:
        for number in range(part.scenes):
            scene = sample_scene(rng, painter.visible)
            painter.place(scene)
            scenes.put(number, scene, np.stack([painter.visible_pixels(k) for k in range(VIEWS)]))
    write_atomic(part.path, save(scenes.arrays()))


def _read_part(part: Part) -> dict[str, np.ndarray]:
    try:
        return load(part.path.read_bytes())
    except SafetensorError as error:
        raise UserError(
            f"{part.path} is damaged ({error}); remove it, and the same command makes it again"
        ) from None


# --- room on the disk ---


def scenes_bytes(plan: Plan) -> int:
    """What making scenes takes at most: each split as parts and as a whole."""
    return 2 * BYTES_PER_SCENE * plan.total


def check_disk(folder: Path, needed: int) -> int:
    """Raise if the disk of a folder, which need not be there yet, has less room; returns it."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    free = shutil.disk_usage(there).free
    if needed > free:
        raise UserError(
            f"this needs {in_words(needed)}, but the disk of {folder} has {in_words(free)} free; "
            "choose another --out, a smaller --resolution or fewer scenes"
        )
    return free


def in_words(size: float) -> str:
    """A number of bytes for people."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.3g} TB" if size < 1000 else f"{size:,.0f} TB"
