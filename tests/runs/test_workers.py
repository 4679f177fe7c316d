import os
import time
from multiprocessing import active_children

import pytest

from irrl.errors import UserError
from irrl.runs.workers import in_processes


def square(number):
    return number * number, os.getpid()


def fail(number):
    raise UserError(f"no {number}")


def die(number):
    os._exit(1)


def test_results_of_all_jobs():
    found = dict(in_processes(square, [1, 2, 3, 4], 2))
    assert {job: result for job, (result, _) in found.items()} == {1: 1, 2: 4, 3: 9, 4: 16}
    assert os.getpid() not in {process for _, process in found.values()}


def test_one_worker_is_this_process():
    assert list(in_processes(square, [3, 2], 1)) == [(3, (9, os.getpid())), (2, (4, os.getpid()))]
    assert list(in_processes(square, [], 8)) == []


def test_errors_come_back():
    with pytest.raises(UserError, match="no 5"):
        list(in_processes(fail, [5, 5], 2))
    with pytest.raises(UserError, match="a worker process died"):
        list(in_processes(die, [1, 2], 2))


class InterruptedWhileHandedOut(list):
    def __iter__(self):
        yield from self[:3]
        raise KeyboardInterrupt


def test_an_interruption_while_jobs_are_handed_out_ends_the_workers():
    with pytest.raises(KeyboardInterrupt):
        list(in_processes(time.sleep, InterruptedWhileHandedOut([3600] * 9), 2))
    assert active_children() == []
