"""What the tests of all tasks' runs share."""

import json

from irrl.checkpoint import checkpoint_paths
from irrl.run import Run
from irrl.tasks import make_config, train


def run_in(folder, task, **settings):
    """A finished run of the smoke preset."""
    run = Run.create(folder, make_config(task, "smoke", **settings))
    train(run)
    return run


def content(folder):
    """Everything a run left behind that must not depend on clocks or interruptions."""
    files = {"metrics": (folder / "metrics.jsonl").read_bytes()}
    for path in checkpoint_paths(folder / "checkpoints"):
        files[path.name] = (path / "arrays.safetensors").read_bytes()
    summary = json.loads((folder / "summary.json").read_text())
    files["summary"] = {k: v for k, v in summary.items() if "second" not in k}
    return files


class StopError(Exception):
    pass


def stopped_after(rows, folder, task, **settings):
    """A run that was stopped when it had logged so many rows."""
    run = Run.create(folder, make_config(task, "smoke", **settings))
    seen = []

    def stop(row):
        seen.append(row)
        if len(seen) == rows:
            raise StopError

    run.listeners.append(stop)
    try:
        train(run)
    except StopError:
        return run
    raise AssertionError(f"the run ended before it had logged {rows} rows")
