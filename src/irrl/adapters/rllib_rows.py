"""Pieces of episodes as a learner's batch has them: paid by a reward model, and learned from.

RLlib cuts episodes where a rollout ends, and appends to each piece an artificial time step that has
its last observation. A row is one time step; rows of a piece follow one another. Pure NumPy.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium import spaces

from irrl.errors import UserError
from irrl.reward_model import RewardModel
from irrl.reward_model.classes import NOT_TOLD
from irrl.reward_model.payment import payments
from irrl.reward_model.spaces import Parts

PADDING, STEP, CUT, END = range(4)
"""Kinds of rows: none, a step, the artificial one where a piece was cut, and where all ended."""

PREFIX = "irrl."
KIND, TIME, LABEL, SEEN, FIRST = (
    PREFIX + name for name in ("kind", "t", "label", "seen.", "first.")
)


class Rows(NamedTuple):
    """Rows of pieces of episodes, without padding."""

    kinds: np.ndarray  # (n,)
    times: np.ndarray  # (n,): of the observation, counted from the beginning of its episode
    labels: np.ndarray  # (n,): the same for all rows of a piece, -1 where none was told
    seen: Parts  # (n, ...): what is judged of observations
    first: Parts  # (n, ...): of the first observation of the episode; empty if not needed


# --- to and from columns of a batch ---


def to_columns(rows: Rows) -> dict[str, np.ndarray]:
    """Rows as columns of a batch."""
    return {
        KIND: rows.kinds,
        TIME: rows.times,
        LABEL: rows.labels,
        **{SEEN + name: array for name, array in rows.seen.items()},
        **{FIRST + name: array for name, array in rows.first.items()},
    }


def of_columns(batch: Mapping[str, Any]) -> tuple[Rows, np.ndarray]:
    """Rows of a batch, with or without an axis of time, and which of its slots they are in."""
    columns = {name: _array(batch[name]) for name in batch if name.startswith(PREFIX)}
    lead = columns[KIND].shape
    flat = {name: a.reshape(-1, *a.shape[len(lead) :]) for name, a in columns.items()}
    slots = flat[KIND] != PADDING
    kept = {name: array[slots] for name, array in flat.items()}
    seen, first = ({n.removeprefix(p): a for n, a in kept.items() if n.startswith(p)}
                   for p in (SEEN, FIRST))  # fmt: skip
    return Rows(kept[KIND], kept[TIME], kept[LABEL], seen, first), slots.reshape(lead)


def _array(column: Any) -> np.ndarray:
    return column.cpu().numpy() if isinstance(column, torch.Tensor) else np.asarray(column)


# --- reward ---


@torch.no_grad()
def pay(model: RewardModel, rows: Rows) -> np.ndarray:
    """What each row is paid by the reward model as it is now: zero where it is no step.

    Args:
        model: the reward model.
        rows: for a judge of trajectories of whole episodes.

    Returns:
        Payments, float32 of shape ``(n,)``.
    """
    how = model.settings.pay
    found = np.zeros(len(rows.kinds), np.float32)
    steps = np.nonzero(rows.kinds == STEP)[0]
    if how == "environment" or not len(steps):
        return found
    ended = rows.kinds[steps + 1] == END
    if how == "end":
        steps, ended = steps[ended], ended[ended]
    judged = _potentials(model, rows, np.union1d(steps, steps + 1) if how != "end" else steps + 1)
    before = np.where(rows.times[steps] == 0, 0.0, judged[steps])
    found[steps] = payments(how, judged[steps + 1], before, ended)
    return found


def _potentials(model: RewardModel, rows: Rows, wanted: np.ndarray) -> np.ndarray:
    """Rewards of what was seen up to some rows; zero elsewhere. Shape ``(n,)``."""
    found = np.zeros(len(rows.kinds))
    if not len(wanted):
        return found
    _require_told(rows, wanted)
    if model.settings.judge == "trajectory":
        log_probs = _of_trajectories(model, rows)[:, torch.from_numpy(wanted)]
    else:
        shown = {name: array[wanted][None] for name, array in rows.seen.items()}
        log_probs = model.judge(model.judge.to_tensors(shown))[:, 0]
    seen = {name: array[wanted] for name, array in rows.seen.items()}
    found[wanted] = model.potential(log_probs, rows.labels[wanted], seen)
    return found


def _of_trajectories(model: RewardModel, rows: Rows) -> torch.Tensor:
    """Log-probabilities ``(N, n, K)`` of each row after all rows of its episode up to it."""
    starts, lengths = pieces(rows)
    if rows.times[starts].any():
        raise UserError("judge 'trajectory' needs whole episodes: batch_mode='complete_episodes'")
    places = np.minimum(starts + np.arange(lengths.max())[:, None], len(rows.kinds) - 1)
    shown = {name: array[places] for name, array in rows.seen.items()}
    log_probs: torch.Tensor = model.judge(model.judge.to_tensors(shown))
    episode = np.repeat(np.arange(len(starts)), lengths)
    return log_probs[:, torch.from_numpy(rows.times), torch.from_numpy(episode)]


def _require_told(rows: Rows, wanted: np.ndarray) -> None:
    if (rows.labels[wanted] == NOT_TOLD).any():
        raise UserError("an environment told no label: its info must have it, see `label`")


def pieces(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Where pieces of episodes begin, and how many rows each has, the artificial one included."""
    ends = np.nonzero(rows.kinds > STEP)[0] + 1
    starts = np.concatenate([[0], ends[:-1]]).astype(np.int64)
    return starts, ends - starts


