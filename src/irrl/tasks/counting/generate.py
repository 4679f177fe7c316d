"""Making the scenes of a folder, in chunks.

Each chunk has its own stream of randomness, so that the result depends neither on the number of
workers nor on interruptions.
"""

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors.numpy import save

from irrl.errors import UserError
from irrl.runs.files import exclusive, is_leftover, to_json_bytes, write_atomic
from irrl.runs.reading import read_plain
from irrl.runs.seeding import stream
from irrl.runs.workers import in_processes
from irrl.tasks.counting.dataset import (
    CHUNK,
    FIELDS,
    HEADER_BYTES,
    PARTS,
    RECORD,
    SCENE_BYTES,
    SPLITS,
    VERSION,
    Plan,
    Scenes,
    read_record,
    scenes_of,
    scenes_path,
)
from irrl.tasks.counting.render import Renderer
from irrl.tasks.counting.scene import VIEWS, sample_scene

Progress = Callable[[str, int, int], None]  # name, scenes done, scenes in all


class SceneChunk(NamedTuple):
    """Some scenes of a split: they are sampled together, in order, and written to a file."""

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
        if folder.exists() and not all(is_leftover(p, RECORD) for p in folder.iterdir()):
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
    """Make the chunks that are missing and join them all; returns the SHA-256 of the result."""
    (folder / PARTS).mkdir(exist_ok=True)
    chunks = chunks_of(folder, plan, split)
    missing = [chunk for chunk in chunks if not chunk.path.exists()]
    done = plan.count(split) - sum(chunk.scenes for chunk in missing)
    for chunk, _ in in_processes(make_chunk, missing, workers):
        done += chunk.scenes
        on_progress(f"{split} scenes", done, plan.count(split))
    arrays = [_read_chunk(chunk) for chunk in chunks]
    joined = {name: np.concatenate([array[name] for array in arrays]) for name in FIELDS}
    content = save(joined)
    write_atomic(scenes_path(folder, split), content)
    return hashlib.sha256(content).hexdigest()


def chunks_of(folder: Path, plan: Plan, split: str) -> list[SceneChunk]:
    total = plan.count(split)
    return [
        SceneChunk(
            folder / PARTS / f"{split}-{number:06d}.safetensors",
            plan.seed,
            split,
            number,
            min(CHUNK, total - first),
        )
        for number, first in enumerate(range(0, total, CHUNK))
    ]


def make_chunk(chunk: SceneChunk) -> None:
    """Sample the scenes of a chunk, measure all views of each, and write them."""
    rng = stream(chunk.seed, "data", SPLITS.index(chunk.split), chunk.number)
    scenes = Scenes.empty(chunk.scenes)
    with Renderer() as renderer:
        for number in range(chunk.scenes):
            scene = sample_scene(rng, renderer.visible)
            renderer.place(scene)
            scenes.put(number, scene, np.stack([renderer.visible_pixels(k) for k in range(VIEWS)]))
    write_atomic(chunk.path, save(scenes.arrays()))


def _read_chunk(chunk: SceneChunk) -> dict[str, np.ndarray]:
    most = SCENE_BYTES * chunk.scenes + HEADER_BYTES
    try:
        return scenes_of(chunk.path, read_plain(chunk.path, most), chunk.scenes).arrays()
    except UserError as error:
        raise UserError(f"{error}; remove it, and the same command makes it again") from None
