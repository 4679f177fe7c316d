"""What parallel environments have shown of episodes that are still under way."""

from collections.abc import Mapping

import numpy as np

from irrl.errors import UserError
from irrl.reward_model.spaces import Part, Parts
from irrl.reward_model.store import LABEL, Batch

FIRST_CAPACITY = 32  # steps


class Running:
    """Observations of n running episodes; of each all, or the first and the newest.

    ``no_labels`` is an array of none of them, where labels move and are kept beside.
    """

    def __init__(
        self,
        parts: Mapping[str, Part],
        num_envs: int,
        keeps_all: bool,
        max_steps: int,
        no_labels: np.ndarray | None = None,
    ) -> None:
        self.keeps_all, self.max_steps = keeps_all, max_steps
        rows = FIRST_CAPACITY if keeps_all else 2
        self.seen: Parts = {
            name: np.zeros((rows, num_envs, *part.shape), part.dtype)
            for name, part in parts.items()
        }
        if no_labels is not None:
            shape = (rows, num_envs, *no_labels.shape[1:])
            self.seen[LABEL] = np.zeros(shape, no_labels.dtype)
        self.lengths = np.zeros(num_envs, np.int64)  # observations so far; 0: no episode

    def require_room(self, rows: np.ndarray) -> None:
        """Raise where an episode has been going on for too long."""
        longest = int(np.where(rows, self.lengths, 0).argmax())
        if rows[longest] and self.lengths[longest] > self.max_steps:
            raise UserError(
                f"the episode of environment {longest} has no end after {self.max_steps:,} steps: "
                "give it a time limit, or raise max_episode_steps"
            )

    def require_begun(self, rows: np.ndarray) -> None:
        """Raise where an environment has no episode."""
        idle = rows & (self.lengths == 0)
        if idle.any():
            raise UserError(
                f"step before begin: environment {int(idle.argmax())} has no episode under way"
            )

    def write(self, parts: Parts, rows: np.ndarray) -> None:
        """One more observation of some environments."""
        (which,) = np.nonzero(rows)
        at = self.lengths[which]
        if self.keeps_all:
            self._make_room(int(at.max()) + 1)
        else:
            at = np.minimum(at, 1)
        for name, array in parts.items():
            self.seen[name][at, which] = array[which]
        self.lengths[which] += 1

    def _make_room(self, steps: int) -> None:
        for name, array in self.seen.items():
            if len(array) < steps:
                self.seen[name] = np.concatenate([array, np.zeros_like(array)])

    def kept(self, rows: np.ndarray) -> np.ndarray:
        """How many observations are at hand of some environments' episodes."""
        return self.lengths[rows] if self.keeps_all else np.minimum(self.lengths[rows], 2)

    def batch(self, rows: np.ndarray, labels: np.ndarray) -> Batch:
        """The episodes of some environments side by side, with their labels or those kept."""
        (which,) = np.nonzero(rows)
        lengths = self.kept(rows)
        seen = {name: array[: int(lengths.max()), which] for name, array in self.seen.items()}
        moving = seen.pop(LABEL, None)
        return Batch(seen, lengths, labels[which] if moving is None else moving)

    def label(self, labels: np.ndarray, rows: np.ndarray) -> None:
        """Labels of the newest observations of some environments, where labels move."""
        (which,) = np.nonzero(rows)
        self.seen[LABEL][self.lengths[which] - 1, which] = labels[which]

    def at(self, step: int) -> Parts:
        """What all environments showed at a step of their episodes."""
        return {name: array[step] for name, array in self.seen.items() if name != LABEL}

    def newest(self) -> Parts:
        """The newest observation of each environment; anything where there is none."""
        at = np.maximum(self.kept(np.ones(len(self.lengths), bool)) - 1, 0)
        places = np.arange(len(at))
        return {n: array[at, places] for n, array in self.seen.items() if n != LABEL}


def one_after_the_other(batch: Batch, moves: bool = False) -> tuple[Parts, np.ndarray]:
    """Observations of episodes, each behind the one before it, and labels, which may move too."""
    steps = len(next(iter(batch.observations.values())))
    inside = np.arange(steps) < batch.lengths[:, None]
    seen = {name: np.swapaxes(a, 0, 1)[inside] for name, a in batch.observations.items()}
    return seen, np.swapaxes(batch.labels, 0, 1)[inside] if moves else batch.labels