# --- discriminator ---


def take_in(model: RewardModel, rows: Rows) -> None:
    """Hand over what the discriminator learns from: whole episodes, or for single states pieces.

    Args:
        model: the reward model.
        rows: each to be taken in once.
    """
    starts, lengths = pieces(rows)
    ends = starts + lengths - 1
    if model.settings.judge == "state":  # the last state of a piece is the first one of the next
        starts, lengths = starts + (rows.times[starts] > 0), ends + 1
        lengths = lengths - starts
    else:
        whole = rows.kinds[ends] == END
        starts, lengths, ends = starts[whole], lengths[whole], ends[whole]
    if not len(starts):
        return
    _require_told(rows, ends)
    if model.settings.judge == "final":
        parts = {n: np.stack([rows.first[n][ends], a[ends]], 1).reshape(-1, *a.shape[1:])
                 for n, a in rows.seen.items()}  # fmt: skip
        lengths = np.full(len(ends), 2)
    else:
        which = np.repeat(starts - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
        parts = {name: array[which] for name, array in rows.seen.items()}
    model.add_many(parts, lengths, rows.labels[ends])


# --- observations that were made a vector ---


def unflattened(space: spaces.Space[Any], vectors: np.ndarray) -> Any:
    """Observations ``(n, ...)`` as a space has them, of the vectors that `flatten` made of them.

    Args:
        space: of the observations: Box, Discrete, MultiDiscrete, MultiBinary, or a dictionary.
        vectors: shape ``(n, numbers)``.

    Returns:
        An array with a leading axis, or a dictionary of such.

    Example:
        >>> vector = np.array([[0.0, 1.0, 0.5]])
        >>> unflattened(spaces.Dict({"a": spaces.Discrete(2), "b": spaces.Box(0, 1, (1,))}), vector)
        {'a': array([1]), 'b': array([[0.5]], dtype=float32)}
    """
    if isinstance(space, spaces.Dict):
        found, start = {}, 0
        for name, inner in space.spaces.items():
            size = spaces.flatdim(inner)
            found[name] = unflattened(inner, vectors[:, start : start + size])
            start += size
        return found
    if isinstance(space, spaces.Discrete):
        return vectors.argmax(axis=1) + int(space.start)
    if isinstance(space, spaces.MultiDiscrete):
        sizes = np.cumsum(space.nvec.ravel())[:-1]
        each = [part.argmax(axis=1) for part in np.split(vectors, sizes, axis=1)]
        return np.stack(each, 1).reshape(-1, *space.shape) + space.start
    if isinstance(space, spaces.Box | spaces.MultiBinary):
        return vectors.reshape(-1, *space.shape).astype(space.dtype)
    raise UserError(
        f"observations of {space} cannot be had from vectors: say with `see` what is judged"
    )


def flattened(space: spaces.Space[Any], observations: Any) -> np.ndarray:
    """What `unflattened` reads: observations ``(n, ...)`` as vectors of float32.

    Args:
        space: of the observations.
        observations: an array with a leading axis, or a dictionary of such.

    Returns:
        Shape ``(n, numbers)``.
    """
    if isinstance(space, spaces.Dict):
        each = [flattened(inner, observations[name]) for name, inner in space.spaces.items()]
        return np.concatenate(each, axis=1)
    array = np.asarray(observations)
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        sizes = np.ravel(space.n if isinstance(space, spaces.Discrete) else space.nvec)
        values = (array - space.start).reshape(len(array), -1)
        return np.concatenate(
            [np.eye(size, dtype=np.float32)[values[:, i]] for i, size in enumerate(sizes)], axis=1
        )
    return array.reshape(len(array), -1).astype(np.float32)
