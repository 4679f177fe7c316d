"""Progress of long work: live bars on a terminal, a line now and then elsewhere."""

import os
import sys
from typing import Any, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from irrl.runs.shown import shown_number


class Bars:
    """A bar for each named piece of work, with its primary metric beside it.

    Off a terminal, each piece prints a line at every quarter of its way.
    """

    def __init__(self, metric: str = "") -> None:
        self._console = Console(stderr=True)
        self._live = self._console.is_terminal
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[metric]}", markup=False),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._live,
        )
        self._metric = metric
        self._ids: dict[str, TaskID] = {}
        self._quarters: dict[str, int] = {}

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bars.stop()

    def update(self, name: str, done: int, total: int, row: dict[str, Any] | None = None) -> None:
        """Tell that ``done`` of ``total`` steps of ``name`` are behind us."""
        metric = ""
        if row and self._metric in row:
            metric = f"{self._metric} {shown_number(row[self._metric])}"
        if self._live:
            if name not in self._ids:
                self._ids[name] = self._bars.add_task(name, total=total, metric="")
            self._bars.update(self._ids[name], completed=done, metric=metric)
            return
        quarter = 4 * done // max(total, 1)
        if quarter > self._quarters.get(name, 0):
            self._quarters[name] = quarter
            say(f"{name}: {100 * done // total} %  {metric}".rstrip())


def say(text: str) -> None:
    """A line on the standard error. Where nobody can read it, work goes on in silence."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
