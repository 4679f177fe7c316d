"""Many runs at once: run folders are the only truth.

A finished run is skipped and a half-finished one resumed, so repeating a sweep completes it. Who
does the work is an engine: processes of this machine, or a Ray cluster.
"""

import errno
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from irrl import tasks
from irrl.errors import UserError
from irrl.runs.config import Config
from irrl.runs.run import is_finished as run_is_finished
from irrl.runs.run import last_row

Train = Callable[[Path, Config], Any]
"""Starts a run of a configuration in a folder, or goes on with it: `irrl.tasks.train_in`."""

RETRIES = 10
"""How many workers may die over one run before it counts as failed."""

LOOK_EVERY = 1.0  # seconds after which an engine gives None while nothing ends

DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Job(NamedTuple):
    name: str
    folder: Path
    config: Config


class Outcome(NamedTuple):
    """How a job ended: well, or with an error; a full disk ends all of them."""

    job: Job
    error: str | None = None
    disk_full: bool = False


Outcomes = Generator[Outcome | None, None, None]
Engine = Callable[[Sequence[Job], Train], Outcomes]
"""Does jobs; gives how each ended when it did, and None now and then in between.

Closed before its end, it ends its workers: what they had checkpointed is there to resume."""


def run_all(
    jobs: Sequence[Job],
    train: Train,
    engine: Engine,
    on_look: Callable[[Outcome | None], None] = lambda outcome: None,
) -> list[Outcome]:
    """Train every job that is not finished; return those that failed, after all others are done.

    ``on_look`` is called when a job ends, and with None now and then.
    """
    for job in jobs:  # all folders are checked before anything is written
        tasks.check_folder(job.folder, job.config)
    todo = longest_first([job for job in jobs if not is_finished(job)])
    failed: list[Outcome] = []
    if not todo:
        return failed
    with closing(engine(todo, train)) as outcomes:
        for outcome in outcomes:
            on_look(outcome)
            if outcome is not None and outcome.disk_full:
                raise UserError(
                    f"{outcome.job.folder}: {outcome.error}; make room and repeat the command: "
                    "finished runs are as they were, the others go on from their checkpoints"
                )
            if outcome is not None and outcome.error is not None:
                failed.append(outcome)
    return failed


def attempt(job: Job, train: Train) -> Outcome:
    """Do a job, from its last checkpoint if it has one. What goes wrong is told, not raised."""
    try:
        train(job.folder, job.config)
    except Exception as error:
        return Outcome(job, describe(error), getattr(error, "errno", None) in DISK_FULL)
    return Outcome(job)


def describe(error: BaseException) -> str:
    """One line about an error."""
    said = " ".join(str(error).split())
    return said if isinstance(error, UserError) else f"{type(error).__name__}: {said}"


def died(job: Job) -> Outcome:
    """When too many workers have died over a job."""
    return Outcome(
        job,
        "its worker process died again and again, perhaps for want of memory; the same command "
        "goes on from the last checkpoint, with fewer --workers if need be",
    )


def longest_first(jobs: Sequence[Job]) -> list[Job]:
    """Jobs with the most steps before them first, so that none is left alone at the end."""
    return sorted(jobs, key=lambda job: steps_done(job) - job.config.total_steps)


def is_finished(job: Job) -> bool:
    return run_is_finished(job.folder)


def steps_done(job: Job) -> int:
    """How far a job has come, by what it has logged."""
    row = last_row(job.folder)
    return row["step"] if row else 0
