"""Pictures of all views of all scenes, rendered once, mapped into memory when training.

Beside the scenes of a folder:

images-64/train.bin    bytes of shape (scenes, 12 views, 64, 64, 3)
images-64/train.json   format version, the scenes they show, SHA-256 of each chunk that is finished

Pictures are rendered at 256 x 256 and averaged down, so that small ones are smooth, and equal to
what the environment ``irrl/ObjectCounting-v0`` shows.
"""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from irrl.errors import UserError
from irrl.runs.files import exclusive, read_json, to_json_bytes, write_atomic
from irrl.runs.workers import in_processes
from irrl.tasks.counting.dataset import (
    CHUNK,
    SPLITS,
    Record,
    Scenes,
    finished_record,
    load_scenes,
)
from irrl.tasks.counting.generate import Progress
from irrl.tasks.counting.render import Renderer, check_resolution, shrink
from irrl.tasks.counting.scene import VIEWS

VERSION = 1
BLOCK = 1 << 20

Digests = list[str | None]
"""The SHA-256 of each chunk, None for those not rendered yet."""


class ImageStore(NamedTuple):
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


def open_store(folder: Path, split: str, resolution: int) -> ImageStore:
    check_resolution(resolution)
    return ImageStore(folder, finished_record(folder, split), split, resolution)


# --- reading ---


def open_images(
    folder: str | Path, split: str, resolution: int, verify: bool = False, count: int | None = None
) -> np.ndarray:
    """The pictures of a split, (scenes, 12, resolution, resolution, 3) bytes, read as needed.

    That they are complete and show these scenes is always checked; with ``verify`` every byte of
    the first ``count`` scenes, all if not given.
    """
    store = find_images(Path(folder), split, resolution)
    if verify and None in (found := _verified(store, read_digests(store), count)):
        raise UserError(
            f"{store.data} is damaged: chunk {found.index(None)} has not the SHA-256 in "
            f"{store.manifest.name}; {store.again} mends it"
        )
    return np.memmap(store.data, np.uint8, "r", shape=store.shape)[:count]


def find_images(folder: Path, split: str, resolution: int) -> ImageStore:
    """Where the pictures of a split are, if they are complete. Reads no picture."""
    store = open_store(folder, split, resolution)
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
    return store


def read_digests(store: ImageStore) -> Digests:
    content = read_json(store.manifest)
    remove = f"remove {store.data.parent} and run {store.again}"
    if not isinstance(content, dict) or not (
        isinstance(content.get("sha256"), list)
        and all(digest is None or isinstance(digest, str) for digest in content["sha256"])
    ):
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


def chunks(store: ImageStore) -> list[tuple[int, int]]:
    """The first scene of each chunk, and the one after its last."""
    count = store.shape[0]
    return [(first, min(first + CHUNK, count)) for first in range(0, count, CHUNK)]


def _verified(
    store: ImageStore, digests: Sequence[str | None], count: int | None = None
) -> Digests:
    """The digests of chunks that are as they were rendered, None for all others.

    Of the chunks that hold the first ``count`` scenes, if that is given.
    """
    wanted = [piece for piece in chunks(store) if count is None or piece[0] < count]
    each = bytes_per_scene(store.resolution)
    verified: Digests = []
    with open(store.data, "rb") as file:
        for digest, (first, last) in zip(digests, wanted, strict=False):
            is_whole = digest and _digest(file, first * each, (last - first) * each) == digest
            verified.append(digest if is_whole else None)
    return verified


def _digest(file: BinaryIO, start: int, size: int) -> str:
    file.seek(start)
    digest = hashlib.sha256()
    for done in range(0, size, BLOCK):
        digest.update(file.read(min(BLOCK, size - done)))
    return digest.hexdigest()


# --- rendering ---


class ImageChunk(NamedTuple):
    """Some scenes to render, and where in a file their pictures go."""

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
    """Render what is missing or damaged of the pictures of a folder of scenes."""
    for split in SPLITS:
        store = open_store(folder, split, resolution)
        with exclusive(folder, "written"):
            _render_split(store, load_scenes(folder, split), workers, on_progress)


def _render_split(store: ImageStore, scenes: Scenes, workers: int, on_progress: Progress) -> None:
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
        ImageChunk(number, scenes.part(first, last), store.resolution, store.data, first * each)
        for number, (first, last) in enumerate(chunks(store))
        if digests[number] is None
    ]
    done = len(scenes) - sum(len(chunk.scenes) for chunk in missing)
    for chunk, digest in in_processes(render_chunk, missing, workers):
        digests[chunk.number] = digest
        _write_manifest(store, digests)
        done += len(chunk.scenes)
        on_progress(f"{store.split} pictures", done, len(scenes))


def render_chunk(chunk: ImageChunk) -> str:
    """Render all views of some scenes into their place in a file; returns the SHA-256 of it."""
    digest = hashlib.sha256()
    pictures = np.empty((VIEWS, chunk.resolution, chunk.resolution, 3), np.uint8)
    with Renderer() as renderer, open(chunk.path, "r+b") as file:
        file.seek(chunk.start)
        for number in range(len(chunk.scenes)):
            renderer.place(chunk.scenes.scene(number))
            for view in range(VIEWS):
                pictures[view] = shrink(renderer.render(view), chunk.resolution)
            file.write(pictures.data)
            digest.update(pictures.data)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


def _write_manifest(store: ImageStore, digests: Digests) -> None:
    content = {
        "version": VERSION,
        "scenes_sha256": store.record.sha256[store.split],
        "sha256": digests,
    }
    write_atomic(store.manifest, to_json_bytes(content))
