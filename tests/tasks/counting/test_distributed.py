"""Counting by two processes: the numbers of one."""

from irrl.tasks import open_run
from tests.helpers.runs import content, run_in
from tests.helpers.together import assert_same_curves, ends_of, smoke_flags, spoken, start_by_hand


def test_two_processes_do_what_one_does(scenes_folder, tmp_path):
    """As two threads, byte for byte; as with batches in one piece, within rounding.

    The last batch has one episode: one of two processes has nothing to do with it.
    """
    settings = {"scenes": str(scenes_folder), "episodes": 129, "dropout": 0.0}
    flags = ["train", "counting", *smoke_flags(**settings), "--out"]
    processes = start_by_hand([*flags, tmp_path / "two"], [*flags, tmp_path / "nowhere"])
    codes, told = ends_of(processes)
    assert codes == [0, 0], told
    assert not (tmp_path / "nowhere").exists() and not spoken(told[1])
    threads = run_in(tmp_path / "threads", "counting", **settings)
    assert content(tmp_path / "two") == content(threads.folder)
    whole = run_in(tmp_path / "whole", "counting", **settings, parts=1)
    assert_same_curves(open_run(tmp_path / "two").rows(), whole.rows())
