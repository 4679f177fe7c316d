"""The engine of a cluster: every job is a Ray task, on any node that has a core free.

All nodes need this package and the file system that the run folders are on.
"""

import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import Any

from irrl.errors import UserError
from irrl.runs.ray_cluster import connect, import_ray
from irrl.runs.workers import one_thread_per_worker
from irrl.sweeps.sweep import (
    LOOK_EVERY,
    RETRIES,
    Engine,
    Job,
    Outcome,
    Outcomes,
    Train,
    attempt,
    describe,
    died,
    is_finished,
)


def ray_engine(address: str | None, workers: int, gpus: float = 0.0) -> Engine:
    """An engine on the cluster at an address, or on one started here for so many workers.

    Each job gets one core and ``gpus`` of the GPUs. Where its worker or node dies, Ray gives it
    to another one.
    """
    return lambda jobs, train: _outcomes(jobs, train, address, workers, gpus)


def _outcomes(
    jobs: Sequence[Job], train: Train, address: str | None, workers: int, gpus: float
) -> Outcomes:
    ray = import_ray(address)
    connect(ray, address, workers)
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):  # where Ray tells of deaths
        try:
            _check_gpus(ray, gpus, address)
            yield from _as_they_end(ray, jobs, train, gpus)
        finally:
            ray.shutdown()


def _as_they_end(ray: Any, jobs: Sequence[Job], train: Train, gpus: float) -> Outcomes:
    task = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=RETRIES)(_work)
    here = os.getcwd(), sys.argv
    waiting = {task.options(name=job.name).remote(job, train, *here): job for job in jobs}
    try:
        while waiting:
            ended, _ = ray.wait(list(waiting), timeout=LOOK_EVERY)
            for reference in ended:
                yield _outcome(ray, reference, waiting.pop(reference))
            if not ended:
                yield None
    finally:
        for reference in waiting:
            ray.cancel(reference, force=True)


def _work(job: Job, train: Train, folder: str, command: list[str]) -> Outcome:
    os.chdir(folder)  # settings may name files as they are seen from where the sweep was started
    if folder not in sys.path:  # and modules that lie there
        sys.path.append(folder)
    sys.argv = command  # for provenance.json
    one_thread_per_worker()
    return attempt(job, train)


def _outcome(ray: Any, reference: Any, job: Job) -> Outcome:
    try:
        outcome = ray.get(reference)
    except ray.exceptions.WorkerCrashedError:
        return died(job)
    except Exception as error:
        return Outcome(job, describe(error))
    if outcome.error is None and not is_finished(job):
        return Outcome(
            job, "done, but not to be seen from here: out must be on a file system all nodes share"
        )
    return outcome


# --- the cluster ---


def _check_gpus(ray: Any, gpus: float, address: str | None) -> None:
    there = ray.cluster_resources().get("GPU", 0.0)
    if gpus <= there:
        return
    told = f"each run wants {gpus:g} GPUs, but there are {there:g}"
    if address is None:
        raise UserError(f"{told}; leave --gpus out to train on cores")
    print(f"irrl: {told}; waiting for the cluster to grow", file=sys.stderr)
