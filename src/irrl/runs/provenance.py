"""What is needed to make the same numbers again: version, commit, command, libraries, machine."""

import os
import platform
import shlex
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from irrl.errors import UserError
from irrl.runs.reading import is_there, read_object

LIBRARIES = (
    "numpy", "numba", "array-api-compat", "safetensors", "gymnasium", "torch", "jax", "mujoco",
)  # fmt: skip


def provenance() -> dict[str, Any]:
    """What is needed to make the same numbers again."""
    in_repository = _git("ls-files", "--error-unmatch", __file__) is not None
    return {
        "irrl": _version("irrl"),
        "commit": _git("rev-parse", "HEAD") if in_repository else None,
        "dirty": bool(_git("status", "--porcelain", "--", ".")) if in_repository else None,
        "command": shlex.join(["irrl", *sys.argv[1:]]),
        "processes": int(os.environ.get("WORLD_SIZE", 1)),  # as torchrun sets it
        "python": platform.python_version(),
        "libraries": {name: v for name in LIBRARIES if (v := _version(name)) is not None},
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "processor": _processor(),
            "cores": os.cpu_count(),
        },
    }


def read_provenance(path: Path) -> dict[str, Any]:
    """What a run folder says about how it was made; empty if there is no such file."""
    if not is_there(path):
        return {}
    record = read_object(path, "the provenance of a run")
    for key, kind in (("machine", dict), ("libraries", dict), ("resumed", list)):
        if not isinstance(record.get(key, kind()), kind):
            raise UserError(f"{path} is damaged: its {key} must be a JSON {kind.__name__}")
    return record


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _git(*arguments: str) -> str | None:
    """What git says about the source of this package, None where it says nothing."""
    try:
        result = subprocess.run(
            ["git", "-C", str(Path(__file__).resolve().parent), *arguments],
            capture_output=True,
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout.strip() if result.returncode == 0 else None


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor()
