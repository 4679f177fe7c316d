"""Tables over run folders: for each reward, the final metrics of all its seeds."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from irrl.analysis.authors import Beside, beside_authors, order_verdict, read_at, verdict_on
from irrl.analysis.ranges import Bounds, range_in
from irrl.analysis.stats import (
    FEW,
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
from irrl.errors import UserError
from irrl.runs.provenance import provenance
from irrl.runs.run import Run
from irrl.tasks import find_task, one_task
from irrl.tasks.contract import Metric, Task

Curves = tuple[np.ndarray, np.ndarray]
"""Steps, and a metric of shape (seeds, steps)."""

BOOKKEEPING = ("seed", "evaluate_every", "checkpoint_every", "device")
"""Settings in which seeds of one reward may differ: they do not change what is learned."""

BASELINE = " (scripted baseline)"
"""What the label of a run ends with whose behaviour is not learned."""

ORACLE = " (oracle)"
"""What the label of a run ends with that is rewarded by an oracle."""

REFERENCE = "clipped-linear"
"""The paper's choice, which others are tested against."""


# --- which runs compare ---


def is_baseline(run: Run) -> bool:
    """Whether a run learned to answer, but not how to behave."""
    return find_task(run.task).baseline_of(run.settings) is not None


def label_of(run: Run) -> str:
    """What a run is called in tables: its reward, by an oracle, or the baseline that it is."""
    baseline = find_task(run.task).baseline_of(run.settings)
    if baseline is not None:
        return baseline + BASELINE
    return run.settings["reward"] + (ORACLE if run.settings.get("oracle") else "")


def is_reward(label: str) -> bool:
    return not label.endswith(BASELINE)


def require_comparable(runs: Sequence[Run], task: Task) -> None:
    """Raise unless runs agree in the settings without which they do not compare."""
    for name in task.comparable:
        values = {run.settings[name] for run in runs}
        if len(values) > 1:
            shown = ", ".join(sorted(map(_shown, values)))
            raise UserError(f"runs with different {name.replace('_', ' ')} do not compare: {shown}")


def _shown(value: Any) -> str:
    text = str(value)
    return "one of its own" if "\n" in text or len(text) > 40 else text


def group_by_reward(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Runs of one task by `label_of`, in order of seeds; those of a group differ in nothing else.

    Scripted baselines come last.
    """
    one_task(list(runs))
    groups: dict[str, list[Run]] = {}
    for run in sorted(runs, key=is_baseline):
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
    better: Estimate  # probability that a seed of the reference is better than one of this reward
    p: float  # of the permutation test for "the reference is better than this reward"

    def __str__(self) -> str:
        ends, better = "", self.better
        if better.low is not None and better.high is not None and better.seeds > FEW:
            ends = f" [{better.low:.2f}, {better.high:.2f}]"
        return f"{self.better.value:.2f}{ends}, p = {self.p:.2g}"

    def to_json(self) -> dict[str, Any]:
        return {**self._asdict(), "better": self.better.to_json()}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "Standing":
        return cls(record["reference"], Estimate(**record["better"]), record["p"])


def standings(
    finals: Mapping[str, Sequence[float]], higher_is_better: bool = True
) -> dict[str, Standing]:
    """Final primary metrics by reward and seed -> how each stands beside the reference.

    That is the paper's choice or, where it is not among them, the best.
    """
    if len(finals) < 2:
        return {}
    sign = 1.0 if higher_is_better else -1.0
    goodness = {name: sign * np.asarray(values, float) for name, values in finals.items()}
    best = max(goodness, key=lambda name: goodness[name].mean())
    reference = REFERENCE if REFERENCE in finals else best
    return {
        name: Standing(
            reference,
            probability_of_improvement(goodness[reference], values),
            permutation_test(goodness[reference], values),
        )
        for name, values in goodness.items()
        if name != reference
    }


def area(curves: Curves, bounds: Bounds) -> Estimate:
    """Mean height of the learning curves of some seeds."""
    return mean_estimate(area_under_curve(*curves)).within(*bounds)


def steps_to_threshold(
    curves: Curves, primary: Metric, bounds: Bounds = (-math.inf, math.inf)
) -> Reached | None:
    """Steps until the primary metric is as good as its threshold.

    None if it has none, or none that can be reached: 80 skills are no goal where 24 are all.
    """
    if primary.threshold is None or not bounds[0] <= primary.threshold <= bounds[1]:
        return None
    steps, values = curves
    sign = 1.0 if primary.higher_is_better else -1.0
    return reached_estimate([steps_to(sign * primary.threshold, steps, sign * v) for v in values])


# --- beside the authors ---


def authors_of(task: Task, label: str, run: Run, curves: Curves) -> Beside | None:
    """Their number beside a group of runs, of which this is one; not where an oracle pays."""
    if not is_reward(label) or label.endswith(ORACLE):
        return None
    return beside_authors(task, label, run.settings, float(curves[0][-1]))


def order_of(curves: Mapping[str, Curves], theirs: Mapping[str, Beside | None]) -> str | None:
    """Whether rewards come in the authors' order, each after the training of their number."""
    values = {n: read_at(*curves[n], b.step) for n, b in theirs.items() if b is not None}
    return order_verdict({n: list(v) for n, v in values.items()}, theirs)


# --- all of it as one record ---


def columns_of(task: Task, runs: Sequence[Run]) -> list[str]:
    """What a comparison reports: of what only some runs have, what all of these have."""
    missing = {m for m in task.optional if not all(m in run.summary() for run in runs)}
    return [m for m in task.all_columns() if m not in missing]


def comparison(runs: Sequence[Run]) -> dict[str, Any]:
    """Mean and interquartile mean of each column of the task over the seeds of each reward.

    Of the primary metric also the area under its curve, the steps to its threshold, and how each
    reward stands beside the reference.
    """
    task = one_task(list(runs))
    primary, groups = task.primary, group_by_reward(runs)
    metrics = columns_of(task, runs)
    finals = {name: [run.final(primary.name) for run in group] for name, group in groups.items()}
    beside = standings(finals, primary.higher_is_better)
    curves = {name: learning_curves(group, primary.name) for name, group in groups.items()}
    theirs = {name: authors_of(task, name, groups[name][0], curves[name]) for name in groups}
    table: dict[str, Any] = {}
    for name, group in groups.items():
        bounds = {m: range_in(task, group[0].config, m) for m in metrics}
        own, (steps, values) = bounds[primary.name], curves[name]
        reached, beside_it = steps_to_threshold(curves[name], primary, own), theirs[name]
        table[name] = {
            "seeds": [run.settings["seed"] for run in group],
            **{m: _over_seeds([run.final(m) for run in group], bounds[m]) for m in metrics},
            "area": area(curves[name], own).to_json(),
            "steps_to": reached and reached.to_json(),
            "standing": beside[name].to_json() if name in beside else None,
            "authors": beside_it and beside_it.text,
            "beside_authors": verdict_on(beside_it, steps, values, own),
        }
    made = [run.provenance() for run in runs]
    return {
        "task": task.name,
        "command": provenance()["command"],
        "commits": sorted({str(m.get("commit")) for m in made}),
        "dirty": any(m.get("dirty") for m in made),
        "machine": {k: v for k, v in made[0].get("machine", {}).items() if k != "system"},
        "rewards": table,
    }


def _over_seeds(values: list[float], bounds: Bounds) -> dict[str, Any]:
    return {
        "mean": mean_estimate(values).within(*bounds).to_json(),
        "interquartile_mean": bootstrap_estimate(values).to_json(),
        "values": values,
    }
