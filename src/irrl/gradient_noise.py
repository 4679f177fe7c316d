"""What an immature discriminator does to the policy gradient: signal, noise, direction.

Eq. 5 and 6 (`irrl.noise`) are about the reward. A policy learns from differences of rewards, and a
shape that shrinks the noise of a reward shrinks its differences as well. Here several rewards judge
the same episodes, each by the discriminator of the run and by an oracle, and what is compared are
the gradients of a batch that follow, by two numbers for each pair of them: the inner product of
what they are in the mean (signal), and the trace of their covariance over batches (noise). Every
statistic below is a ratio of these, and none changes if a reward is multiplied by a constant.

`irrl.gradient_measured` says which rewards and judges are compared. docs/method.md has the
derivations. Everything is NumPy in double precision.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from irrl.delta_noise import Floats

FEWEST = 4  # groups of batches


class GradientMoments(NamedTuple):
    """Of the gradients of one batch, under several rewards on the same episodes.

    Attributes:
        signal: inner products of expected gradients, shape ``(A, A)``.
        noise: traces of covariances of gradients of one batch, shape ``(A, A)``.

    Example:
        >>> snr(GradientMoments(np.array([[3.0]]), np.array([[6.0]])), 0)
        0.5
    """

    signal: Floats
    noise: Floats


class SampledMoments(NamedTuple):
    """Moments estimated from batches, and the same without each group of them, for intervals.

    Attributes:
        moments: without bias; a signal that is not there may come out below zero.
        without: as many as there are groups; none where moments are exact.

    Example:
        >>> len(sampled_moments([BatchGroup.of(np.ones((1, 2)))] * 5).without)
        5
    """

    moments: GradientMoments
    without: tuple[GradientMoments, ...] = ()


# --- moments ---


class BatchGroup(NamedTuple):
    """What is kept of the gradients of some batches.

    Attributes:
        batches: how many there are.
        total: the sum of their gradients, shape ``(A, P)``.
        within: the sum of the products of gradients of the same batch, shape ``(A, A)``.

    Example:
        >>> BatchGroup.of(np.ones((1, 2))).plus(np.ones((1, 2))).within.tolist()
        [[4.0]]
    """

    batches: int
    total: Floats
    within: Floats

    @classmethod
    def of(cls, gradients: ArrayLike) -> "BatchGroup":
        """A group of one batch, whose gradients have shape ``(A, P)``."""
        g = np.asarray(gradients, dtype=float)
        if g.ndim != 2 or not np.isfinite(g).all():
            raise ValueError(f"gradients of a batch must be finite, of shape (A, P), got {g.shape}")
        return cls(1, g, g @ g.T)

    def plus(self, gradients: ArrayLike) -> "BatchGroup":
        """The same with one batch more."""
        one = BatchGroup.of(gradients)
        return BatchGroup(self.batches + 1, self.total + one.total, self.within + one.within)


def sampled_moments(groups: Sequence[BatchGroup]) -> SampledMoments:
    """Unbiased moments from the gradients of independent batches.

    With sums G over M batches, E[<G_a, G_b>] = M noise + M² signal, and within batches
    E[Σ <g_a, g_b>] = M (noise + signal). Products of different batches alone tell the signal.

    Args:
        groups: of batches, at least 4 of them; how they are grouped matters for intervals only.

    Returns:
        The moments, and those without each group.

    Example:
        >>> groups = [BatchGroup.of([[x]]) for x in (1.0, 3.0, 1.0, 3.0)]
        >>> found = sampled_moments(groups).moments
        >>> round(float(found.noise[0, 0]), 6), round(float(found.signal[0, 0]), 6)
        (1.333333, 3.666667)
    """
    if len(groups) < FEWEST:
        raise ValueError(f"moments need at least {FEWEST} groups of batches, got {len(groups)}")
    count = sum(group.batches for group in groups)
    total = np.sum([group.total for group in groups], axis=0)
    within = np.sum([group.within for group in groups], axis=0)
    of_total = total @ total.T
    without = []
    for group in groups:
        crossed = group.total @ total.T
        left = of_total - crossed - crossed.T + group.total @ group.total.T
        without.append(_moments(left, within - group.within, count - group.batches))
    return SampledMoments(_moments(of_total, within, count), tuple(without))


def _moments(of_total: Floats, within: Floats, count: int) -> GradientMoments:
    signal = (of_total - within) / (count * (count - 1))
    return GradientMoments(signal, (within - of_total / count) / (count - 1))


# --- what they tell ---


def snr(moments: GradientMoments, arm: int) -> float | None:
    """Signal-to-noise of one batch: |E g|² / tr Cov(g).

    Args:
        moments: of gradients of one batch.
        arm: whose.

    Returns:
        The ratio; None for a gradient that is always zero.

    Example:
        >>> snr(GradientMoments(np.zeros((1, 1)), np.zeros((1, 1))), 0)
    """
    return _ratio(moments.signal[arm, arm], moments.noise[arm, arm])


def cosine(moments: GradientMoments, arm: int, target: int) -> float | None:
    """How far one batch points where the target does: <E g, t> / (|t| sqrt(E|g|²)).

    Args:
        moments: of gradients of one batch.
        arm: whose batch.
        target: whose expected gradient t.

    Returns:
        At most 1 but for errors of estimates; None where there is no target or no gradient.

    Example:
        >>> both = GradientMoments(np.ones((2, 2)), np.diag([3.0, 9.0]))
        >>> cosine(both, 0, 1)
        0.5
    """
    squared = moments.signal[arm, arm] + moments.noise[arm, arm]
    return _over_lengths(moments.signal[arm, target], squared, moments.signal[target, target])


def direction(moments: GradientMoments, arm: int, target: int) -> float | None:
    """The same for a batch without end: what no number of episodes mends.

    Args:
        moments: of gradients of one batch.
        arm: whose expected gradient.
        target: that of whom it is compared with.

    Returns:
        The cosine of the two; None where one of them is not told from zero.

    Example:
        >>> direction(GradientMoments(np.ones((2, 2)), np.diag([3.0, 9.0])), 0, 1)
        1.0
    """
    s = moments.signal
    return _over_lengths(s[arm, target], s[arm, arm], s[target, target])


def signal_kept(moments: GradientMoments, arm: int, oracle: int) -> float | None:
    """The share of the oracle's signal that a reward judged by the run keeps.

    Args:
        moments: of gradients of one batch.
        arm: a reward by the run.
        oracle: the same by the oracle.

    Returns:
        <E g, E g*> / |E g*|²; None where the oracle has no signal.

    Example:
        >>> signal_kept(GradientMoments(np.array([[1.0, 2.0], [2.0, 4.0]]), np.eye(2)), 0, 1)
        0.5
    """
    return _ratio(moments.signal[arm, oracle], moments.signal[oracle, oracle])


def noise_kept(moments: GradientMoments, arm: int, oracle: int) -> float | None:
    """Noise of a reward judged by the run, as a multiple of that judged by the oracle.

    Args:
        moments: of gradients of one batch.
        arm: a reward by the run.
        oracle: the same by the oracle.

    Returns:
        The ratio of standard deviations; None where the oracle has no noise.

    Example:
        >>> noise_kept(GradientMoments(np.eye(2), np.diag([9.0, 36.0])), 0, 1)
        0.5
    """
    found = _ratio(moments.noise[arm, arm], moments.noise[oracle, oracle])
    return None if found is None else math.sqrt(max(found, 0.0))


def noise_added(moments: GradientMoments, arm: int, oracle: int) -> float | None:
    """The share of the noise that is not the oracle's, whatever its scale.

    Sampling makes the gradient vary under any judge. The regression of g on the oracle's g* of the
    same batches takes that part away; what is left comes from the error of the discriminator.

    Args:
        moments: of gradients of one batch.
        arm: a reward by the run.
        oracle: the same by the oracle.

    Returns:
        1 - (tr Cov(g, g*))² / (tr Cov(g) tr Cov(g*)); None where one of them has no noise.

    Example:
        >>> noise = np.array([[4.0, 3.0], [3.0, 9.0]])
        >>> noise_added(GradientMoments(np.eye(2), noise), 0, 1)
        0.75
    """
    n = moments.noise
    shared = _over_lengths(n[arm, oracle], n[arm, arm], n[oracle, oracle])
    return None if shared is None else 1.0 - shared**2


def likeness(moments: GradientMoments, arm: int, other: int) -> float | None:
    """How alike two rewards move the policy, batch by batch.

    Where one is a linear function of the other over the posteriors that occur, to first order, it
    is 1: then the two differ in scale, and in nothing that is told here.

    Args:
        moments: of gradients of one batch.
        arm: one of them.
        other: the other.

    Returns:
        E<g, h> / sqrt(E|g|² E|h|²); None where one of them is always zero.

    Example:
        >>> likeness(GradientMoments(np.ones((2, 2)), 3 * np.ones((2, 2))), 0, 1)
        1.0
    """
    both = moments.signal + moments.noise
    return _over_lengths(both[arm, other], both[arm, arm], both[other, other])


def _ratio(above: float, below: float) -> float | None:
    return float(above / below) if below > 0.0 else None


def _over_lengths(product: float, first: float, second: float) -> float | None:
    if first <= 0.0 or second <= 0.0:
        return None
    return float(product / math.sqrt(first) / math.sqrt(second))
