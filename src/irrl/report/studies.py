"""What a report tells: finished runs sorted into studies, and what each of them shows.

A study is runs of one task that agree in everything but reward, oracle and seed. Above the tasks,
as the command line is.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from irrl.analysis.compare import (
    BOOKKEEPING,
    ORACLE,
    Curves,
    Standing,
    all_curves,
    area,
    columns_of,
    group_by_reward,
    is_reward,
    standings,
    steps_to_threshold,
)
from irrl.analysis.stats import (
    Estimate,
    Reached,
    bootstrap_estimate,
    mean_estimate,
    permutation_test,
    range_of,
    stratified_estimate,
)
from irrl.errors import UserError
from irrl.runs.config import flag_name
from irrl.runs.run import Run
from irrl.tasks import find_task, make_config, one_task
from irrl.tasks.contract import Anchor, Published, Task
from irrl.tasks.registry import task_names

PAPER = "paper"
"""The preset that is the authors' set-up, for tasks of the paper."""


class Row(NamedTuple):
    """One reward of a study: every number over its seeds."""

    label: str
    seeds: list[int]
    final: Estimate
    interquartile: Estimate
    others: dict[str, Estimate]
    area: Estimate
    reached: Reached | None
    standing: Standing | None
    anchor: Anchor | None
    verdict: str


class Study(NamedTuple):
    task: Task
    variant: str  # of the task: the key to the authors' numbers
    set_up: str
    groups: dict[str, list[Run]]
    curves: dict[str, dict[str, Curves]]  # label -> metric -> curves
    rows: list[Row]
    order: str | None

    @property
    def title(self) -> str:
        return self.task.title(self.variant)

    @property
    def published(self) -> Published | None:
        return self.task.published.get(self.variant)

    @property
    def runs(self) -> list[Run]:
        return [run for group in self.groups.values() for run in group]


# --- sorting ---


def sorted_into_studies(runs: Sequence[Run]) -> list[Study]:
    """Studies in order of tasks and their variants, the largest of each first."""
    versions = {str(run.provenance().get("irrl")) for run in runs}
    alike: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        task, set_up = find_task(run.task), set_up_of(run)
        if len(versions) > 1:
            set_up += f", irrl {run.provenance().get('irrl')}"
        alike.setdefault((task.name, task.variant(run.settings), set_up), []).append(run)
    studies = [study_of(one_task(group), *key[1:], group) for key, group in alike.items()]
    return sorted(studies, key=_place)


def _place(study: Study) -> tuple[int, int, int, str]:
    variants = list(study.task.titles)
    variant = variants.index(study.variant) if study.variant in variants else len(variants)
    return task_names().index(study.task.name), variant, -len(study.runs), study.set_up


def settings_apart(task: Task) -> set[str]:
    """Settings in which runs of a study may differ, or which its title tells."""
    of_baselines = (name for its in task.scripted_baselines.values() for name in its)
    told = ("reward", "oracle", task.variant_by)
    return {*told, *of_baselines, *task.config.may_change, *BOOKKEEPING}


def set_up_of(run: Run) -> str:
    """The nearest preset, and what differs from it."""
    task = find_task(run.task)
    own = {key: value for key, value in run.settings.items() if key in settings_apart(task)}
    found = []
    for preset in task.presets:
        try:
            base = make_config(run.task, preset, **own).settings()
        except UserError:  # a preset that this reward does not go with
            continue
        changed = {k: v for k, v in run.settings.items() if base[k] != v}
        found.append((len(changed), preset, changed))
    if not found:
        return "settings of its own"
    _, preset, changed = min(found, key=lambda f: f[0])
    changed = _without_what_follows(run, preset, own, changed)
    return ", ".join([preset, *(f"{flag_name(k)} {_shown(v)}" for k, v in changed.items())])


def _without_what_follows(
    run: Run, preset: str, own: dict[str, Any], changed: dict[str, Any]
) -> dict[str, Any]:
    """Leave out settings that were filled in from the others."""
    for key in list(changed):
        fewer = {k: v for k, v in changed.items() if k != key}
        try:
            config = make_config(run.task, preset, **own, **fewer).settings()
        except UserError:
            continue
        if all(config[k] == v for k, v in run.settings.items()):
            changed = fewer
    return changed


def _shown(value: Any) -> str:
    text = str(value)
    return "of its own" if "\n" in text or len(text) > 40 else text


