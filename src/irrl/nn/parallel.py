"""Work on parts of a batch at the same time.

Each part is computed by one thread alone, and parts are put together in their order. So the numbers
depend on how a batch is cut, which is a setting, but not on how many threads there are. It is
faster, too: threads that share every small operation spend their time waiting for each other.
"""

import ctypes
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor

from irrl.nn.distributed import World

Map = Callable[..., Iterator[Any]]

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # as in malloc.h
KEEP_UP_TO = 2**28
HAND_OVER = 2e-4  # seconds after which a thread in Python lets another go on, if that waits


@contextmanager
def parts_in_parallel(device: torch.device, parts: int) -> Iterator[Map]:
    """A ``map`` over parts, with as many threads as PyTorch has; an accelerator needs but one.

    This thread is one of them: to wake another costs time.
    """
    keep_freed_memory()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(HAND_OVER)
    available = torch.get_num_threads()
    threads = min(available, parts) if device.type == "cpu" else 1
    torch.set_num_threads(1)
    try:
        if threads == 1:
            yield map
            return
        # The number of threads is remembered for each thread apart.
        with ThreadPoolExecutor(threads - 1, "part", torch.set_num_threads, (1,)) as others:
            yield partial(map_with, others)
    finally:
        torch.set_num_threads(available)
        sys.setswitchinterval(interval)


def map_with(others: Executor, function: Callable[..., Any], *items: Iterable) -> Iterator[Any]:
    """As ``map``, by this thread and others; begins at once."""
    given = [(others.submit(function, *item), item) for item in zip(*items, strict=True)]
    try:
        # What can still be cancelled, nobody has begun.
        mine = {work: function(*item) for work, item in given if work.cancel()}
        return iter([mine[work] if work in mine else work.result() for work, _ in given])
    finally:
        for work, _ in given:
            work.cancel()


def part_edges(count: int, parts: int) -> list[tuple[int, int]]:
    """Where parts of nearly equal size begin and end; parts that would be empty are left out."""
    marks = [count * n // parts for n in range(parts + 1)]
    return [(first, last) for first, last in itertools.pairwise(marks) if last > first]


def set_gradients(
    parameters: Sequence[Tensor], of_parts: Sequence[Sequence[Tensor]], world: World
) -> None:
    """Give parameters the sum of their gradients over the parts of this and all other processes."""
    sums = [sum(gradients[1:], start=gradients[0]) for gradients in zip(*of_parts, strict=True)]
    if not of_parts:  # the last batch may be too small for all processes
        sums = [torch.zeros_like(parameter) for parameter in parameters]
    for parameter, gradient in zip(parameters, world.all_reduce_sum(sums), strict=True):
        # As the parameter lies in memory: fused Adam goes by addresses, whatever the strides say,
        # and convolutions of pictures with channels last have gradients with channels last.
        parameter.grad = gradient.contiguous()


def keep_freed_memory() -> None:
    """Tell the C library not to hand large blocks back to the system, only to ask again at once.

    Fresh pages are zeroed one by one: a tenth of the time of an update. Where the library is
    another one, nothing happens.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    for option in (M_TRIM_THRESHOLD, M_MMAP_THRESHOLD):
        mallopt(option, KEEP_UP_TO)
