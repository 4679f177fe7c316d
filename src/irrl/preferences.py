"""Preferences: which of two is better, as a label of two classes.

A reward model that scores (Bradley and Terry) says that a thing of score r is preferred to a
reference of score s with probability sigmoid(r - s). With the label "which of the two is better"
this is a posterior, and its prior is 1/2: the pair comes in random order. So every reward of
`irrl.rewards` applies. ``linear`` is sigmoid(r - s) - 1/2, known as PAR; ``log`` is
log sigmoid(r - s) + log 2, known as LSC; ``f-chi2`` is tanh((r - s) / 2).
"""

from types import ModuleType

from irrl._accept import as_numbers
from irrl._arrays import Array, is_floating, namespace
from irrl.ensembles import log_mean_exp


def preference(score: Array, reference_scores: Array, *, validate: bool = True) -> Array:
    """Two-label log-posterior of a Bradley-Terry model; label 1: better than the reference.

    Of several references one is drawn to be compared with, and the judge is not told which: by
    the law of total probability the posterior is the mean of their probabilities. (The mean of
    the references' scores would be another model, one opponent of average strength; the mean of
    log-probabilities does not sum to one over the two labels.) Then ``linear`` is the mean of
    PAR over references less 1/2; ``log`` is no mean of LSC but the log of the mean probability.

    Args:
        score: of what is to be rewarded, floating, shape ``(...)``.
        reference_scores: one for each score, shape ``(...)``, or M for each, ``(..., M)``.
        validate: check the values, as `irrl.reward` does.

    Returns:
        Log-probabilities, shape ``(..., 2)``: of being worse, of being better. They carry no
        gradient. The reward is ``reward_fn(preference(...), ones)``, with the label 1.

    Raises:
        ValueError: for scores that are no numbers, references of another shape, or none.

    Example:
        >>> import numpy as np
        >>> from irrl.rewards import reward
        >>> log_probs = preference(np.array([2.0]), np.array([[1.0, 2.0]]))
        >>> np.exp(log_probs).round(4).tolist()
        [[0.3845, 0.6155]]
        >>> reward("linear")(log_probs, np.array([1])).round(4).tolist()
        [0.1155]
    """
    xp = namespace(score=score)
    if not is_floating(xp, score):
        raise ValueError(f"score must hold floating numbers, got {score.dtype}")
    if reference_scores is None:
        raise ValueError("reference_scores must hold at least one score to compare with, got None")
    references = as_numbers(xp, "reference_scores", reference_scores, score, validate)
    score = as_numbers(xp, "score", score, score, validate)
    shape, found = tuple(score.shape), tuple(references.shape)
    if found == shape:
        references = references[..., None]
    elif found[:-1] != shape or len(found) != len(shape) + 1:
        raise ValueError(
            f"reference_scores must have shape {shape}, or one more axis for several references, "
            f"got {found}"
        )
    if references.shape[-1] == 0:
        raise ValueError("reference_scores must hold at least one score to compare with, got none")
    ahead = score[..., None] - references
    each = xp.stack([_log_sigmoid(xp, -ahead), _log_sigmoid(xp, ahead)], axis=-1)
    return log_mean_exp(xp, xp.moveaxis(each, -2, 0))


def _log_sigmoid(xp: ModuleType, x: Array) -> Array:
    return xp.minimum(x, 0.0) - xp.log1p(xp.exp(-xp.abs(x)))
