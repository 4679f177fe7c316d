"""SIGKILL at every file operation of a run, or at random moments: resumed, it must end alike.

A child of this process trains; an audit hook counts what it does to the files of its folder, and
ends it by SIGKILL before the one that was asked for. So a kill costs no start of Python.
"""

import importlib
import os
import shutil
import signal
import time
import traceback
from typing import NamedTuple

import numpy as np

from irrl.tasks import find_task, make_config, train_in
from tests.helpers.runs import content

OPERATIONS = (
    "open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate",
    "shutil.rmtree",
)  # fmt: skip


def of_folder(folder, event, arguments):
    """Whether an audit event is about the files of a folder."""
    if event not in OPERATIONS:
        return False
    if event == "os.truncate" or isinstance(arguments[0], int):
        return True
    return any(str(folder) in os.fsdecode(a) for a in arguments if isinstance(a, str | bytes))


def child(folder, work, kill_at=None):
    """Work in a process of its own; returns its id. It ends by itself, or before an operation.

    ``work`` is a function, or the configuration of a run that is to be trained in the folder.
    """
    pid = os.fork()
    if pid:
        return pid
    seen, code = 0, 1

    def count(event, arguments):
        nonlocal seen
        if of_folder(folder, event, arguments):
            seen += 1
            if seen == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

    import sys

    sys.addaudithook(count)
    try:
        work() if callable(work) else train_in(folder, work)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        if kill_at == 0:  # only to count
            folder.with_suffix(".count").write_text(str(seen))
        os._exit(code)


def ended(pid):
    """How a child ended: its exit code, minus the signal if it was killed."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def whole_run(folder, task, settings):
    """A run that was never stopped: what it left, and how many operations that took."""
    assert ended(child(folder, make_config(task, "smoke", **settings), kill_at=0)) == 0
    return content(folder), int(folder.with_suffix(".count").read_text())


def warm_up(config):
    """Load here what each child needs; PyTorch survives a fork only as long as it did nothing."""
    importlib.import_module(f"irrl.tasks.{config.task}.train")
    if config.task == "skills":
        find_task(config.task).prepare(config, None)
    else:
        importlib.import_module("torch._dynamo")  # which the first optimiser would load
        importlib.import_module("sb3_contrib")


def kill_while_writing(folder, write):
    """Kill before each file operation of writing to a folder; yields the number of each."""
    assert ended(child(folder, write, kill_at=0)) == 0
    operations = int(folder.with_suffix(".count").read_text())
    for number in range(1, operations + 1):
        assert ended(child(folder, write, number)) == -signal.SIGKILL
        yield number


class Found(NamedTuple):
    """How many kills there were, in how many runs, and where a run then ended otherwise."""

    kills: int
    runs: int
    differences: list[str]


def difference(folder, config, expected):
    """Let a run that was killed go on to its end: what is then other than it should be, if any."""
    if code := ended(child(folder, config)):
        return f"exit code {code}"
    found = content(folder)
    return ", ".join(n for n in {**expected, **found} if found.get(n) != expected.get(n))


def kill_at_every_operation(place, task, settings, every=1):
    """Kill before each operation, once more while it resumes, then let it end."""
    expected, operations = whole_run(place / "whole", task, settings)
    config = make_config(task, "smoke", **settings)
    warm_up(config)
    kills, differences = 0, []
    for number in range(1, operations + 1, every):
        folder = place / f"at-{number}"
        kills += ended(child(folder, config, number)) == -signal.SIGKILL
        kills += ended(child(folder, config, 1 + 7 * number % 23)) == -signal.SIGKILL
        if other := difference(folder, config, expected):
            differences.append(f"operation {number} of {operations}: {other}")
        shutil.rmtree(folder, ignore_errors=True)
    return Found(kills, operations, differences)


def kill_at_random(place, task, settings, kills, seed=0):
    """Kill at random moments, up to three times a run."""
    rng = np.random.default_rng(seed)
    warm_up(make_config(task, "smoke", **settings))
    begun = time.monotonic()
    expected, _ = whole_run(place / "whole", task, settings)
    duration = time.monotonic() - begun
    config = make_config(task, "smoke", **settings)
    done, runs, differences = 0, 0, []
    while done < kills:
        folder = place / f"random-{runs}"
        for _ in range(3):
            pid = child(folder, config)
            time.sleep(rng.uniform(0.0, duration))
            os.kill(pid, signal.SIGKILL)
            killed = ended(pid) == -signal.SIGKILL
            done += killed
            if not killed:
                break
        if other := difference(folder, config, expected):
            differences.append(f"run {runs}, seed {seed}: {other}")
        shutil.rmtree(folder, ignore_errors=True)
        runs += 1
    return Found(done, runs, differences)
