"""Labels as environments tell them: whole numbers, or nothing yet."""

import math
from typing import Any

import numpy as np

from irrl.errors import UserError

NOT_TOLD = -1


def as_labels(labels: Any) -> np.ndarray:
    """Labels of environments as whole numbers, `NOT_TOLD` for None.

    Args:
        labels: a sequence with a whole number or None for each environment, or an array of whole
            numbers that has `NOT_TOLD` where there is none.

    Returns:
        Whole numbers, shape ``(n,)``; raises where one is none, and names the environment.
    """
    if isinstance(labels, np.ndarray) and labels.dtype.kind == "i":
        return labels.astype(np.int64, copy=False)
    if np.ndim(labels) == 0:
        raise UserError(f"labels must have one for each environment, got {labels!r}")
    found = np.full(len(labels), NOT_TOLD)
    for n, label in enumerate(labels):
        if label is None:
            continue
        value = np.asarray(label)
        if value.size != 1 or value.dtype.kind not in "iu":
            raise UserError(f"label must be a whole number, got {label!r} of environment {n}")
        if not 0 <= value.item() < 2**63:
            raise UserError(f"label {value.item()} of environment {n} is out of range")
        found[n] = value.item()
    return found


def log_prior_of(prior: Any, counts: np.ndarray) -> np.ndarray:
    """Log-probabilities of labels, float32 of shape ``(labels,)``.

    Args:
        prior: ``"uniform"``, ``"counted"``, or a probability for each.
        counts: of the labels so far; each has one added, so that none has probability zero.
    """
    if isinstance(prior, str) and prior == "uniform":
        return np.full(len(counts), -math.log(len(counts)), np.float32)
    shares = (counts + 1.0) / (counts + 1.0).sum() if isinstance(prior, str) else np.asarray(prior)
    return np.log(shares).astype(np.float32)


def require_in_range(labels: np.ndarray, count: int) -> None:
    """Raise unless labels are whole numbers from 0 on, ``count`` of them."""
    if labels.dtype.kind not in "iu" or labels.ndim != 1:
        raise UserError(f"label must be a whole number, got {labels[0]!r}")
    wrong = labels[(labels < 0) | (labels >= count)]
    if wrong.size:
        raise UserError(f"label {wrong[0]} is out of range: 0..{count - 1}")


class Told:
    """The labels of n environments' running episodes, as they become known."""

    def __init__(self, num_envs: int, count: int) -> None:
        self.num_envs, self.count = num_envs, count
        self.values = np.full(num_envs, NOT_TOLD)

    def after(self, labels: Any, rows: np.ndarray, begins: bool = False) -> np.ndarray:
        """All labels, once some environments told theirs; raises where one cannot be.

        Args:
            labels: as `as_labels` takes them, or None; those of other rows are not read.
            rows: of the environments that tell, as a mask.
            begins: whether these begin an episode, and may tell another label than before.
        """
        before = np.where(rows, NOT_TOLD, self.values) if begins else self.values
        if labels is None:
            return before
        told = as_labels(labels)
        if told.shape != (self.num_envs,):
            raise UserError(f"labels must have shape ({self.num_envs},), got {told.shape}")
        now = rows & (told != NOT_TOLD)
        wrong = now & ((told < 0) | (told >= self.count))
        if wrong.any():
            culprit = int(wrong.argmax())
            raise UserError(
                f"label {told[culprit]} of environment {culprit} is out of range: "
                f"0..{self.count - 1}"
            )
        changed = now & (before != NOT_TOLD) & (before != told)
        if changed.any():
            culprit = int(changed.argmax())
            raise UserError(
                f"the label of environment {culprit} changed within an episode, from "
                f"{before[culprit]} to {told[culprit]}"
            )
        return np.where(now, told, before)
