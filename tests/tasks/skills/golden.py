"""Checksums of runs of skills that every machine must reproduce to the last byte.

Run as a script it prints those of this machine, as JSON:

    python -m tests.tasks.skills.golden [NAME ...]
"""

import hashlib
import json
import sys
import tempfile
from pathlib import Path

from irrl.runs.checkpoint import checkpoint_paths, load_checkpoint
from irrl.tasks import begin, make_config, train

SHORT = {"iterations": 20_000, "evaluate_every": 5_000, "checkpoint_every": 10_000}

RUNS = {
    "smoke": ("smoke", {}),
    "smoke disdain": ("smoke", {"reward": "disdain"}),
    "smoke visits": ("smoke", {"reward": "clipped-log", "bonus": "visits"}),
    "smoke f-jensen-shannon": ("smoke", {"reward": "f-jensen-shannon", "codes": 23}),
    "fast, 20,000 iterations": ("fast", SHORT),
    "fast disdain, 20,000 iterations": ("fast", {"reward": "disdain", **SHORT}),
    "fast": ("fast", {}),
}
QUICK = tuple(name for name in RUNS if name != "fast")


def checksum(name):
    """The SHA-256 of the metrics and of all arrays of all checkpoints of a run."""
    preset, settings = RUNS[name]
    with tempfile.TemporaryDirectory() as folder:
        run, prepared = begin(Path(folder) / "run", make_config("skills", preset, **settings))
        train(run, prepared)
        digest = hashlib.sha256((run.folder / "metrics.jsonl").read_bytes())
        for path in checkpoint_paths(run.folder / "checkpoints"):
            for key, array in sorted(load_checkpoint(path).arrays.items()):
                digest.update(f"{path.name} {key} {array.dtype.str} {array.shape}".encode())
                digest.update(array.tobytes())
    return digest.hexdigest()


if __name__ == "__main__":
    print(json.dumps({name: checksum(name) for name in sys.argv[1:] or QUICK}, indent=1))
