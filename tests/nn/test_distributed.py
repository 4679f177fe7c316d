"""One run of two processes: the numbers of one, a single writer, a single voice."""

import json
import shutil
import signal
import time
from pathlib import Path

import pytest

from irrl.cli.main import main
from irrl.errors import UserError
from irrl.nn import distributed
from irrl.nn.distributed import World
from irrl.tasks import check, make_config, open_run, train
from tests.helpers.runs import content, run_in
from tests.helpers.together import (
    assert_same_curves,
    by_torchrun,
    ends_of,
    smoke_flags,
    spoken,
    start_by_hand,
)

# The last batch has one episode: one of two processes has nothing to do with it.
SETTINGS = {"train_images": 257, "epochs": 3}


@pytest.fixture(scope="module")
def run_of_two(tmp_path_factory, mnist_cache):
    """Digits, trained by two processes. Do not change it: copy it first."""
    folder = tmp_path_factory.mktemp("two") / "run"
    told = by_torchrun("train", "digits", *smoke_flags(**SETTINGS), "--out", folder)
    assert told.count("100 %") == 1
    return folder


def test_two_processes_do_what_two_threads_do(run_of_two, tmp_path):
    """Byte for byte: the parts of a batch are the same, and a + b = b + a."""
    alone = run_in(tmp_path / "alone", "digits", **SETTINGS)
    assert content(run_of_two) == content(alone.folder)
    made = [run.provenance()["processes"] for run in (open_run(run_of_two), alone)]
    assert made == [2, 1]


def test_two_halves_of_a_batch_learn_as_the_whole(run_of_two, tmp_path):
    whole = run_in(tmp_path / "whole", "digits", **SETTINGS, parts=1)
    assert_same_curves(open_run(run_of_two).rows(), whole.rows())


def test_stopped_and_resumed_equals_never_stopped(run_of_two, tmp_path):
    """By two processes, and by one. Only the first of two has a folder to write to."""
    for name in ("two", "one"):
        folder = shutil.copytree(run_of_two, tmp_path / name)
        (folder / "summary.json").unlink()
        shutil.rmtree(folder / "checkpoints" / "000000000003")
        (folder / "checkpoints" / "last").write_text("000000000002\n")
    processes = start_by_hand(["resume", tmp_path / "two"], ["resume", tmp_path / "nowhere"])
    codes, told = ends_of(processes)
    assert codes == [0, 0], told
    assert not (tmp_path / "nowhere").exists() and not spoken(told[1])
    train(open_run(tmp_path / "one"))
    for name, processes in (("two", 2), ("one", 1)):
        assert content(tmp_path / name) == content(run_of_two)
        (resumed,) = json.loads((tmp_path / name / "provenance.json").read_text())["resumed"]
        assert (resumed["step"], resumed["processes"]) == (2, processes)


def test_stopped_by_a_signal_it_can_be_resumed(mnist_cache, tmp_path):
    arguments = ["train", "digits", *smoke_flags(epochs=500), "--out", tmp_path / "run"]
    processes = start_by_hand(arguments, arguments)
    while processes[0].poll() is None and not (tmp_path / "run/checkpoints/last").exists():
        time.sleep(0.05)
    for process in processes:  # as torchrun does, if it is stopped
        process.send_signal(signal.SIGTERM)
    codes, told = ends_of(processes)
    assert 0 not in codes and not spoken(told[1]), told
    assert spoken(told[0]) == [f"irrl: stopped; go on with `irrl resume {tmp_path / 'run'}`"]
    run = open_run(tmp_path / "run")
    assert not run.is_finished and run.restore() is not None


def test_an_error_of_one_ends_both_and_is_told_once(mnist_cache, tmp_path):
    arguments = ["train", "digits", *smoke_flags(), "--out", tmp_path / "run"]
    without_digits = {"IRRL_CACHE": str(tmp_path / "empty")}
    codes, told = ends_of(start_by_hand(arguments, arguments, without_digits))
    assert codes == [2, 2]
    (error,) = spoken(told[1])
    assert not spoken(told[0]) and error.startswith("irrl: error: ") and "MNIST" in error
    assert not (tmp_path / "run").exists()


THREADS_LEFT = """
import os, sys
from irrl.nn.distributed import joined

try:
    with joined() as world:
        import torch.distributed.nn.functional  # as PyTorch does by itself, with its compiler
        assert world.gather(world.rank) == [0, 1] and len(os.listdir("/proc/self/task")) > 1
        if sys.argv[1] == "error":
            raise KeyError
        if sys.argv[1] == "stop":
            raise KeyboardInterrupt
except (KeyError, KeyboardInterrupt):
    pass
del world
tasks = os.listdir("/proc/self/task")
names = [open(f"/proc/self/task/{task}/comm").read().strip() for task in tasks]
sys.exit(", ".join(names) if len(names) > 1 else 0)
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted in /proc")
@pytest.mark.parametrize("end", ["done", "error", "stop"])
def test_threads_of_the_group_end_before_python_does(end):
    """One that still holds a tensor when Python ends aborts the process, now and then."""
    codes, told = ends_of(start_by_hand([end], [end], program=("-c", THREADS_LEFT)))
    assert codes == [0, 0], told


# --- without processes ---


def test_shares_are_all_of_it_in_order():
    for count in range(8):
        items = list(range(count))
        shares = [World(rank, 3).share(items) for rank in range(3)]
        assert [item for share in shares for item in share] == items
        assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_alone_nothing_changes():
    alone = World()
    assert alone.map_all_ranks(map) is map
    assert alone.gather(7) == [7] and alone.once(lambda: 7) == 7
    assert alone.all_reduce_sum([1, 2]) == [1, 2] and alone.is_first


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (["skills"], "start it without torchrun"),
        (["digits", "smoke"], "3 processes need at least as many parts of a batch, this run has 2"),
        (["counting", "smoke"], "as many parts of a batch, this run has 2"),
    ],
)
def test_what_cannot_be_shared_is_refused(monkeypatch, settings, reason):
    monkeypatch.setattr(distributed, "_world", World(0, 3))
    with pytest.raises(UserError, match=reason):
        check(make_config(*settings))


def test_a_batch_has_an_episode_for_each():
    with pytest.raises(UserError, match="as many episodes of a batch, this run has 3"):
        World(0, 4).require_parts(parts=8, episodes=3)


def test_other_commands_are_for_one_process(monkeypatch, capsys):
    monkeypatch.setattr(distributed, "_world", World(0, 2))
    assert main(["rewards"]) == 2
    assert "irrl rewards is for one process" in capsys.readouterr().err
