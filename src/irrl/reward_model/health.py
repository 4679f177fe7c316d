"""How the discriminator of a reward model is doing, by episodes that it never learned from."""

import math
import warnings
from typing import TYPE_CHECKING

import numpy as np
import torch

from irrl.diagnostics import density_health, discriminator_health
from irrl.reward_model.classes import Classes
from irrl.reward_model.numbers import Numbers
from irrl.reward_model.store import Batch, EpisodeStore
from irrl.rewards import reward as find_reward

if TYPE_CHECKING:
    from irrl.reward_model.model import RewardModel

LOOKED_AT = 256  # episodes by which health is measured
UNLIKELY = 3e-7  # by chance, for first observations to tell the label so often: five sigma


def health_of_model(model: "RewardModel") -> tuple[dict[str, float], str | None]:
    """Health by the newest episodes, and a warning where first observations tell the label."""
    store = model.held_out if len(model.held_out) else model.store
    if not len(store):
        return {}, None
    newest = store.episodes(_newest(store, LOOKED_AT))
    firsts = newest._replace(lengths=np.ones_like(newest.lengths))
    learned = _as_old_as_held_out(model)
    with model.discriminator.own_chance(model.settings.seed):
        found = health_of(model, _mixture(model, newest), last_labels(model, newest))
        name, first = _score(model, firsts)
        found[f"first_observation_{name}"] = first
        if len(learned.lengths):
            found[f"train_discriminator_{name}"] = _score(model, learned)[1]
    if isinstance(model.kind, Numbers):
        return found, None
    return found, _leak(model, round(first * len(newest.lengths) / 100.0), len(newest.lengths))


def health_of(model: "RewardModel", beliefs: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Health by given beliefs, shape ``(n, P)``; n_skills among that of classes."""
    kind = model.kind
    if isinstance(kind, Numbers):
        tensors = torch.from_numpy(beliefs), torch.from_numpy(labels)
        rewards = kind.pay(tensors[0][None], tensors[1]).numpy()
        return density_health(kind.density(tensors[0]), labels, kind.prior_density, rewards)
    reward_fn = kind.reward_fn
    if reward_fn.needs_ensemble:  # what it pays for the mixture, without the bonus
        reward_fn = find_reward("clipped-log", validate=False)
    log_prior = model.log_prior()
    log_q = beliefs[np.arange(len(labels)), labels]
    bits = float((log_q - log_prior[labels]).mean()) / math.log(2.0)
    health = discriminator_health(beliefs, labels, reward_fn, log_prior)
    return {"n_skills": 2.0**bits, **health}


def last_labels(model: "RewardModel", batch: Batch) -> np.ndarray:
    """Labels at the ends of episodes, shape ``(B, ...)``."""
    if not model.kind.moves:
        return batch.labels
    return batch.labels[batch.lengths - 1, np.arange(len(batch.lengths))]


def warn(said: str) -> None:
    """Show a warning at the line that asked for the health of a model."""
    warnings.warn(said, stacklevel=3)


def _as_old_as_held_out(model: "RewardModel") -> Batch:
    """Episodes that were learned from, of the same time as those held out."""
    share = model.settings.held_out or 1.0
    recent = _newest(model.store, math.ceil(LOOKED_AT * (1.0 - share) / share) or LOOKED_AT)
    return model.store.episodes(recent[:: math.ceil(len(recent) / LOOKED_AT) or 1])


def _mixture(model: "RewardModel", batch: Batch) -> np.ndarray:
    return model.kind.mixture(model.discriminator.judge(batch))


def _score(model: "RewardModel", batch: Batch) -> tuple[str, float]:
    """How often labels are told, or how far they are missed, and the name of that."""
    beliefs, labels = _mixture(model, batch), last_labels(model, batch)
    if isinstance(model.kind, Classes):
        right = beliefs.argmax(axis=1) == labels
        return "accuracy_percent", 100.0 * int(right.sum()) / len(labels)
    return "squared_error", float(model.kind.squared_errors(beliefs, labels).mean())


def _leak(model: "RewardModel", right: int, n: int) -> str | None:
    """What to say if first observations tell labels more often than the commonest one is there."""
    commonest = model.label_counts.max() / model.episodes
    chance = max(float(np.exp(model.log_prior()).max()), float(commonest))
    if right / n <= chance or at_least(right, n, chance) > UNLIKELY:
        return None
    return (
        f"first observations already tell the label in {100 * right / n:.0f} % of episodes "
        f"({100 * chance:.0f} % by chance): does the observation give it away?"
    )


def at_least(right: int, n: int, chance: float) -> float:
    """Probability of so many or more of n, each by chance (binomial)."""
    tail = range(right, n + 1)
    return sum(math.comb(n, k) * chance**k * (1.0 - chance) ** (n - k) for k in tail)


def _newest(store: EpisodeStore, count: int) -> np.ndarray:
    return np.arange(max(0, len(store) - count), len(store))
