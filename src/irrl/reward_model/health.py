"""How the discriminator of a reward model is doing, by episodes that it never learned from."""

import math
import warnings
from typing import TYPE_CHECKING

import numpy as np

from irrl.diagnostics import discriminator_health
from irrl.ensembles import log_mean_exp
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
    learned = _as_old_as_held_out(model)
    with model.discriminator.own_chance(model.settings.seed):
        log_probs = _mixture(model, newest)
        first = _mixture(model, newest._replace(lengths=np.ones_like(newest.lengths)))
        found = health_of(model, log_probs, newest.labels)
        right = int((first.argmax(axis=1) == newest.labels).sum())
        found["first_observation_accuracy_percent"] = 100.0 * right / len(newest.labels)
        if len(learned.labels):
            known = _mixture(model, learned).argmax(axis=1) == learned.labels
            found["train_discriminator_accuracy_percent"] = 100.0 * float(known.mean())
    return found, _leak(model, right, len(newest.labels))


def health_of(model: "RewardModel", log_probs: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Health by given posteriors, log-probabilities ``(n, labels)``; n_skills among it."""
    reward_fn = model.reward_fn
    if reward_fn.needs_ensemble:  # what it pays for the mixture, without the bonus
        reward_fn = find_reward("clipped-log", validate=False)
    log_prior = model.log_prior()
    log_q = log_probs[np.arange(len(labels)), labels]
    bits = float((log_q - log_prior[labels]).mean()) / math.log(2.0)
    health = discriminator_health(log_probs, labels, reward_fn, log_prior)
    return {"n_skills": 2.0**bits, **health}


def warn(said: str) -> None:
    """Show a warning at the line that asked for the health of a model."""
    warnings.warn(said, stacklevel=3)


def _as_old_as_held_out(model: "RewardModel") -> Batch:
    """Episodes that were learned from, of the same time as those held out."""
    share = model.settings.held_out or 1.0
    recent = _newest(model.store, math.ceil(LOOKED_AT * (1.0 - share) / share) or LOOKED_AT)
    return model.store.episodes(recent[:: math.ceil(len(recent) / LOOKED_AT) or 1])


def _mixture(model: "RewardModel", batch: Batch) -> np.ndarray:
    return np.asarray(log_mean_exp(np, model.discriminator.judge(batch).cpu().numpy()))


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
