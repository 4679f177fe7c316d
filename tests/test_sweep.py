import os
import signal

from irrl.run import Run
from irrl.sweep import Job, run_all
from irrl.tasks import make_config


def jobs_in(folder, count):
    return [
        Job(f"seed {seed}", folder / str(seed), make_config("skills", "smoke", seed=seed))
        for seed in range(count)
    ]


def train_or_fail(run):
    if run.settings["seed"] == 1:
        raise RuntimeError("no luck")
    run.log({"step": 0})
    return run.finish({"done": True})


def die(run):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_failure_is_reported_and_the_others_go_on(tmp_path):
    heard = []
    failures = run_all(
        jobs_in(tmp_path, 4), train_or_fail, 2, lambda name, row: heard.append((name, row))
    )
    assert [(f.name, f.error) for f in failures] == [("seed 1", "RuntimeError: no luck")]
    assert sorted(heard) == [(f"seed {n}", {"step": 0}) for n in (0, 2, 3)]
    assert [Run.open(tmp_path / str(n)).is_finished for n in range(4)] == [True, False, True, True]


def test_a_worker_that_dies_is_told(tmp_path):
    (failure,) = run_all(jobs_in(tmp_path, 1), die, 1)
    assert "worker process died" in failure.error
