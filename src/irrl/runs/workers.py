"""Independent pieces of work in processes of their own."""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection, get_context, parent_process
from typing import TypeVar

from irrl.errors import UserError

Job = TypeVar("Job")
Result = TypeVar("Result")


def in_processes(
    work: Callable[[Job], Result], jobs: Sequence[Job], workers: int
) -> Iterator[tuple[Job, Result]]:
    """Do jobs, several at a time; gives each with its result as it is done.

    One worker is this process itself. An error, or an interruption, ends the others at once.
    """
    if workers == 1 or len(jobs) <= 1:
        for job in jobs:
            yield job, work(job)
        return
    one_thread_per_worker()
    pool = ProcessPoolExecutor(min(workers, len(jobs)), get_context("spawn"), start_worker)
    try:
        futures = {pool.submit(work, job): job for job in jobs}
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenProcessPool:
        raise UserError(
            "a worker process died, perhaps for want of memory; the same command again goes on "
            "from there, with fewer --workers if need be"
        ) from None
    except BaseException:
        end_workers(pool)
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def start_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def end_workers(pool: ProcessPoolExecutor) -> None:
    for process in (pool._processes or {}).values():
        process.terminate()


def one_thread_per_worker() -> None:
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    os.environ.setdefault("LP_NUM_THREADS", "0")  # of the software that draws: the caller's own
