"""How a preference model is doing, by comparisons that it never learned from."""

from typing import TYPE_CHECKING

import numpy as np
import torch

from irrl.diagnostics import calibration_error
from irrl.ensembles import log_mean_exp
from irrl.preference_model.comparisons import Pairs

if TYPE_CHECKING:
    from irrl.preference_model.model import PreferenceModel

LOOKED_AT = 256  # comparisons by which health is measured


def health_of_model(model: "PreferenceModel") -> dict[str, float]:
    """Health by the newest comparisons, those held out if there are any.

    Args:
        model: a preference model.

    Returns:
        Nothing without comparisons, else ``comparisons``, seen so far;
        ``preference_accuracy_percent`` among answers that were no ties,
        ``preference_log_loss`` in nats (a coin has 0.693) and ``preference_calibration_error`` of
        predicted answers; ``train_preference_accuracy_percent`` by comparisons it learned from,
        by which overfitting shows; and ``score_std``, of the references' scores.
    """
    store = model.held_out if len(model.held_out) else model.store
    if not len(store):
        return {}
    log_probs, answers = _predicted(model, store.newest(LOOKED_AT))
    clear = answers != 0.5
    right = (log_probs[:, 1] > log_probs[:, 0]) == (answers > 0.5)
    expected = answers * log_probs[:, 1] + (1.0 - answers) * log_probs[:, 0]
    found = {
        "comparisons": float(model.comparisons),
        "preference_log_loss": -float(expected.mean()),
    }
    if clear.any():
        share = np.full(clear.sum(), 1.0 / clear.sum())
        confidence = np.exp(log_probs[clear].max(axis=1))
        found |= {
            "preference_accuracy_percent": 100.0 * float(right[clear].mean()),
            "preference_calibration_error": calibration_error(
                confidence, right[clear] * share, share
            ),
        }
    if len(model.store):
        log_probs, answers = _predicted(model, model.store.newest(LOOKED_AT))
        clear = answers != 0.5
        if clear.any():
            known = (log_probs[:, 1] > log_probs[:, 0]) == (answers > 0.5)
            found["train_preference_accuracy_percent"] = 100.0 * float(known[clear].mean())
    if model.references is not None:
        found["score_std"] = float(model.reference_scores().std())
    return found


@torch.no_grad()
def _predicted(model: "PreferenceModel", pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
    """Log-probabilities of answers ``(n, 2)`` by the mixture of networks, and the answers."""
    log_probs = model.scorer.log_preferences(pairs).double().cpu().numpy()
    return np.asarray(log_mean_exp(np, log_probs)), pairs.answers


def drift_of(before: np.ndarray, after: np.ndarray) -> float:
    """How far an update moved the same scores: root mean square, in their standard deviations.

    A move of all alike counts: preferences do not feel it, a policy that is paid raw scores does.

    Args:
        before: scores of some steps, shape ``(n,)``.
        after: of the same steps.

    Returns:
        Zero where there are none.

    Example:
        >>> import numpy as np
        >>> drift_of(np.array([0.0, 2.0]), np.array([1.0, 3.0]))
        1.0
    """
    if not len(before):
        return 0.0
    moved = float(np.sqrt(np.mean((after - before) ** 2)))
    return moved / max(float(before.std()), 1e-12)
