import os
import resource
import signal
import subprocess
import sys

import pytest

from irrl import tasks
from irrl.runs.run import last_row
from irrl.sweeps import engine_local
from irrl.sweeps.engine_local import local_engine
from irrl.sweeps.sweep import Job, longest_first, run_all
from irrl.sweeps.watch import in_words
from irrl.tasks import make_config
from tests.helpers.runs import content, run_in, stopped_after


def jobs_in(folder, count):
    return [
        Job(f"seed {seed}", folder / str(seed), make_config("skills", "smoke", seed=seed))
        for seed in range(count)
    ]


def train_or_fail(folder, config):
    run = tasks.create_run(folder, config)
    if config.seed == 1:
        raise RuntimeError("no luck")
    run.log({"step": 0})
    return run.finish({"done": True})


def die(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)


def die_once(folder, config):
    """Train, but the first time only up to the third row."""
    run = tasks.open_run(folder) if folder.exists() else tasks.create_run(folder, config)
    if len(run.rows(complete=False)) < 3:
        run.listeners.append(lambda row: die() if row["step"] == 1000 else None)
    return tasks.train(run)


def never(*arguments):
    raise AssertionError("a finished run is not trained again")


def state_of(folder):
    return {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in sorted(folder.rglob("*"))}


def test_a_failure_is_reported_and_the_others_go_on(tmp_path):
    jobs, heard = jobs_in(tmp_path, 4), []
    failed = run_all(jobs, train_or_fail, local_engine(2), heard.append)
    assert [(f.job.name, f.error) for f in failed] == [("seed 1", "RuntimeError: no luck")]
    assert sorted(o.job.name for o in heard if o) == [job.name for job in jobs]
    assert [tasks.open_run(job.folder).is_finished for job in jobs] == [True, False, True, True]


def test_a_worker_that_is_killed_costs_no_more_than_the_steps_since_its_checkpoint(tmp_path):
    jobs = jobs_in(tmp_path / "sweep", 2)
    assert run_all(jobs, die_once, local_engine(2)) == []
    for job in jobs:
        alone = run_in(tmp_path / "alone" / job.folder.name, "skills", seed=job.config.seed)
        assert content(job.folder) == content(alone.folder)
        assert len(tasks.open_run(job.folder).provenance()["resumed"]) == 1


def test_a_run_over_which_all_workers_die_is_told_and_the_others_go_on(tmp_path, monkeypatch):
    monkeypatch.setattr(engine_local, "RETRIES", 1)
    (failed,) = run_all(jobs_in(tmp_path, 1), die, local_engine(1))
    assert "worker process died" in failed.error


def test_finished_runs_are_skipped_and_the_longest_comes_first(tmp_path):
    run_in(tmp_path / "0", "skills", seed=0)
    stopped_after(3, tmp_path / "1", "skills", seed=1)
    jobs = jobs_in(tmp_path, 3)
    assert [job.name for job in longest_first(jobs)] == ["seed 2", "seed 1", "seed 0"]
    assert run_all(jobs[:1], never, never) == []  # neither trained nor given to an engine
    failed = run_all(jobs, never, local_engine(1))
    assert [f.job.name for f in failed] == ["seed 2", "seed 1"]


def test_the_last_row_is_the_newest_whole_one(tmp_path):
    assert last_row(tmp_path) is None
    (tmp_path / "metrics.jsonl").write_text('{"step": 1}\n{"step": 2}\n{"st')
    assert last_row(tmp_path) == {"step": 2}


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.2, "1 s"), (100, "100 s"), (900, "15 min"), (9000, "2 h")]
)
def test_durations(seconds, words):
    assert in_words(seconds) == words


# --- through the command line ---

SMALL = ("sweep", "skills", "--preset", "smoke", "--iterations", "1000", "--out", "out")


def test_a_repeated_sweep_does_nothing(irrl, tmp_path):
    command = (*SMALL, "--reward", "linear,log", "--seed", "0..1")
    first = irrl(*command)
    assert first.returncode == 0, first.stderr
    assert "(4 of 4 runs)" in first.stderr and "n skills" in first.stdout
    runs = {p.parent for p in (tmp_path / "out").rglob("summary.json")}
    assert runs == {tmp_path / "out" / r / f"seed-{n}" for r in ("linear", "log") for n in (0, 1)}
    before = state_of(tmp_path / "out")
    again = irrl(*command)
    assert again.returncode == 0 and again.stdout == first.stdout and again.stderr == ""
    assert state_of(tmp_path / "out") == before

    (tmp_path / "out" / "log" / "seed-1" / "summary.json").unlink()
    listed = irrl(*command, "--dry-run").stdout
    assert "4 runs, 3 finished, 1 to do" in listed and "1,000 of 1,000" in listed
    assert irrl(*command).returncode == 0
    assert state_of(tmp_path / "out").keys() == before.keys()


def test_failures_are_told_at_the_end(irrl, tmp_path):
    result = irrl(*SMALL, "--learning-rate", "0.4,1e30", "--discriminator-learning-rate", "0.1",
                  "--seed", "0", "--workers", "1")  # fmt: skip
    assert result.returncode == 1
    (told,) = [line for line in result.stderr.splitlines() if line.startswith("irrl: ")]
    assert "learning-rate=1e+30 clipped-linear seed 0 failed: " in told and "diverged" in told
    assert "learning-rate=0.4/clipped-linear" in result.stdout
    assert "1e+30" not in result.stdout


def test_a_full_disk_ends_the_sweep_and_leaves_finished_runs_alone(tmp_path):
    """The limit on the size of a file stands for the disk; only the large tables exceed it."""
    command = [sys.executable, "-m", "irrl", *SMALL, "--codes", "24,4096", "--seed", "0"]
    result = subprocess.run(
        [*command, "--workers", "1"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20)),
    )
    assert result.returncode == 2
    (told,) = [line for line in result.stderr.splitlines() if "error" in line]
    assert "codes=4096/clipped-linear/seed-0" in told and "repeat the command" in told
    small, large = (tmp_path / "out" / f"codes={n}" / "clipped-linear/seed-0" for n in (24, 4096))
    assert tasks.open_run(small).is_finished and not tasks.open_run(large).is_finished
    before = state_of(small)
    assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode == 0
    assert state_of(small) == before and tasks.open_run(large).is_finished
