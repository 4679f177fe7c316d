"""The Ray engine on this machine, through the command line: kills, ports, Ctrl-C."""

import os
import random
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from irrl.tasks import open_run
from tests.helpers.command import irrl_command
from tests.helpers.runs import content

SAME_CLUSTER = {
    **os.environ,
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # else Ray looks for a network card
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
}
SEEDS, ROWS = range(4), 100
RUNS = [f"{reward}/seed-{seed}" for reward in ("clipped-linear", "clipped-log") for seed in SEEDS]
SETTINGS = [
    *("--preset", "small-map", "--reward", "clipped-linear,clipped-log", "--seed", "0..3"),
    *("--iterations", "100000", "--evaluate-every", "1000", "--checkpoint-every", "10000"),
]


@pytest.fixture
def cluster():
    """The address of a cluster that was there before."""
    code = (
        "from irrl.runs.ray_cluster import connect, import_ray; ray = import_ray(None); "
        "connect(ray, None, 2); print(ray.get_runtime_context().gcs_address, flush=True); input()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=SAME_CLUSTER,
    )
    yield process.stdout.readline().strip()
    process.communicate("end\n", timeout=60)


def processes():
    """Process id -> (its parent's, its command line)."""
    listing = subprocess.run(
        ["ps", "-axo", "pid=,ppid=,args="], capture_output=True, text=True
    ).stdout
    rows = [line.split(None, 2) for line in listing.splitlines()]
    return {int(pid): (int(parent), args[0] if args else "") for pid, parent, *args in rows}


def descendants(ancestor):
    """Command lines of the processes that came from one, by id."""
    table = processes()

    def comes_from(pid):
        while pid in table and pid != ancestor:
            pid = table[pid][0]
        return pid == ancestor

    return {pid: args for pid, (_, args) in table.items() if pid != ancestor and comes_from(pid)}


def rows_of(folder):
    path = folder / "metrics.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def kill_worker_of(name):
    """SIGKILL to the worker that is at a run; whether there was one, and the run was cut short."""
    title = "ray::" + name.replace("/seed-", " seed ")
    pids = [pid for pid, args in descendants(os.getpid()).items() if args == title]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        while Path(f"/proc/{pid}/exe").exists():
            time.sleep(0.001)
    return bool(pids)


def test_workers_killed_at_random_moments_change_nothing(cluster, tmp_path):
    seed = random.randrange(1_000_000)
    print(f"random moments: seed {seed}")
    pick = random.Random(seed)
    moments = {name: pick.randrange(2, ROWS * 2 // 3) for name in pick.sample(RUNS, len(RUNS))}
    command = ("sweep", "skills", *SETTINGS, "--out", tmp_path / "ray")
    sweep = subprocess.Popen(
        [sys.executable, "-m", "irrl", *map(str, command), "--engine", "ray", "--address", cluster],
        env=SAME_CLUSTER,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    kills = 0
    while kills < 6 and sweep.poll() is None:
        for name, moment in list(moments.items()):
            folder = tmp_path / "ray" / name
            if kills < 6 and rows_of(folder) >= moment:
                del moments[name]
                killed = kill_worker_of(name)
                kills += killed and not (folder / "summary.json").exists()
        time.sleep(0.005)
    shown, said = sweep.communicate()
    assert sweep.returncode == 0, said
    assert kills >= 5
    assert "(8 of 8 runs)" in said and "clipped-log" in shown and "died" not in shown + said

    undisturbed = irrl_command("sweep", "skills", *SETTINGS, "--out", tmp_path / "local")
    assert undisturbed.returncode == 0, undisturbed.stderr
    resumed = 0
    for name in RUNS:
        assert content(tmp_path / "ray" / name) == content(tmp_path / "local" / name), name
        resumed += len(open_run(tmp_path / "ray" / name).provenance()["resumed"])
    assert resumed >= 5


def open_ports(pids):
    """Addresses on which processes listen, as the kernel writes them."""
    sockets = set()
    for pid in pids:
        for entry in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                sockets.add(os.readlink(entry))
            except OSError:
                continue
    addresses = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                addresses.add(fields[1].split(":")[0])
    return addresses


LOOPBACKS = {
    "0100007F",
    "0000000000000000FFFF00000100007F",
    "00000000000000000000000001000000",
}


def test_a_local_ray_keeps_to_itself_and_can_be_stopped(tmp_path):
    command = ["sweep", "skills", "--preset", "smoke", "--iterations", "5000000", "--seed", "0..1",
               "--checkpoint-every", "1000", "--out", "out"]  # fmt: skip
    sweep = subprocess.Popen(
        [sys.executable, "-m", "irrl", *command, "--engine", "ray"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    folders = [tmp_path / "out" / "clipped-linear" / f"seed-{n}" for n in (0, 1)]
    while not all((folder / "checkpoints" / "last").exists() for folder in folders):
        assert sweep.poll() is None, sweep.stderr.read()
        time.sleep(0.05)
    started = descendants(sweep.pid)
    assert "ray::clipped-linear seed 1" in started.values()
    if sys.platform == "linux":
        found = open_ports([sweep.pid, *started])
        assert found and found <= LOOPBACKS
    sweep.send_signal(signal.SIGTERM)
    _, said = sweep.communicate(timeout=120)
    assert sweep.returncode == 130 and "can be resumed" in said
    sizes = [rows_of(folder) for folder in folders]
    workers = [pid for pid, args in started.items() if args.startswith("ray::clipped")]
    assert not set(workers) & set(processes())
    assert sizes == [rows_of(folder) for folder in folders]
    assert all(open_run(folder).last_checkpoint().step >= 0 for folder in folders)
