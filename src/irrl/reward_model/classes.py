"""Labels that are classes: whole numbers from 0 on, and what a discriminator says of them."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from irrl.ensembles import disagreement, log_mean_exp
from irrl.errors import UserError
from irrl.reward_model.settings import Settings
from irrl.units import reward_unit

NOT_TOLD = -1


class Classes:
    """One of so many labels. A belief is log-probabilities of all of them, shape ``(..., K)``.

    Args:
        count: how many there are.
        settings: of the reward model.
    """

    moves = False
    if_it_moves = ""

    def __init__(self, count: int, settings: Settings) -> None:
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 2:
            raise UserError(
                f"labels must be a whole number, at least 2, or an irrl.Continuous, got {count!r}"
            )
        prior = settings.prior
        if not isinstance(prior, str) and len(prior) != count:
            raise UserError(
                f"prior must have a probability for each of {count} labels, got {len(prior)}"
            )
        if settings.beta_nll:
            raise UserError("beta_nll is for continuous labels")
        if settings.epsilon is not None or settings.is_of_densities:
            raise UserError(
                f"reward {settings.reward!r} is for continuous labels: give labels=irrl.Continuous"
            )
        self.labels = self.outputs = int(count)
        self.counts_size = self.outputs
        self.of_prior = prior
        self.reward_fn = settings.reward_fn(validate=False)
        self.unit = settings.reward_unit
        self.bonus_kind = settings.bonus_kind

    def __str__(self) -> str:
        return f"{self.labels} labels"

    # --- labels ---

    def nothing(self, *shape: int) -> np.ndarray:
        """Labels that are not known."""
        return np.full(shape, NOT_TOLD, np.int64)

    def is_told(self, labels: np.ndarray) -> np.ndarray:
        """Which are."""
        return labels != NOT_TOLD

    def read(self, labels: Any) -> np.ndarray:
        """Labels of environments as whole numbers, `NOT_TOLD` for None."""
        return as_labels(labels)

    def plain(self, values: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
        """Values as labels at once, the usual case and the fast one; None if they may be wrong."""
        plain = values.dtype.kind in "iu" and values.ndim == 1
        return values.astype(np.int64) if plain and not (values[rows] < 0).any() else None

    def require(self, labels: np.ndarray, rows: np.ndarray) -> None:
        """Raise unless labels of some environments are in range."""
        wrong = rows & ((labels < 0) | (labels >= self.labels))
        if wrong.any():
            culprit = int(wrong.argmax())
            raise UserError(
                f"label {labels[culprit]} of environment {culprit} is out of range: "
                f"0..{self.labels - 1}"
            )

    def accept(self, labels: Any) -> np.ndarray:
        """Labels of whole episodes, shape ``(n,)``, or an error."""
        labels = np.asarray(labels)
        if labels.dtype.kind not in "iu" or labels.ndim != 1:
            said = labels[0] if labels.ndim else labels
            raise UserError(f"label must be a whole number, got {said!r}")
        wrong = labels[(labels < 0) | (labels >= self.labels)]
        if wrong.size:
            raise UserError(f"label {wrong[0]} is out of range: 0..{self.labels - 1}")
        return labels.astype(np.int64, copy=False)

    def one(self, label: Any) -> np.ndarray:
        """The label of one episode, with a leading axis."""
        return self.accept(np.array([label]))

    def counts(self, labels: np.ndarray, episodes: int) -> np.ndarray:
        """How often each occurs."""
        return np.bincount(labels, minlength=self.labels)

    # --- beliefs ---

    def normalised(self, raw: Tensor) -> Tensor:
        """Beliefs from what a network gives."""
        return torch.log_softmax(raw.float(), dim=-1)

    def losses(self, beliefs: Tensor, labels: Tensor) -> Tensor:
        """Cross-entropies, shape ``(N, T, B)``, of beliefs ``(N, T, B, K)``."""
        picked = labels.expand(beliefs.shape[:-1])[..., None]
        return -beliefs.gather(-1, picked)[..., 0]

    def mixture(self, beliefs: Tensor) -> np.ndarray:
        """An ensemble read as its mixture: ``(N, ..., K)`` to ``(..., K)``."""
        return np.asarray(log_mean_exp(np, beliefs.cpu().numpy()))

    def prior(self, counts: np.ndarray) -> np.ndarray:
        """What is believed before anything was seen, shape ``(K,)``."""
        return log_prior_of(self.of_prior, counts)

    def rewards(self, beliefs: Tensor, labels: Tensor, counts: np.ndarray) -> Tensor:
        """Rewards ``(n,)`` of members' beliefs ``(N, n, K)``."""
        prior = self.prior(counts)
        log_prior = torch.from_numpy(prior).to(beliefs.device)
        rewards = self.reward_fn(beliefs, labels, log_prior, ensemble=True)
        return rewards / reward_unit(self.unit, self.reward_fn, prior)

    def disagreement(self, beliefs: Tensor) -> Tensor:
        """How much members disagree, shape ``(n,)``."""
        return disagreement(beliefs, self.bonus_kind, validate=False)

    def predictions(self, beliefs: np.ndarray) -> np.ndarray:
        """What an environment that asks is told: logits of all labels."""
        return beliefs

    def shown(self, beliefs: np.ndarray) -> np.ndarray:
        """What a policy sees of beliefs: probabilities."""
        return np.exp(beliefs)


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
