"""One run, two processes: with ``torchrun``, and without."""

import os
import socket
import subprocess
import sys

import pytest

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
LOOPBACK = {
    "GLOO_SOCKET_IFNAME": "lo0" if sys.platform == "darwin" else "lo",
    "OMP_NUM_THREADS": "1",
}


def smoke_flags(**settings):
    words = ["--preset", "smoke"]
    for name, value in settings.items():
        words += [f"--{name.replace('_', '-')}", str(value)]
    return words


def by_torchrun(*arguments):
    """Start `irrl` in two processes, as a user would; what it told on the standard error."""
    command = [*TORCHRUN, "-m", "irrl", *map(str, arguments)]
    environment = {**os.environ, **LOOPBACK}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    return result.stderr


def start_by_hand(first, second, environment_of_second=(), program=("-m", "irrl")):
    """Two processes that know each other, without `torchrun`; arguments for each."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return [
        subprocess.Popen(
            [sys.executable, *program, *map(str, arguments)],
            env={
                **os.environ, **LOOPBACK, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
                "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", **dict(more),
            },
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank, arguments, more in ((0, first, ()), (1, second, environment_of_second))
    ]  # fmt: skip


def ends_of(processes):
    """Exit codes of processes, and what each told on the standard error."""
    told = [process.communicate(timeout=300)[1] for process in processes]
    return [process.returncode for process in processes], told


def spoken(told):
    """What `irrl` itself said; libraries may warn of what they find."""
    return [line for line in told.splitlines() if line.startswith(("irrl", "Traceback"))]


def assert_same_curves(rows, others):
    """Within rounding: in so few updates, sums in another order make about 1e-8, relatively 1e-6.

    Longer runs are chaotic: an action that tips over changes all that follows.
    """
    assert [list(row) for row in rows] == [list(row) for row in others]
    for row, other in zip(rows, others, strict=True):
        assert row == pytest.approx(other, rel=1e-4, abs=1e-6), row["step"]
