"""Tables over run folders: for each reward, the final figures of all its seeds."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from irrl.runs.checkpoint import write_atomic
from irrl.errors import UserError
from irrl.analysis.plots import ORACLE
from irrl.runs.run import Run, provenance
from irrl.analysis.stats import (
    Estimate,
    Reached,
    area_under_curve,
    bootstrap_estimate,
    mean_estimate,
    permutation_test,
    probability_of_improvement,
    reached_estimate,
    steps_to,
)

Curves = tuple[np.ndarray, np.ndarray]
"""Steps, and a metric of shape (seeds, steps)."""

BOOKKEEPING = ("seed", "evaluate_every", "checkpoint_every", "device")
"""Settings in which seeds of one reward may differ: they do not change what is learned."""

THRESHOLD = 80.0
"""Per cent of right answers, or skills: how fast a reward gets there is part of its table."""

YARDSTICK = " (yardstick)"
"""What the label of a walker ends with that does not learn where to go."""

REFERENCE = "clipped-linear"
"""The paper's choice, which others are tested against."""


def require_alike(runs: Sequence[Run], names: Sequence[str]) -> None:
    """Raise unless runs agree in some settings, without which they do not compare."""
    for name in names:
        values = {run.settings[name] for run in runs}
        if len(values) > 1:
            shown = ", ".join(sorted(map(str, values)))
            raise UserError(f"runs with different {name.replace('_', ' ')} do not compare: {shown}")


def is_yardstick(run: Run) -> bool:
    """Whether a run learned to answer, but not where to go."""
    return run.settings.get("walker", "learned") != "learned"


def label_of(run: Run) -> str:
    """What a run is called in tables: its reward, by an oracle, or a yardstick that needs none."""
    if is_yardstick(run):
        return run.settings["walker"] + YARDSTICK
    return run.settings["reward"] + (ORACLE if run.settings.get("oracle") else "")


