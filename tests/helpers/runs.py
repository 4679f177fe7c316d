"""What the tests of all tasks' runs share."""

import json
import os
import signal
import subprocess
import sys
import time

from irrl.runs.checkpoint import checkpoint_paths
from irrl.tasks import begin, make_config, train


def run_in(folder, task, **settings):
    """A finished run of the smoke preset."""
    run, prepared = begin(folder, make_config(task, "smoke", **settings))
    train(run, prepared)
    return run


def content(folder):
    """Everything a run left behind that must not depend on clocks or interruptions."""
    files = {"metrics": (folder / "metrics.jsonl").read_bytes()}
    for path in checkpoint_paths(folder / "checkpoints"):
        files[path.name] = (path / "arrays.safetensors").read_bytes()
    summary = json.loads((folder / "summary.json").read_text())
    files["summary"] = {k: v for k, v in summary.items() if "second" not in k and k != "sha256"}
    return files


class StopError(Exception):
    pass


def stopped_after(rows, folder, task, **settings):
    """A run that was stopped when it had logged so many rows."""
    run, prepared = begin(folder, make_config(task, "smoke", **settings))
    seen = []

    def stop(row):
        seen.append(row)
        if len(seen) == rows:
            raise StopError

    run.listeners.append(stop)
    try:
        train(run, prepared)
    except StopError:
        return run
    raise AssertionError(f"the run ended before it had logged {rows} rows")


def killed_and_resumed(folder, task, flags, kills, checkpoints):
    """A run of the command line, ended by SIGKILL each time it has so many checkpoints more."""
    command = [sys.executable, "-m", "irrl"]
    process = subprocess.Popen([*command, "train", task, *flags, "--out", folder])
    done = 0
    while done < kills:
        wanted = checkpoints * (done + 1)
        while process.poll() is None and len(checkpoint_paths(folder / "checkpoints")) < wanted:
            time.sleep(0.01)
        if process.poll() is not None:
            break
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        done += 1
        process = subprocess.Popen([*command, "resume", str(folder)])
    assert process.wait() == 0 and done > 0
