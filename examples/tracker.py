"""Metrics of a run in a tracker of one's own: here a table of SQLite, which needs no server.

    python examples/tracker.py                                          # from Python
    irrl train skills --listener tracker:sqlite --out runs/tracked      # beside this file

A tracker is a function of the run that returns a function of each row of its metrics: the step, and
numbers by name. Of a run that was resumed, rows may be told again: keep one number for each step.
"""

import sqlite3
import sys
from pathlib import Path

from irrl.runs.listeners import listen
from irrl.tasks import begin, make_config, train


def sqlite(run):
    """Keep each number in ``metrics.db`` beside the run folder, under the name of the run."""
    database = sqlite3.connect(run.folder.parent / "metrics.db")
    database.execute(
        "CREATE TABLE IF NOT EXISTS metrics "
        "(run TEXT, step INTEGER, name TEXT, value REAL, PRIMARY KEY (run, step, name))"
    )

    def keep(row):
        numbers = [(run.folder.name, row["step"], name, value) for name, value in row.items()]
        with database:
            database.executemany("INSERT OR REPLACE INTO metrics VALUES (?, ?, ?, ?)", numbers)

    return keep


def main(iterations):
    for reward in ("clipped-linear", "clipped-log"):
        settings = {"reward": reward, "iterations": iterations}
        run, prepared = begin(Path(reward), make_config("skills", "smoke", **settings))
        listen(run, sqlite)
        train(run, prepared)
    best = "SELECT run, max(value) FROM metrics WHERE name = 'n_skills' GROUP BY run"
    for name, value in sqlite3.connect("metrics.db").execute(best):
        print(f"{name}: {value:.1f} skills at best")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
