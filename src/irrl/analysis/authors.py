"""The authors' numbers beside ours: which may stand there, and what follows from them.

A number of theirs stands beside a run only if the task was set up as theirs and the run was trained
at least as long. It is compared with ours at its own length of training, read off our curve, and
only if our recipe is theirs in what the task names. So lengths agree exactly, and no tolerance is
needed; between two evaluations our curve is a straight line.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from irrl.analysis.stats import Estimate, mean_estimate, permutation_test
from irrl.tasks import make_config
from irrl.tasks.contract import Settings, Task
from irrl.tasks.published import Anchor, in_words

PAPER = "paper"
"""The preset that is the authors' set-up, for tasks of the paper."""

SLACK = 1e-9
"""Relative: lengths are products of settings."""


class Beside(NamedTuple):
    """A number of the authors beside a reward of ours."""

    text: str  # with its training, and where they end if that is later
    anchor: Anchor
    length: str  # the training of the anchor
    step: float  # of ours, with which it is compared
    same_recipe: bool


def beside_authors(task: Task, reward: str, settings: Settings, last: float) -> Beside | None:
    """Their number at the longest training that our run, of so many steps, has had as well."""
    published = task.published.get(task.variant(settings))
    if published is None or not _agree(task, task.as_published, reward, settings):
        return None
    pace = task.pace(settings)
    trained = last * pace * (1.0 + SLACK)
    points = published.points(reward)
    reached = [point for point in points if point.first <= trained]
    if not reached:
        return None
    anchor, first, longest = reached[-1]
    length = in_words(first, longest, published.unit)
    text = f"{anchor.text} at {length}"
    if len(reached) < len(points):
        text += f"; {points[-1].anchor.text} at {published.length}"
    step = min(last, longest / pace)
    return Beside(text, anchor, length, step, _agree(task, task.recipe, reward, settings))


def _agree(task: Task, names: Sequence[str], reward: str, settings: Settings) -> bool:
    paper = make_config(task.name, PAPER, reward=reward).settings()
    return all(settings[name] == paper[name] for name in names)


def read_at(steps: np.ndarray, values: np.ndarray, step: float) -> np.ndarray:
    """Curves of shape (seeds, steps) after a step, on straight lines: shape (seeds,)."""
    return np.array([np.interp(step, steps, row) for row in values])


# --- verdicts ---


def verdict(found: Estimate, anchor: Anchor) -> str:
    """Ours beside theirs, in words that follow from the numbers.

    Only what lies in their range agrees. What lies outside is told with its distance, and with
    whether our seeds reach that far.
    """
    if anchor.low <= found.value <= anchor.high:
        return "agrees"
    is_above = found.value > anchor.high
    by = found.value - anchor.high if is_above else anchor.low - found.value
    low, high = found.spread
    unsure = low <= anchor.high if is_above else high >= anchor.low
    return f"{'above' if is_above else 'below'} by {by:.1f}" + ", within the spread" * unsure


def verdict_on(
    theirs: Beside | None, steps: np.ndarray, values: np.ndarray, bounds: tuple[float, float]
) -> str:
    """The verdict at the length of training of their number; a dash where there is none."""
    if theirs is None or not theirs.same_recipe:
        return "-"
    found = mean_estimate(read_at(steps, values, theirs.step)).within(*bounds)
    shown = verdict(found, theirs.anchor)
    return shown if theirs.step >= steps[-1] else f"{found.value:.1f} by then: {shown}"


def order_verdict(
    values: Mapping[str, Sequence[float]], theirs: Mapping[str, Beside | None]
) -> str | None:
    """Whether rewards that the authors tell apart come in the same order here, and how surely.

    ``values`` are those of the seeds of each reward at the length of their numbers.
    """
    anchors = {n: b.anchor for n, b in theirs.items() if b is not None and b.same_recipe}
    pairs = [(a, b) for a in anchors for b in anchors if anchors[a].low > anchors[b].high]
    if not pairs:
        return None
    right = [(a, b) for a, b in pairs if np.mean(values[a]) > np.mean(values[b])]
    p = max(permutation_test(values[a], values[b]) for a, b in pairs)
    if len(right) == len(pairs):
        several = f"all {len(pairs)} pairs" if len(pairs) > 1 else "one pair"
        sure = "yes" if p <= 0.05 else "yes in the means, but not beyond chance"
        return f"order as in the paper: {sure} ({several}, largest p = {p:.2g})"
    wrong = ", ".join(f"{b} above {a}" for a, b in pairs if (a, b) not in right)
    return f"order as in the paper: no ({len(right)} of {len(pairs)} pairs; {wrong})"
