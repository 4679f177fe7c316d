"""Pictures of all views of all scenes, painted once, mapped into memory when training.

Beside the scenes of a folder:

images-64/train.bin    bytes of shape (scenes, 12 views, 64, 64, 3)
images-64/train.json   format version, the scenes they show, SHA-256 of each chunk that is finished

Pictures are painted at 256 x 256 and averaged down, so that small ones are smooth, and equal to
what the environment ``irrl/ObjectCounting-v0`` shows.
"""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from irrl.runs.checkpoint import to_json_bytes, write_atomic
from irrl.errors import UserError
from irrl.runs.run import exclusive, read_json
from irrl.tasks.counting.dataset import (
    CHUNK,
    PARTS,
    SPLITS,
    Plan,
    Progress,
    Record,
    Scenes,
    finished_record,
    load_scenes,
    scenes_bytes,
)
from irrl.tasks.counting.render import Painter, check_resolution, shrink
from irrl.tasks.counting.scene import VIEWS
from irrl.runs.workers import in_processes

VERSION = 1
BLOCK = 1 << 20

Digests = list[str | None]
"""The SHA-256 of each chunk, None for those not painted yet."""


class Store(NamedTuple):
    """Where the pictures of a split are, and what they show."""

    folder: Path
    record: Record
    split: str
    resolution: int

    @property
    def data(self) -> Path:
        return images_folder(self.folder, self.resolution) / f"{self.split}.bin"

    @property
    def manifest(self) -> Path:
        return self.data.with_suffix(".json")

    @property
    def shape(self) -> tuple[int, int, int, int, int]:
        count = self.record.plan.count(self.split)
        return count, VIEWS, self.resolution, self.resolution, 3

    @property
    def size(self) -> int:
        return self.shape[0] * bytes_per_scene(self.resolution)

    @property
    def again(self) -> str:
        """The command that makes these pictures, goes on with them, or mends them."""
        return self.record.plan.command(self.folder, self.resolution)


def images_folder(folder: Path, resolution: int) -> Path:
    return folder / f"images-{resolution}"


def bytes_per_scene(resolution: int) -> int:
    return VIEWS * resolution**2 * 3


def bytes_needed(folder: Path, plan: Plan, resolution: int | None) -> int:
    """What scenes, and their pictures if wanted, will still take of the disk, at most."""
    there = [*folder.glob("*.safetensors"), *(folder / PARTS).glob("*")]
    needed = scenes_bytes(plan)
    if resolution:
        there += images_folder(folder, resolution).glob("*")
        needed += plan.total * bytes_per_scene(resolution)
    return max(needed - sum(map(_bytes_taken, there)), 0)


def _bytes_taken(path: Path) -> int:
    """Of the disk: a file that was given its size, but not yet its content, takes less."""
    status = path.stat()
    return min(512 * getattr(status, "st_blocks", status.st_size), status.st_size)


def open_store(folder: Path, split: str, resolution: int) -> Store:
    check_resolution(resolution)
    return Store(folder, finished_record(folder, split), split, resolution)


# --- reading ---


def open_images(folder: str | Path, split: str, resolution: int, verify: bool = False) -> np.memmap:
    """The pictures of a split, (scenes, 12, resolution, resolution, 3) bytes, read as needed.

    That they are complete and show these scenes is always checked; with ``verify`` every byte.
    """
    store = open_store(Path(folder), split, resolution)
    if not store.manifest.is_file() or not store.data.is_file():
        raise UserError(
            f"{folder} has no {split} pictures of {resolution} x {resolution}; {store.again} "
            "makes them"
        )
    digests = read_digests(store)
    if None in digests:
        raise UserError(
            f"{store.data} is not finished: {digests.count(None)} of {len(digests)} chunks are "
            f"missing; go on with {store.again}"
        )
    size = store.data.stat().st_size
    if size != store.size:
        raise UserError(
            f"{store.data} is cut short or too long: {size} bytes, not {store.size}; "
            f"{store.again} mends it"
        )
    if verify and None in (found := _verified(store, digests)):
        raise UserError(
            f"{store.data} is damaged: chunk {found.index(None)} has not the SHA-256 in "
            f"{store.manifest.name}; {store.again} mends it"
        )
    return np.memmap(store.data, np.uint8, "r", shape=store.shape)


