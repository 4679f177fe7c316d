"""Episodes that were kept to learn from: the newest ones, side by side in flat arrays."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from irrl.errors import UserError
from irrl.reward_model.spaces import Part, Parts, require_stored

LABEL = ":label"  # its place among the arrays of steps, where labels move


class Batch(NamedTuple):
    """Episodes side by side: time first, then the batch; padded with what follows in the store."""

    observations: Parts  # (T, B, ...)
    lengths: np.ndarray  # (B,)
    labels: np.ndarray  # (B, ...); (T, B, ...) where they move


def first_and_last(observations: Parts, lengths: np.ndarray) -> tuple[Parts, np.ndarray]:
    """Of episodes that lie one after the other, what was seen first and last."""
    ends = np.cumsum(lengths)
    rows = np.stack([ends - lengths, ends - 1], axis=1).ravel()
    kept = {name: array[rows] for name, array in observations.items()}
    return kept, np.full(len(lengths), 2)


class EpisodeStore:
    """The newest episodes, up to a number of them.

    Observations of all episodes lie one after the other in one array for each part. The oldest are
    dropped from the front, and what is left is moved there once they are half of the array.
    ``no_labels`` is an array of none of them, of their type and shape; where labels move, each
    observation has one.
    """

    def __init__(
        self,
        parts: Mapping[str, Part],
        capacity: int,
        no_labels: np.ndarray | None = None,
        moves: bool = False,
    ) -> None:
        self.parts, self.capacity, self.moves = dict(parts), capacity, moves
        self.no_labels = np.zeros(0, np.int64) if no_labels is None else no_labels
        self._empty()

    def _empty(self) -> None:
        self._arrays: Parts = {
            name: np.zeros((0, *part.shape), part.dtype) for name, part in self.parts.items()
        }
        self._labels = self.no_labels  # of episodes
        if self.moves:
            self._arrays[LABEL] = self.no_labels
        self._used = 0  # steps written
        self._starts, self._lengths = (np.zeros(0, np.int64) for _ in range(2))

    def __len__(self) -> int:
        return len(self._lengths)

    @property
    def labels(self) -> np.ndarray:
        """Labels of all episodes, oldest first; of all steps where labels move."""
        if not self.moves:
            return self._labels
        first = int(self._starts[0]) if len(self) else self._used
        return self._arrays[LABEL][first : self._used]

    @property
    def steps(self) -> int:
        """Observations of all episodes."""
        return int(self._lengths.sum())

    def add(self, observations: Parts, lengths: np.ndarray, labels: np.ndarray) -> None:
        """Take in episodes, whose observations lie one after the other in ``observations``.

        Where labels move, so do these, one for each observation.
        """
        lengths = np.asarray(lengths, np.int64)
        count = int(lengths.sum())
        self._make_room(count)
        if self.moves:
            observations = {**observations, LABEL: labels}
        else:
            self._labels = np.concatenate([self._labels, labels])[-self.capacity :]
        for name, array in self._arrays.items():
            array[self._used : self._used + count] = observations[name]
        starts = self._used + np.concatenate([[0], np.cumsum(lengths)[:-1]])
        self._used += count
        self._starts = np.concatenate([self._starts, starts])[-self.capacity :]
        self._lengths = np.concatenate([self._lengths, lengths])[-self.capacity :]

    def _make_room(self, count: int) -> None:
        first = int(self._starts[0]) if len(self) else self._used
        size = len(next(iter(self._arrays.values())))
        if self._used + count <= size:
            return
        kept = self._used - first
        size = size if kept + count <= size // 2 else 2 * (kept + count)
        for name, array in self._arrays.items():
            moved = np.zeros((size, *array.shape[1:]), array.dtype)
            moved[:kept] = array[first : self._used]
            self._arrays[name] = moved
        self._starts -= first
        self._used = kept

    # --- what is read of it ---

    def episodes(self, which: np.ndarray) -> Batch:
        """Some episodes, by their places in the store."""
        starts, lengths = self._starts[which], self._lengths[which]
        steps = np.arange(int(lengths.max(initial=1)))[:, None]
        rows = np.minimum(starts + steps, self._used - 1)
        return self._batch(rows, lengths, which)

    def states(self, which: np.ndarray) -> Batch:
        """Some observations, by their places among those of all episodes."""
        ends = np.cumsum(self._lengths)
        episode = np.searchsorted(ends, which, side="right")
        rows = self._starts[episode] + which - (ends - self._lengths)[episode]
        return self._batch(rows[None], np.ones(len(which), int), episode)

    def _batch(self, rows: np.ndarray, lengths: np.ndarray, episodes: np.ndarray) -> Batch:
        taken = {name: array[rows] for name, array in self._arrays.items()}
        labels = taken.pop(LABEL) if self.moves else self._labels[episodes]
        return Batch(taken, lengths, labels)

    # --- to and from a checkpoint ---

    def to_arrays(self) -> dict[str, np.ndarray]:
        first = int(self._starts[0]) if len(self) else self._used
        kept = {f"observations.{n}": self._arrays[n][first : self._used] for n in self.parts}
        return {**kept, "lengths": self._lengths, "labels": self.labels}

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Take what `to_arrays` gave in place of what is here; raises unless it fits."""
        lengths, labels = arrays["lengths"], arrays["labels"]
        observations = {name: arrays[f"observations.{name}"] for name in self.parts}
        plain = lengths.dtype == np.int64 and lengths.ndim == 1
        like = labels.dtype == self.no_labels.dtype and labels.ndim == self.no_labels.ndim
        if not plain or not like or labels.shape[1:] != self.no_labels.shape[1:]:
            raise UserError("stored episodes are damaged: lengths or labels do not fit")
        if len(labels) != (lengths.sum() if self.moves else len(lengths)):
            raise UserError("stored episodes are damaged: lengths or labels do not fit")
        known = min(len(a) if a.ndim else 0 for a in observations.values())
        outside = bool(len(lengths)) and not 1 <= lengths.min() <= lengths.max() <= known
        if outside or any(len(a) != lengths.sum() for a in observations.values()):
            raise UserError("stored episodes are damaged: their lengths do not fit")
        require_stored(self.parts, observations)
        self._empty()
        if len(lengths):
            self.add(observations, lengths, labels)