def group_by_reward(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Runs of one task by `label_of`, in order of seeds; those of a group differ in nothing else.

    Yardsticks come last.
    """
    tasks = {run.task for run in runs}
    if len(tasks) != 1:
        raise UserError(f"runs of different tasks cannot be compared: {', '.join(sorted(tasks))}")
    groups: dict[str, list[Run]] = {}
    for run in sorted(runs, key=is_yardstick):
        groups.setdefault(label_of(run), []).append(run)
    for name, group in groups.items():
        group.sort(key=lambda run: run.settings["seed"])
        if len({run.settings["seed"] for run in group}) < len(group):
            raise UserError(f"two runs with reward {name} have the same seed")
        for run in group:
            for key, value in run.settings.items():
                if key not in BOOKKEEPING and value != group[0].settings[key]:
                    raise UserError(
                        f"{group[0].folder} and {run.folder} differ in {key}: seeds of one reward "
                        "must agree in all other settings"
                    )
    return groups


def require_same_version(runs: Sequence[Run]) -> None:
    versions = {str(run.provenance().get("irrl")) for run in runs}
    if len(versions) > 1:
        raise UserError(
            f"runs of different versions of irrl do not compare: {', '.join(sorted(versions))}; "
            "train the older ones anew, or draw them apart"
        )


def learning_curves(runs: Sequence[Run], metric: str) -> Curves:
    """Steps, and a metric of shape (runs, steps), up to where all of the runs have come."""
    return all_curves(runs, [metric])[metric]


def all_curves(runs: Sequence[Run], metrics: Sequence[str]) -> dict[str, Curves]:
    """The same for several metrics."""
    tables = [{row["step"]: row for row in run.rows()} for run in runs]
    steps = sorted(set.intersection(*(set(table) for table in tables)))
    if not steps:
        raise UserError(f"{runs[0].folder} and its like have no metrics yet to draw")
    for metric in metrics:
        if any(metric not in table[step] for table in tables for step in steps):
            raise UserError(f"{runs[0].folder} and its like lack {metric} in some of their metrics")
    return {
        metric: (np.array(steps), np.array([[t[step][metric] for step in steps] for t in tables]))
        for metric in metrics
    }


# --- how rewards stand beside each other ---


class Standing(NamedTuple):
    """How a reward stands beside the one that others are tested against."""

    reference: str
    above: Estimate  # probability that a seed of the reference is above one of this reward
    p: float  # of the permutation test for "the reference above this reward"

    def __str__(self) -> str:
        ends = ""
        if self.above.low is not None and self.above.high is not None:
            ends = f" [{self.above.low:.2f}, {self.above.high:.2f}]"
        return f"{self.above.value:.2f}{ends}, p = {self.p:.2g}"


def reference_of(finals: Mapping[str, Sequence[float]]) -> str | None:
    """What others are tested against: the paper's choice, else the best; None without others."""
    if len(finals) < 2:
        return None
    return REFERENCE if REFERENCE in finals else max(finals, key=lambda n: np.mean(finals[n]))


def standings(finals: Mapping[str, Sequence[float]]) -> dict[str, Standing]:
    """Final figures of merit by reward and seed -> how each stands beside the reference."""
    reference = reference_of(finals)
    if reference is None:
        return {}
    best = finals[reference]
    return {
        name: Standing(
            reference, probability_of_improvement(best, values), permutation_test(best, values)
        )
        for name, values in finals.items()
        if name != reference
    }


def area(curves: Curves) -> Estimate:
    """Mean height of the learning curves of some seeds."""
    return mean_estimate(area_under_curve(*curves))


def steps_to_threshold(curves: Curves) -> Reached:
    steps, values = curves
    return reached_estimate([steps_to(THRESHOLD, steps, row) for row in values])


# --- tables ---


def comparison(runs: Sequence[Run], metrics: Sequence[str]) -> dict[str, Any]:
    """Mean and interquartile mean of each metric over the seeds of each reward.

    Of the first, the figure of merit, also the area under its curve, the steps to a threshold, and
    how each reward stands beside the reference.
    """
    groups = group_by_reward(runs)
    summaries = {name: [run.summary() for run in group] for name, group in groups.items()}
    beside = standings({name: [s[metrics[0]] for s in found] for name, found in summaries.items()})
    table: dict[str, Any] = {}
    for name, group in groups.items():
        table[name] = {
            "seeds": [run.settings["seed"] for run in group],
            **{metric: _figures([s[metric] for s in summaries[name]]) for metric in metrics},
            **_figures_of_curves(learning_curves(group, metrics[0])),
            "standing": _standing_json(beside.get(name)),
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


def _figures_of_curves(curves: Curves) -> dict[str, Any]:
    return {"area": area(curves).to_json(), "steps_to": steps_to_threshold(curves).to_json()}


def _standing_json(standing: Standing | None) -> dict[str, Any] | None:
    return standing and {**standing._asdict(), "above": standing.above.to_json()}


def standing_from_json(record: Mapping[str, Any]) -> Standing:
    return Standing(record["reference"], Estimate(**record["above"]), record["p"])


def table_rows(result: dict[str, Any], metrics: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Header and cells of a comparison: mean and 95 % interval of each metric."""
    header = ["reward", "seeds", *(metric.replace("_", " ") for metric in metrics)]
    header.append(f"steps to {THRESHOLD:g}")
    beside = [f["standing"] for f in result["rewards"].values() if f["standing"]]
    if beside:
        header.append(f"P({beside[0]['reference']} above it)")
    rows = []
    for name, figures in result["rewards"].items():
        means = {metric: Estimate(**figures[metric]["mean"]) for metric in metrics}
        # how long a run took is no estimate of anything
        shown = [f"{m.value:.1f}" if metric == "seconds" else str(m) for metric, m in means.items()]
        shown.append(str(Reached(**figures["steps_to"])))
        if beside:
            own = figures["standing"]
            shown.append(str(standing_from_json(own)) if own else "-")
        rows.append([name, str(len(figures["seeds"])), *shown])
    return header, rows


TABLE_NOTE = (
    f"Mean over seeds [95 % t interval]. Steps to {THRESHOLD:g}: median [interval] (how many seeds "
    "get there). P: how often a seed of the one is above a seed of the other [bootstrap interval]; "
    "p: one-sided permutation test."
)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def save_comparison(folder: Path, result: dict[str, Any], metrics: Sequence[str]) -> None:
    """Write ``comparison.json`` and ``comparison.md``."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / "comparison.json", (json.dumps(result, indent=1) + "\n").encode())
    note = f"{TABLE_NOTE}\n\n    {result['command']}\n"
    changes = " (with changes)" if result["dirty"] else ""
    commit = f"\ncommit {', '.join(result['commits'])}{changes}\n\n"
    table = markdown_table(*table_rows(result, metrics))
    write_atomic(folder / "comparison.md", (note + commit + table).encode())
