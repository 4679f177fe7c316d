"""Tables from the small data in `results/`."""

import json
from typing import Any

import numpy as np
from beside import authors_columns, estimate_of
from studies import PUBLISHED, RAM, RESULTS, STUDIES, THREE
from study import Study

from irrl.analysis.compare import BASELINE, ORACLE, Curves, standings, steps_to_threshold
from irrl.analysis.noise import DELTA_HEADER, REWARD_HEADER, delta_cells, each_once, reward_cells
from irrl.analysis.stats import Reached, mean_estimate
from irrl.analysis.tables import markdown_table
from irrl.tasks import find_task
from irrl.tasks.contract import Metric

SHOWN_FIRST = {
    "digits-ram": "RAM",
    "digits-ram-leak": "RAM, leaked",
    "digits-oracle": "RAM, by an oracle",
    "digits-dt-ram": "DT-RAM",
    "digits-dt-ram-leak": "DT-RAM, leaked",
}
"""Comparisons of the README; all others are in docs/results.md."""


def accuracy(study: str, name: str) -> str:
    """Of a reward in a study, in words; not every study has every reward."""
    found = accuracies(study, name)
    return str(mean_estimate(found).within(0.0, 100.0)) if found else "-"


def accuracies(study: str, name: str) -> list[float]:
    """Of each seed, from 0 on; none if the study is not there or has no such reward."""
    rewards = load(study)["rewards"] if is_there(study) else {}
    found = rewards.get(name) or rewards.get(name + ORACLE)
    return found["accuracy_percent"]["values"] if found else []


def seeds_of(study: str) -> int:
    return min(len(found["seeds"]) for found in load(study)["rewards"].values())


def epochs_table(name: str) -> str:
    """The primary metric after each epoch: who leads while the discriminator is immature."""
    found = {reward: curves(name, reward)[:, 1:] for reward in load(name)["rewards"]}
    epochs = next(iter(found.values()))[0, :, 0]
    rows = [
        [r, *(str(mean_estimate(values).within(0.0, 100.0)) for values in c[:, :, 1].T)]
        for r, c in found.items()
    ]
    return markdown_table(["reward", *(f"epoch {epoch:g}" for epoch in epochs)], rows)


def along_table(name: str, model: str) -> str:
    """Our curve beside the authors', where theirs is known."""
    rows = []
    for reward in load(name)["rewards"]:
        found = curves(name, reward)
        for step, theirs in zip(
            *PUBLISHED[model].curve_up_to(reward, found[0, -1, 0]), strict=True
        ):
            ours = mean_estimate(found[:, found[0, :, 0] == step, 1][:, 0])
            rows.append([reward, str(step), f"**{ours}**", str(theirs)])
    return markdown_table(["reward", "epoch", "here", "authors"], rows)


def oracle_table() -> str:
    """Accuracy with the oracle less accuracy without, of the same seeds; with and without leak."""
    rows = []
    for name in THREE.split(","):
        judged = accuracies("digits-oracle", name)
        shown = [str(mean_estimate(judged).within(0.0, 100.0))]
        for study in ("digits-ram", "digits-ram-leak"):
            online = accuracies(study, name)
            gap = f"**{mean_estimate(np.subtract(judged, online))}**" if online else "-"
            shown += [accuracy(study, name), gap]
        rows.append([name, str(len(judged)), *shown])
    header = "reward,seeds,oracle,online,gap,online with leak,gap with leak"
    return markdown_table(header.split(","), rows)


def calibration_table() -> str:
    found = json.loads((RESULTS / "digits-calibration.json").read_text())
    rows = [
        [name, *(in_thousandths(of_study.get(name, [])) for of_study in found.values())]
        for name in THREE.split(",")
    ]
    return markdown_table(["reward", *(SHOWN_FIRST[study] for study in found)], rows)


def in_thousandths(values: list[float]) -> str:
    """Mean and range of numbers that are too small for one decimal."""
    if not values:
        return "-"
    return f"{np.mean(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def recipe_table() -> str:
    """Three rewards after 100 epochs of the authors' recipe."""
    studies = {"digits-paper-leak": "leaked", "digits-ram-paper": "detached"}
    rows = []
    for name in THREE.split(","):
        values = [accuracy(study, name) for study in studies]
        if name == "accuracy":  # nothing to leak
            values = ["-", accuracy("digits-paper-accuracy", name)]
        rows.append([name, *values, str(RAM.curve_point(name, 100))])
    return markdown_table(["reward", *studies.values(), "authors at 100 epochs"], rows)