def read_digests(store: Store) -> Digests:
    content = read_json(store.manifest)
    remove = f"remove {store.data.parent} and run {store.again}"
    if not isinstance(content, dict) or not isinstance(content.get("sha256"), list):
        raise UserError(f"{store.manifest} is not a list of checksums, or damaged; {remove}")
    if content.get("version") != VERSION:
        raise UserError(
            f"{store.data} is of format {content.get('version')}, this irrl reads {VERSION}; "
            f"{remove}"
        )
    scenes = store.record.sha256[store.split]
    if content.get("scenes_sha256") != scenes or len(content["sha256"]) != len(chunks(store)):
        raise UserError(f"{store.data} shows other scenes than those of {store.folder}; {remove}")
    return content["sha256"]


def chunks(store: Store) -> list[tuple[int, int]]:
    """The first scene of each chunk, and the one after its last."""
    count = store.shape[0]
    return [(first, min(first + CHUNK, count)) for first in range(0, count, CHUNK)]


def _verified(store: Store, digests: Sequence[str | None]) -> Digests:
    """The digests of chunks that are as they were painted, None for all others."""
    each = bytes_per_scene(store.resolution)
    verified: Digests = []
    with open(store.data, "rb") as file:
        for digest, (first, last) in zip(digests, chunks(store), strict=True):
            is_whole = digest and _digest(file, first * each, (last - first) * each) == digest
            verified.append(digest if is_whole else None)
    return verified


def _digest(file: BinaryIO, start: int, size: int) -> str:
    file.seek(start)
    digest = hashlib.sha256()
    for done in range(0, size, BLOCK):
        digest.update(file.read(min(BLOCK, size - done)))
    return digest.hexdigest()


# --- painting ---


class Piece(NamedTuple):
    """A chunk of scenes to paint, and where in a file their pictures go."""

    number: int
    scenes: Scenes
    resolution: int
    path: Path
    start: int


def make_images(
    folder: Path,
    resolution: int,
    workers: int = 1,
    on_progress: Progress = lambda name, done, total: None,
) -> None:
    """Paint what is missing or damaged of the pictures of a folder of scenes."""
    for split in SPLITS:
        store = open_store(folder, split, resolution)
        with exclusive(folder, "written"):
            _paint_split(store, load_scenes(folder, split), workers, on_progress)


def _paint_split(store: Store, scenes: Scenes, workers: int, on_progress: Progress) -> None:
    store.data.parent.mkdir(exist_ok=True)
    digests: Digests = [None] * len(chunks(store))
    if store.manifest.exists():
        digests = read_digests(store)
    with open(store.data, "ab") as file:
        file.truncate(store.size)
    digests = _verified(store, digests)
    _write_manifest(store, digests)
    each = bytes_per_scene(store.resolution)
    missing = [
        Piece(number, scenes.part(first, last), store.resolution, store.data, first * each)
        for number, (first, last) in enumerate(chunks(store))
        if digests[number] is None
    ]
    done = len(scenes) - sum(len(piece.scenes) for piece in missing)
    for piece, digest in in_processes(paint_piece, missing, workers):
        digests[piece.number] = digest
        _write_manifest(store, digests)
        done += len(piece.scenes)
        on_progress(f"{store.split} pictures", done, len(scenes))


def paint_piece(piece: Piece) -> str:
    """Paint all views of some scenes into their place in a file; returns the SHA-256 of it."""
    digest = hashlib.sha256()
    pictures = np.empty((VIEWS, piece.resolution, piece.resolution, 3), np.uint8)
    with Painter() as painter, open(piece.path, "r+b") as file:
        file.seek(piece.start)
        for number in range(len(piece.scenes)):
            painter.place(piece.scenes.scene(number))
            for view in range(VIEWS):
                pictures[view] = shrink(painter.paint(view), piece.resolution)
            file.write(pictures.data)
            digest.update(pictures.data)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


def _write_manifest(store: Store, digests: Digests) -> None:
    content = {
        "version": VERSION,
        "scenes_sha256": store.record.sha256[store.split],
        "sha256": digests,
    }
    write_atomic(store.manifest, to_json_bytes(content))
