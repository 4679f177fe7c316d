"""One display for many runs: which are under way, how many are done, and the time left.

It looks at nothing but run folders, so it does not matter who trains them, and where.
"""

import time
from collections.abc import Sequence
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn

from irrl.runs.progress import say
from irrl.runs.run import Row, last_row
from irrl.runs.shown import shown_number
from irrl.sweeps.sweep import Job, Outcome, is_finished, steps_done


class Watch:
    """Bars on a terminal; elsewhere a line when a run ends, and at every tenth of the whole."""

    def __init__(self, jobs: Sequence[Job], metric: str) -> None:
        console = Console(stderr=True)
        self._live = console.is_terminal
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[note]}", markup=False),
            console=console,
            disable=not self._live,
        )
        self._metric = metric
        self._count = len(jobs)
        self._open = {job: steps_done(job) for job in jobs if not is_finished(job)}
        self._total = sum(job.config.total_steps for job in self._open)
        self._left_before = self._left = self._steps_left()
        self._begun = time.monotonic()
        self._ids: dict[Job, TaskID] = {}
        self._whole = self._bars.add_task("", total=self._total, note="", visible=bool(self._open))
        self._tenths = self._tenth()

    def __enter__(self) -> Self:
        self._bars.start()
        self.look(None)
        return self

    def __exit__(self, *error: object) -> None:
        self._bars.stop()

    def look(self, outcome: Outcome | None) -> None:
        """Look at all folders; ``outcome`` if a run has just ended."""
        for job, step in self._open.items():
            row = last_row(job.folder)
            if row is not None and row["step"] != step:
                # a resumed run goes back to its checkpoint: that is work to do, not lost pace
                self._left_before += max(step - row["step"], 0)
                self._open[job] = row["step"]
                self._show(job, row)
        if outcome is not None:
            self._open.pop(outcome.job, None)
        self._left = self._steps_left()
        self._bars.update(
            self._whole,
            completed=self._total - self._left,
            description=f"{self._count - len(self._open)} of {self._count} runs",
            note=self._time_left(),
        )
        if outcome is not None:
            self._end(outcome)
        elif not self._live and self._tenth() > self._tenths:
            self._say(f"{10 * self._tenth()} %")
        self._tenths = self._tenth()

    def _show(self, job: Job, row: Row) -> None:
        if job not in self._ids:
            total = job.config.total_steps
            self._ids[job] = self._bars.add_task(job.name, total=total, note="")
        self._bars.update(self._ids[job], completed=row["step"], note=self._shown(row))

    def _end(self, outcome: Outcome) -> None:
        job = outcome.job
        if job in self._ids:
            self._bars.remove_task(self._ids.pop(job))
        row = last_row(job.folder) or {}
        told = "failed" if outcome.error else f"done  {self._shown(row)}".rstrip()
        self._say(f"{job.name}: {told}")

    def _shown(self, row: Row) -> str:
        return f"{self._metric} {shown_number(row[self._metric])}" if self._metric in row else ""

    def _say(self, text: str) -> None:
        if self._live:
            self._bars.console.print(text, highlight=False, markup=False)
            return
        done = f"{self._count - len(self._open)} of {self._count} runs"
        note = ", ".join(filter(None, [done, self._time_left()]))
        say(f"{text}  ({note})")

    def _steps_left(self) -> int:
        return sum(job.config.total_steps - step for job, step in self._open.items())

    def _tenth(self) -> int:
        return 10 * (self._total - self._left) // max(self._total, 1)

    def _time_left(self) -> str:
        """By the pace so far; nothing before there is one."""
        gained = self._left_before - self._left
        if gained <= 0 or self._left == 0:
            return ""
        return f"about {in_words((time.monotonic() - self._begun) * self._left / gained)} left"


def in_words(seconds: float) -> str:
    """A duration, as precise as an estimate is."""
    for size, unit in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 1):.0f} s"
