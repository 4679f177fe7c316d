"""Many runs at once: one process and one thread each, run folders as the only truth.

A finished run is skipped and a half-finished one resumed, so repeating a sweep completes it.
"""

import queue as queues
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from irrl.config import Config
from irrl.errors import UserError
from irrl.run import Row, Run
from irrl.workers import end_workers, one_thread_per_worker, start_worker

Train = Callable[[Run], dict[str, Any]]


class Job(NamedTuple):
    name: str
    folder: Path
    config: Config


class Failure(NamedTuple):
    name: str
    error: str


_rows: Any = None  # in a worker: where its rows go


def run_all(
    jobs: Sequence[Job],
    train: Train,
    workers: int,
    on_row: Callable[[str, Row], None] = lambda name, row: None,
) -> list[Failure]:
    """Train every job; return those that failed, after all others are done.

    ``on_row`` hears each row of each run as it is logged. Ctrl-C ends the workers at once; what
    they had checkpointed is there to resume.
    """
    for job in jobs:  # all folders are checked before anything is written
        Run.check(job.folder, job.config)
    one_thread_per_worker()
    context = get_context("spawn")
    rows = context.Queue()
    pool = ProcessPoolExecutor(workers, context, _start_worker, (rows,))
    futures = {pool.submit(_work, job, train): job for job in jobs}
    try:
        for name, row in _rows_until_done(rows, list(futures)):
            on_row(name, row)
    except BaseException:
        end_workers(pool)
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return [
        Failure(job.name, _describe(error))
        for future, job in futures.items()
        if (error := future.exception()) is not None
    ]


def _rows_until_done(rows: Any, futures: list[Future]) -> Iterator[tuple[str, Row]]:
    while True:
        finished = all(future.done() for future in futures)
        try:
            yield rows.get(timeout=0.0 if finished else 0.2)
        except queues.Empty:
            if finished:
                return


def _start_worker(rows: Any) -> None:
    global _rows
    _rows = rows
    start_worker()


def _work(job: Job, train: Train) -> None:
    run = Run.create_or_open(job.folder, job.config)
    run.listeners.append(lambda row: _rows.put((job.name, row)))
    train(run)


def _describe(error: BaseException) -> str:
    if isinstance(error, BrokenProcessPool):
        return "its worker process died; the same command again goes on from the last checkpoint"
    return str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
