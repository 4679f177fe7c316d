"""Labels as environments tell them: as they become known, checked by the kind that they are of."""

from typing import TYPE_CHECKING, Any

import numpy as np

from irrl.errors import UserError

if TYPE_CHECKING:
    from irrl.reward_model.kinds import Kind


def choose_rows(rows: np.ndarray, new: np.ndarray, old: np.ndarray) -> np.ndarray:
    """Some rows of one array, the others of another; numbers or vectors.

    Args:
        rows: which are taken from ``new``, as a mask of shape ``(n,)``.
        new: shape ``(n, ...)``.
        old: the same.
    """
    return np.where(rows.reshape(-1, *(1 for _ in new.shape[1:])), new, old)


class Told:
    """The labels of n environments' running episodes, as they become known."""

    def __init__(self, num_envs: int, kind: "Kind") -> None:
        self.num_envs, self.kind = num_envs, kind
        self.values = kind.nothing(num_envs)

    def after(self, labels: Any, rows: np.ndarray, begins: bool = False) -> np.ndarray:
        """All labels, once some environments told theirs; raises where one cannot be.

        Args:
            labels: as the kind reads them, or None; those of other rows are not read.
            rows: of the environments that tell, as a mask.
            begins: whether these begin an episode, and may tell another label than before.
        """
        nothing, before = self.kind.nothing(self.num_envs), self.values
        if begins or self.kind.moves:
            before = choose_rows(rows, nothing, before)
        if labels is None:
            return before
        told = self.kind.read(labels)
        if told.shape != nothing.shape:
            raise UserError(f"labels must have shape {nothing.shape}, got {told.shape}")
        now = rows & self.kind.is_told(told)
        self.kind.require(told, now)
        differs = (before != told).reshape(self.num_envs, -1).any(axis=1)
        changed = now & self.kind.is_told(before) & differs
        if changed.any():
            culprit = int(changed.argmax())
            raise UserError(
                f"the label of environment {culprit} changed within an episode, from "
                f"{before[culprit]} to {told[culprit]}{self.kind.if_it_moves}"
            )
        return choose_rows(now, told, before)