# --- what a study shows ---


def study_of(task: Task, variant: str, set_up: str, runs: Sequence[Run]) -> Study:
    groups = group_by_reward(runs)
    panels, primary = list(task.all_panels()), task.primary
    curves = {label: all_curves(group, panels) for label, group in groups.items()}
    finals = {n: [run.final(primary.name) for run in group] for n, group in groups.items()}
    online = {n: v for n, v in finals.items() if is_reward(n) and not n.endswith(ORACLE)}
    beside = standings(online, primary.higher_is_better)
    anchors = {n: a for n in online if (a := anchor_of(task, n, groups[n][0])) is not None}
    others = [m for m in columns_of(task, runs)[1:] if "seconds" not in m]
    rows = []
    for label, group in groups.items():
        final = mean_estimate(finals[label]).within(*range_of(primary.name))
        rows.append(
            Row(
                label,
                [run.settings["seed"] for run in group],
                final,
                bootstrap_estimate(finals[label]),
                {m: _over(m, group) for m in others},
                area(curves[label][primary.name]),
                steps_to_threshold(curves[label][primary.name], primary),
                beside.get(label),
                anchors.get(label),
                verdict(final, anchors.get(label)),
            )
        )
    best_first = -1.0 if primary.higher_is_better else 1.0
    rows.sort(key=lambda row: (not is_reward(row.label), best_first * row.final.value))
    return Study(task, variant, set_up, groups, curves, rows, order_verdict(online, anchors))


def _over(metric: str, runs: Sequence[Run]) -> Estimate:
    return mean_estimate([run.final(metric) for run in runs]).within(*range_of(metric))


def anchor_of(task: Task, reward: str, run: Run) -> Anchor | None:
    """The authors' number, if the run was set up as theirs in all that makes a task what it is."""
    published = task.published.get(task.variant(run.settings))
    if published is None or reward not in published.numbers:
        return None
    paper = make_config(task.name, PAPER, reward=reward).settings()
    same = all(run.settings[key] == paper[key] for key in task.as_published)
    return published.numbers[reward] if same else None


def verdict(found: Estimate, anchor: Anchor | None) -> str:
    """Ours beside theirs, in words that follow from the numbers."""
    if anchor is None:
        return "-"
    low = found.value if found.low is None else found.low
    high = found.value if found.high is None else found.high
    if low > anchor.high:
        return f"above by {found.value - anchor.high:.1f}"
    if found.value >= anchor.low:
        return "reached"
    short = f"{anchor.low - found.value:.1f}"
    return f"below by {short}, within the interval" if high >= anchor.low else f"below by {short}"


def order_verdict(finals: dict[str, list[float]], anchors: dict[str, Anchor]) -> str | None:
    """Whether rewards that the authors tell apart come in the same order here, and how surely."""
    pairs = [(a, b) for a in anchors for b in anchors if anchors[a].low > anchors[b].high]
    if not pairs:
        return None
    right = [(a, b) for a, b in pairs if np.mean(finals[a]) > np.mean(finals[b])]
    p = max(permutation_test(finals[a], finals[b]) for a, b in pairs)
    if len(right) == len(pairs):
        several = f"all {len(pairs)} pairs" if len(pairs) > 1 else "one pair"
        sure = "yes" if p <= 0.05 else "yes in the means, but not beyond chance"
        return f"order as in the paper: {sure} ({several}, largest p = {p:.2g})"
    wrong = ", ".join(f"{b} above {a}" for a, b in pairs if (a, b) not in right)
    return f"order as in the paper: no ({len(right)} of {len(pairs)} pairs; {wrong})"


def share_of_authors(studies: Sequence[Study], reward: str) -> Estimate | None:
    """Ours over theirs, over all tasks for which their number is known.

    None below two tasks, or if they have different numbers of seeds: the interquartile mean would
    leave out the smaller ones.
    """
    shares: dict[str, list[float]] = {}
    for study in studies:
        row = next((r for r in study.rows if r.label == reward and r.anchor), None)
        if row is not None and row.anchor is not None and study.variant not in shares:
            theirs = 0.5 * (row.anchor.low + row.anchor.high)
            name, runs = study.task.primary.name, study.groups[reward]
            shares[study.variant] = [run.final(name) / theirs for run in runs]
    if len(shares) < 2 or len({len(values) for values in shares.values()}) > 1:
        return None
    return stratified_estimate(list(shares.values()))
