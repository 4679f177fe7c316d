"""What a report tells: finished runs sorted into studies, and what each of them shows.

A study is runs of one task that agree in everything but reward, oracle and seed. Above the tasks,
as the command line is.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from irrl.analysis.authors import Beside, read_at, verdict_on
from irrl.analysis.compare import (
    BOOKKEEPING,
    ORACLE,
    Curves,
    Standing,
    all_curves,
    area,
    authors_of,
    columns_of,
    group_by_reward,
    is_reward,
    order_of,
    standings,
    steps_to_threshold,
)
from irrl.analysis.ranges import range_in
from irrl.analysis.stats import (
    Estimate,
    Reached,
    bootstrap_estimate,
    mean_estimate,
    stratified_estimate,
)
from irrl.errors import UserError
from irrl.runs.config import flag_name
from irrl.runs.run import Run
from irrl.tasks import find_task, make_config, one_task
from irrl.tasks.contract import Task
from irrl.tasks.published import Published
from irrl.tasks.registry import task_names


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
    theirs: Beside | None
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
    own = {label: found[primary.name] for label, found in curves.items()}
    theirs = {n: authors_of(task, n, group[0], own[n]) for n, group in groups.items()}
    others = [m for m in columns_of(task, runs)[1:] if "seconds" not in m]
    rows = []
    for label, group in groups.items():
        bounds = range_in(task, group[0].config, primary.name)
        rows.append(
            Row(
                label,
                [run.settings["seed"] for run in group],
                mean_estimate(finals[label]).within(*bounds),
                bootstrap_estimate(finals[label]),
                {m: _over(task, m, group) for m in others},
                area(own[label], bounds),
                steps_to_threshold(own[label], primary, bounds),
                beside.get(label),
                theirs[label],
                verdict_on(theirs[label], *own[label], bounds),
            )
        )
    best_first = -1.0 if primary.higher_is_better else 1.0
    rows.sort(key=lambda row: (not is_reward(row.label), best_first * row.final.value))
    return Study(task, variant, set_up, groups, curves, rows, order_of(own, theirs))


def _over(task: Task, metric: str, runs: Sequence[Run]) -> Estimate:
    bounds = range_in(task, runs[0].config, metric)
    return mean_estimate([run.final(metric) for run in runs]).within(*bounds)


def share_of_authors(studies: Sequence[Study], reward: str) -> Estimate | None:
    """Ours over theirs after the same training, over all tasks for which there is a verdict.

    None below two tasks, or if they have different numbers of seeds: the interquartile mean would
    leave out the smaller ones.
    """
    shares: dict[str, list[float]] = {}
    for study in studies:
        row = next((r for r in study.rows if r.label == reward and r.verdict != "-"), None)
        if row is not None and row.theirs is not None and study.variant not in shares:
            number = 0.5 * (row.theirs.anchor.low + row.theirs.anchor.high)
            ours = read_at(*study.curves[reward][study.task.primary.name], row.theirs.step)
            shares[study.variant] = (ours / number).tolist()
    if len(shares) < 2 or len({len(values) for values in shares.values()}) > 1:
        return None
    return stratified_estimate(list(shares.values()))
