"""Tables over run folders: for each reward, the final figures of all its seeds."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from irrl.checkpoint import write_atomic
from irrl.errors import UserError
from irrl.plots import ORACLE
from irrl.run import Run, provenance
from irrl.stats import Estimate, bootstrap_estimate, mean_estimate


def require_alike(runs: Sequence[Run], names: Sequence[str]) -> None:
    """Raise unless runs agree in some settings, without which they do not compare."""
    for name in names:
        values = {run.settings[name] for run in runs}
        if len(values) > 1:
            shown = ", ".join(sorted(map(str, values)))
            raise UserError(f"runs with different {name.replace('_', ' ')} do not compare: {shown}")


def group_by_reward(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Runs of one task by reward, in order of seeds; those of a reward differ in nothing else.

    Runs that an oracle paid are groups of their own.
    """
    tasks = {run.task for run in runs}
    if len(tasks) != 1:
        raise UserError(f"runs of different tasks cannot be compared: {', '.join(sorted(tasks))}")
    groups: dict[str, list[Run]] = {}
    for run in runs:
        oracle = ORACLE if run.settings.get("oracle") else ""
        groups.setdefault(run.settings["reward"] + oracle, []).append(run)
    for name, group in groups.items():
        group.sort(key=lambda run: run.settings["seed"])
        if len({run.settings["seed"] for run in group}) < len(group):
            raise UserError(f"two runs with reward {name} have the same seed")
        for run in group:
            for key, value in run.settings.items():
                if key != "seed" and value != group[0].settings[key]:
                    raise UserError(
                        f"{group[0].folder} and {run.folder} differ in {key}: seeds of one reward "
                        "must agree in all other settings"
                    )
    return groups


def learning_curves(runs: Sequence[Run], metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Steps, and a metric of shape (runs, steps), up to where all of the runs have come."""
    tables = [{row["step"]: row[metric] for row in run.rows()} for run in runs]
    steps = sorted(set.intersection(*(set(table) for table in tables)))
    if not steps:
        raise UserError(f"{runs[0].folder} and its like have no metrics yet to draw")
    return np.array(steps), np.array([[table[step] for step in steps] for table in tables])


def comparison(runs: Sequence[Run], metrics: Sequence[str]) -> dict[str, Any]:
    """Mean and interquartile mean of each metric over the seeds of each reward."""
    groups = group_by_reward(runs)
    table: dict[str, Any] = {}
    for name, group in groups.items():
        summaries = [run.summary() for run in group]
        table[name] = {
            "seeds": [run.settings["seed"] for run in group],
            **{metric: _figures([s[metric] for s in summaries]) for metric in metrics},
        }
    made = [run.provenance() for run in runs]
    return {
        "task": runs[0].task,
        "command": provenance()["command"],
        "commits": sorted({str(m.get("commit")) for m in made}),
        "dirty": any(m.get("dirty") for m in made),
        "machine": {k: v for k, v in made[0].get("machine", {}).items() if k != "system"},
        "rewards": table,
    }


def _figures(values: list[float]) -> dict[str, Any]:
    return {
        "mean": mean_estimate(values).to_json(),
        "interquartile_mean": bootstrap_estimate(values).to_json(),
        "values": values,
    }


def table_rows(result: dict[str, Any], metrics: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Header and cells of a comparison: mean and 95 % interval of each metric."""
    header = ["reward", "seeds", *(metric.replace("_", " ") for metric in metrics)]
    rows = []
    for name, figures in result["rewards"].items():
        means = {metric: Estimate(**figures[metric]["mean"]) for metric in metrics}
        # how long a run took is no estimate of anything
        shown = [f"{m.value:.1f}" if metric == "seconds" else str(m) for metric, m in means.items()]
        rows.append([name, str(len(figures["seeds"])), *shown])
    return header, rows


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def save_comparison(folder: Path, result: dict[str, Any], metrics: Sequence[str]) -> None:
    """Write ``comparison.json`` and ``comparison.md``."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / "comparison.json", (json.dumps(result, indent=1) + "\n").encode())
    note = f"Mean over seeds and 95 % interval.\n\n    {result['command']}\n"
    changes = " (with changes)" if result["dirty"] else ""
    commit = f"\ncommit {', '.join(result['commits'])}{changes}\n\n"
    table = markdown_table(*table_rows(result, metrics))
    write_atomic(folder / "comparison.md", (note + commit + table).encode())
