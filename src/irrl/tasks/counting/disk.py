"""Room on the disk for scenes and their pictures."""

import shutil
from pathlib import Path

from irrl.errors import UserError
from irrl.tasks.counting.dataset import PARTS, SCENE_BYTES, Plan
from irrl.tasks.counting.images import bytes_per_scene, images_folder


def scenes_bytes(plan: Plan) -> int:
    """What making scenes takes at most: each split as parts and as a whole."""
    return 2 * SCENE_BYTES * plan.total


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
