"""Policy gradients of a run under several rewards, beside those that an oracle would have given.

What is measured of a run after a step of its training, for `irrl.gradient_noise` to tell from.
"""

from typing import NamedTuple

from irrl.delta_noise import Floats
from irrl.gradient_noise import SampledMoments

RUN, ORACLE = "run", "oracle"
"""Who judges: the discriminator that was learning, or a converged one."""

INFORMATION, ACCURACY = "log", "accuracy"
"""Rewards whose gradient by the oracle is the same target for all: that of the mutual information
of label and trajectory, and that of how often the best guess is right."""


class Arm(NamedTuple):
    """One way to reward the same episodes.

    Attributes:
        reward: its name.
        judge: "run" or "oracle".
        as_trained: whether advantages are over the baseline as the run has it, and not over one
            that was fitted to this reward.

    Example:
        >>> Arm("linear", "run").as_trained
        False
    """

    reward: str
    judge: str
    as_trained: bool = False


class MeasuredGradients(NamedTuple):
    """Gradients of a run after a step of its training.

    Attributes:
        step: of the training.
        batch_size: episodes of one batch.
        batches: how many were sampled; None: moments are exact.
        arms: which row of the moments is which.
        sampled: the moments.
        online: posteriors of the true labels by the run, shape ``(n,)``.
        oracle: by the oracle, on the same episodes, shape ``(n,)``.
        prior: of each label.
        weights: how much each of these counts, shape ``(n,)``; None: all alike.

    Example:
        >>> import numpy as np
        >>> from irrl.gradient_noise import BatchGroup, sampled_moments
        >>> found = sampled_moments([BatchGroup.of(np.ones((1, 2)))] * 4)
        >>> half = np.array([0.5])
        >>> arms = make_arms(("log",))
        >>> MeasuredGradients(0, 8, 4, arms, found, half, half, 0.1).row("log", "run")
        0
    """

    step: int
    batch_size: int
    batches: int | None
    arms: tuple[Arm, ...]
    sampled: SampledMoments
    online: Floats
    oracle: Floats
    prior: float
    weights: Floats | None = None

    def row(self, reward: str, judge: str, as_trained: bool = False) -> int:
        """Which row of the moments is that of a reward and its judge."""
        return self.arms.index(Arm(reward, judge, as_trained))


def make_arms(rewards: tuple[str, ...], as_trained: str | None = None) -> tuple[Arm, ...]:
    """All that is needed to compare rewards: each by both judges, and the common targets.

    Args:
        rewards: their names.
        as_trained: a reward that is judged by the run over the run's own baseline, too.

    Returns:
        The arms, each once.

    Example:
        >>> [arm.reward for arm in make_arms(("log",)) if arm.judge == "oracle"]
        ['log', 'accuracy']
    """
    own = dict.fromkeys([*rewards, "linear"])  # what others are like, to first order
    judged = dict.fromkeys([*rewards, INFORMATION, ACCURACY])
    arms = [Arm(name, RUN) for name in own] + [Arm(name, ORACLE) for name in judged]
    return (*arms, *([] if as_trained is None else [Arm(as_trained, RUN, True)]))
