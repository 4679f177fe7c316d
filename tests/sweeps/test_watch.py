"""The display of a sweep off a terminal: what it says, from run folders alone."""

import json

import pytest

from irrl.runs.run import SUMMARY, Run
from irrl.sweeps import watch
from irrl.sweeps.sweep import Job, Outcome
from irrl.sweeps.watch import Watch, in_words
from irrl.tasks import make_config


class Clock:
    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(watch, "time", clock)
    return clock


def jobs_in(folder, count=2):
    """Runs of 1,000 steps of which none has begun."""
    config = make_config("skills", "smoke", iterations=1000, evaluate_every=10)
    return [Job(f"run {n}", folder / f"run-{n}", config) for n in range(count)]


def log(job, *steps):
    """As if a run had logged these rows, and no others."""
    if not job.folder.exists():
        Run.create(job.folder, job.config)
    rows = [json.dumps({"step": step, "n_skills": 2.5}) for step in steps]
    (job.folder / "metrics.jsonl").write_text("".join(f"{row}\n" for row in rows))


def test_lines_tell_of_tenths_and_ends_and_the_time_left(tmp_path, clock, capsys):
    first, second = jobs = jobs_in(tmp_path)
    with Watch(jobs, "n_skills") as shown:
        log(first, 0, 500)
        clock.now = 60.0
        shown.look(None)
        log(first, 0, 500, 1000)
        (first.folder / SUMMARY).write_text("{}")
        clock.now = 120.0
        shown.look(Outcome(first))
        shown.look(Outcome(second, "no luck"))
    assert capsys.readouterr().err.splitlines() == [
        "20 %  (0 of 2 runs, about 3 min left)",
        "run 0: done  n_skills 2.5  (1 of 2 runs, about 2 min left)",
        "run 1: failed  (2 of 2 runs)",
    ]


def test_going_back_to_a_checkpoint_is_not_lost_pace(tmp_path, clock, capsys):
    (job,) = jobs = jobs_in(tmp_path, 1)
    log(job, 0, 400, 790)
    with Watch(jobs, "n_skills") as shown:
        log(job, 0, 400)
        clock.now = 30.0
        shown.look(None)
        log(job, 0, 400, 800)
        clock.now = 60.0
        shown.look(None)
    assert capsys.readouterr().err.splitlines() == ["80 %  (0 of 1 runs, about 30 s left)"]


def test_finished_runs_are_not_waited_for(tmp_path, clock, capsys):
    jobs = jobs_in(tmp_path)
    for job in jobs:
        log(job, 0, 1000)
        (job.folder / SUMMARY).write_text("{}")
    with Watch(jobs, "n_skills"):
        pass
    assert capsys.readouterr().err == ""


def test_durations_are_as_precise_as_an_estimate():
    shown = [in_words(s) for s in (0.2, 119, 120, 7000, 7300, 200_000)]
    assert shown == ["1 s", "119 s", "2 min", "117 min", "2 h", "2 days"]
