"""The engine of one machine: processes that do one job after another, one thread each."""

from collections import Counter, deque
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import connection, get_context
from multiprocessing.context import SpawnProcess
from typing import Any

from irrl.runs.workers import one_thread_per_worker, start_worker
from irrl.sweeps.sweep import (
    LOOK_EVERY,
    RETRIES,
    Engine,
    Job,
    Outcome,
    Outcomes,
    Train,
    attempt,
    died,
)


def local_engine(workers: int) -> Engine:
    """An engine of so many processes. A job whose process dies is given to another one."""
    return lambda jobs, train: _outcomes(jobs, train, workers)


def _outcomes(jobs: Sequence[Job], train: Train, workers: int) -> Outcomes:
    one_thread_per_worker()
    todo, deaths = deque(jobs), Counter[Job]()
    crew = [_Worker(train) for _ in range(min(workers, len(jobs)))]
    try:
        while todo or any(worker.job for worker in crew):
            for worker in crew:
                if todo and worker.job is None:
                    worker.give(todo.popleft())
            heard = connection.wait([w.line for w in crew if w.job is not None], LOOK_EVERY)
            for worker in [worker for worker in crew if worker.line in heard]:
                job, outcome = worker.take()
                if outcome is None:
                    crew[crew.index(worker)] = _Worker(train)
                    deaths[job] += 1
                    outcome = died(job) if deaths[job] > RETRIES else None
                    if outcome is None:
                        todo.appendleft(job)
                yield outcome
            if not heard:
                yield None
    finally:
        for worker in crew:
            worker.end()


class _Worker:
    """A process, the line to it, and the job it is at."""

    def __init__(self, train: Train) -> None:
        context = get_context("spawn")
        self.line, theirs = context.Pipe()
        self.job: Job | None = None
        self.process: SpawnProcess = context.Process(target=_serve, args=(theirs, train))
        self.process.start()
        theirs.close()  # so that its death is heard as the end of the line

    def give(self, job: Job) -> None:
        self.job = job
        with suppress(OSError):  # that it is dead is heard when it is listened to
            self.line.send(job)

    def take(self) -> tuple[Job, Outcome | None]:
        """The job it was at, and how that ended; None if the process died over it."""
        job, self.job = self.job, None
        assert job is not None
        try:
            return job, self.line.recv()
        except (EOFError, OSError):
            self.end()
            return job, None

    def end(self) -> None:
        self.process.terminate()
        self.process.join()
        self.line.close()


def _serve(line: Any, train: Train) -> None:
    start_worker()
    while True:
        try:
            job = line.recv()
        except EOFError:
            return
        line.send(attempt(job, train))
