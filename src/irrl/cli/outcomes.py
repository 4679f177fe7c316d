"""What came of many runs: the tables of `irrl sweep` and `irrl compare`, as text or as JSON."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irrl.cli.tables import print_json, print_table

if TYPE_CHECKING:
    from irrl.runs.run import Run
    from irrl.sweeps.sweep import Job


def list_runs(jobs: Sequence["Job"], as_json: bool) -> int:
    """Which runs a sweep has, and how far each is."""
    from irrl.sweeps.sweep import is_finished, steps_done
    from irrl.tasks import check_folder

    rows: list[dict[str, Any]] = []
    for job in jobs:
        check_folder(job.folder, job.config)
        total = job.config.total_steps
        done = total if is_finished(job) else steps_done(job)
        rows.append({"run": str(job.folder), "finished": is_finished(job), "done": done,
                     "of": total})  # fmt: skip
    if as_json:
        print_json(rows)
        return 0
    print_table(["run", "state"], [[row["run"], _state(row)] for row in rows])
    finished = sum(row["finished"] for row in rows)
    print(f"{len(rows)} runs, {finished} finished, {len(rows) - finished} to do")
    return 0


def _state(row: dict[str, Any]) -> str:
    if row["finished"]:
        return "finished"
    return f"{row['done']:,} of {row['of']:,}" if row["done"] else "new"


def print_metrics(jobs: Sequence["Job"], out: Path, as_json: bool) -> None:
    """The primary metric over the seeds of each reward and combination of settings."""
    from irrl.analysis.ranges import range_in
    from irrl.analysis.stats import mean_estimate
    from irrl.analysis.tables import column_title
    from irrl.sweeps.sweep import is_finished
    from irrl.tasks import checked_run, task_of

    task = task_of(jobs[0].config)
    primary = task.primary.name
    groups: dict[Path, list[Run]] = {}
    for job in filter(is_finished, jobs):
        groups.setdefault(job.folder.parent, []).append(checked_run(job.folder))
    rows, records = [], []
    for folder, runs in groups.items():
        bounds = range_in(task, runs[0].config, primary)
        estimate = mean_estimate([run.final(primary) for run in runs]).within(*bounds)
        hours = sum(run.final("seconds") for run in runs) / 3600.0
        name = str(folder.relative_to(out))
        rows.append([name, str(len(runs)), str(estimate), f"{hours:.2f}"])
        records.append({"runs": name, "seeds": len(runs), primary: estimate.to_json(),
                        "hours": hours})  # fmt: skip
    if as_json:
        print_json({"task": task.name, "out": str(out), "groups": records})
        return
    header = ["runs", "seeds", column_title(primary), "hours in all"]
    print_table(header, rows, "mean over seeds [95 % interval], or (up to three seeds)")
    for folder in dict.fromkeys(folder.parent for folder in groups):
        print(f"figure: irrl plot {folder} -o {folder / 'comparison.png'}")


def print_comparison(folders: list[Path], out: Path, as_json: bool) -> None:
    """Table and figures of a comparison. They follow from its runs, and are made anew each time."""
    from irrl.analysis.compare import comparison
    from irrl.analysis.comparison_plots import save_comparison_figures
    from irrl.analysis.tables import note_below, save_comparison, table_rows
    from irrl.tasks import one_task, open_run

    runs = [open_run(folder) for folder in folders]
    task, result = one_task(runs), comparison(runs)
    save_comparison(out, result, task)
    pictures = save_comparison_figures(runs, out / "comparison.png")
    if as_json:
        print_json({**result, "figures": list(map(str, pictures))})
        return
    header, rows = table_rows(result, task)
    print_table(header, rows, note_below(header))
    for picture in pictures:
        print(f"figure: {picture}")
    print(f"table:  {out / 'comparison.md'}")