def noise_table(measured: dict[str, Any]) -> str:
    """The noise itself: is its mean zero, is it symmetric?"""
    found = (
        (run.split("/")[-2], (str(d["step"]), *delta_cells(d)))
        for run, found in measured["runs"].items()
        for d in found["delta"]
    )
    return markdown_table(["run rewarded by", "epoch", *DELTA_HEADER], each_once(found))


def oracle_accuracy() -> str:
    """How good the judge of the noise is itself."""
    found = load("digits-judge")["rewards"]["clipped-linear"]
    validation, test = (
        found[m]["values"][0] for m in ("accuracy_percent", "test_accuracy_percent")
    )
    return f"right on {validation:.1f} % of validation and {test:.1f} % of test canvases"


def noise_of_rewards_table(measured: dict[str, Any]) -> str:
    """What the noise does to the reward of a run, measured and predicted."""
    found = (
        (r["reward"], (str(r["step"]), *reward_cells(r)))
        for run, of_run in measured["runs"].items()
        for r in of_run["rewards"]
        if r["reward"] == run.split("/")[-2]
    )
    return markdown_table(["reward", "epoch", *REWARD_HEADER], each_once(found))


def shown_estimate(study: str, label: str, metric: str) -> str:
    """Mean over seeds with its interval or, of few, the seeds; in the range of the metric."""
    values = load(study)["rewards"][label][metric]["values"]
    return str(estimate_of(STUDIES[study], label, metric, values))


def is_there(study: str) -> bool:
    return (RESULTS / study / "comparison.json").exists()


def load(study: str) -> dict[str, Any]:
    return json.loads((RESULTS / study / "comparison.json").read_text())


def commits(result: dict[str, Any]) -> str:
    return ", ".join(commit[:10] for commit in result["commits"])


def beside(name: str, study: Study) -> dict[str, dict[str, str]]:
    """Columns more, from the values and curves that are kept: title -> reward -> cell."""
    task = find_task(study.task)
    metrics = {metric.name: metric for metric in (task.primary, *task.primary_of.values())}
    primary = metrics[study.columns.metrics[0]]
    finals = {r: found[primary.name]["values"] for r, found in load(name)["rewards"].items()}
    columns = {}
    speeds = {}
    if primary.threshold is not None:
        speeds = {r: to_threshold(curves(name, r), primary) for r in finals}
    if any(speed.reached for speed in speeds.values()):
        columns[f"steps to {primary.threshold:g}"] = {r: str(speed) for r, speed in speeds.items()}
    standing = standings(finals)
    if standing and min(map(len, finals.values())) > 1:
        reference = next(iter(standing.values())).reference
        columns[f"P({reference} better)"] = {r: str(s) for r, s in standing.items()}
    return columns


def their_columns(name: str, study: Study) -> dict[str, dict[str, str]]:
    """The authors' numbers of the same training, and what follows."""
    found: dict[str, Curves] = {}
    for label in load(name)["rewards"]:
        points = curves(name, label)
        found[label] = (points[0, :, 0], points[:, :, 1])
    return authors_columns(study, found)


def curves(study: str, label: str) -> np.ndarray:
    """Steps and primary metric of a reward or scripted baseline: (seeds, steps, 2)."""
    folder = label.removesuffix(ORACLE).removesuffix(BASELINE)
    found = json.loads((RESULTS / study / "curves.json").read_text())
    return np.array([points for key, points in found.items() if key.split("/")[0] == folder])


def has_curves(study: str) -> bool:
    """Whether runs were looked at on the way: two ends make no curve."""
    found = json.loads((RESULTS / study / "curves.json").read_text())
    return any(len(points) > 2 for points in found.values())


def to_threshold(found: np.ndarray, primary: Metric) -> Reached:
    reached = steps_to_threshold((found[0, :, 0], found[:, :, 1]), primary)
    assert reached is not None, f"{primary.name} has no threshold"
    return reached


def table(name: str, study: Study, more: dict[str, dict[str, str]] | None = None) -> str:
    """A row for each reward: seeds, metrics, columns more, and the authors' numbers."""
    metrics, titles = study.columns
    added = {**(more or {}), **their_columns(name, study)}
    rows = []
    for label, found in load(name)["rewards"].items():
        shown = [shown_estimate(name, label, metric) for metric in metrics]
        row = [label, str(len(found["seeds"])), f"**{shown[0]}**", *shown[1:]]
        rows.append([*row, *(cells.get(label, "-") for cells in added.values())])
    return markdown_table(["reward", "seeds", *titles, *added], rows)
