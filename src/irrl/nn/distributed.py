"""Several processes that train one run together, as ``torchrun`` starts them.

Each has the whole model, works on its share of the parts of a batch, and adds its gradients to
those of the others, so that all models stay alike. Only the first writes and speaks. A process that
was started alone is a world of one, in which nothing here does anything and PyTorch is not asked.
"""

import io
import itertools
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from irrl.errors import UserError

Result = TypeVar("Result")

SET_BY_TORCHRUN = ("RANK", "WORLD_SIZE", "LOCAL_RANK")


@dataclass(frozen=True)
class World:
    """The processes of a run, and which of them this one is.

    All of them call ``gather``, ``map_all_ranks``, ``once`` and ``all_reduce_sum`` in the same
    order.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0  # on its machine, which has a GPU for each
    store: Any = None

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def share(self, items: Sequence[Any]) -> Sequence[Any]:
        """What of some work is this process's: together, in order, the shares are all of it."""
        first, last = (len(items) * n // self.size for n in (self.rank, self.rank + 1))
        return items[first:last]

    def gather(self, value: Result) -> list[Result]:
        """The values of all processes, in order; tensors come to this one's device."""
        if self.size == 1:
            return [value]
        import torch
        from torch import distributed

        packed, found = io.BytesIO(), [b""] * self.size
        torch.save(value, packed)
        with _the_others():
            distributed.all_gather_object(found, packed.getvalue())
        return [torch.load(io.BytesIO(x), self._to_own_device, weights_only=False) for x in found]

    def _to_own_device(self, storage: Any, location: str) -> Any:
        return storage if location == "cpu" else storage.cuda(self.local_rank)

    def map_all_ranks(self, each: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        """A ``map`` whose items are shared by all processes, and whose results all of them get."""
        if self.size == 1:
            return each

        def shared(function: Callable, items: Sequence[Any]) -> Iterator[Any]:
            mine = list(each(function, self.share(items)))
            return itertools.chain.from_iterable(self.gather(mine))

        return shared

    def once(self, function: Callable[[], Result]) -> Result:
        """What a function returns that is called by the first process only."""
        if self.size == 1:
            return function()
        from torch import distributed

        found: list[Any] = [function() if self.is_first else None]
        with _the_others():
            distributed.broadcast_object_list(found)
        return found[0]

    def wait_for_all(self) -> None:
        """Go on when all processes have come this far; end where one of them has ended."""
        self.gather(None)

    def all_reduce_sum(self, tensors: Sequence[Any]) -> list[Any]:
        """The sum over all processes of each of some tensors, by one exchange."""
        if self.size == 1:
            return list(tensors)
        import torch
        from torch import distributed

        flat = torch.cat([tensor.flatten() for tensor in tensors])
        with _the_others():
            distributed.all_reduce(flat)
        pieces = flat.split([tensor.numel() for tensor in tensors])
        return [piece.view(x.shape) for piece, x in zip(pieces, tensors, strict=True)]

    def require_parts(self, parts: int, episodes: int) -> None:
        """Raise unless there is a part of each batch for each process."""
        for there, what in ((parts, "parts"), (episodes, "episodes")):
            if self.size > there:
                raise UserError(
                    f"{self.size} processes need at least as many {what} of a batch, this run has "
                    f"{there}; start fewer, or a new run with more"
                )

    def has_the_word(self) -> bool:
        """Whether to tell of an error: the first process to ask does, whichever it is."""
        try:
            return self.store.add("irrl has told", 1) == 1
        except RuntimeError:  # whoever kept the store is gone
            return True


ALONE = World()
_world = ALONE


def current_world() -> World:
    """The world this process has joined; alone, if none."""
    return _world


@contextmanager
def joined() -> Iterator[World]:
    """Join the processes that ``torchrun`` started with this one, if it did."""
    global _world
    rank, size, local_rank = (int(os.environ.get(name, -1)) for name in SET_BY_TORCHRUN)
    if min(rank, local_rank) < 0 or size <= 1:
        yield _world
        return
    # Before there is a group: defaults of its functions keep the group of the time of their import,
    # and so its threads, until Python ends. One that is not idle by then aborts the process.
    import torch.distributed.nn.functional  # noqa: F401
    from torch import cuda, distributed

    for sign in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sign, _stop_once)
    store, _, _ = next(distributed.rendezvous("env://"))
    backend = "cpu:gloo,cuda:nccl" if cuda.is_available() else "gloo"
    distributed.init_process_group(backend, store=store, rank=rank, world_size=size)
    _world = World(rank, size, local_rank, store)
    nowhere = open(os.devnull, "w")  # noqa: SIM115  (until the process ends)
    aloud = sys.stderr
    if not _world.is_first:
        sys.stdout = sys.stderr = nowhere
    try:
        yield _world
    except Exception:
        _ignore_signals()  # `torchrun` stops those that are about to end, too
        sys.stderr = aloud if _world.has_the_word() else nowhere
        raise
    finally:
        distributed.destroy_process_group()  # its threads end here, while Python still runs
        _world = ALONE  # and those of the store


def _stop_once(signum: int, frame: Any) -> NoReturn:
    """As Ctrl-C; the same again, from the terminal and from ``torchrun``, changes nothing."""
    _ignore_signals()
    raise KeyboardInterrupt


def _ignore_signals() -> None:
    for sign in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sign, signal.SIG_IGN)


@contextmanager
def _the_others() -> Iterator[None]:
    """What is done with the others ends where one of them has ended."""
    try:
        yield
    except RuntimeError as error:
        reason = str(error).splitlines()[0].rpartition(": ")[2]  # without places in their source
        raise UserError(
            f"another process of this run ended or does not answer ({reason}); what was "
            "checkpointed can be resumed"
        ) from None
