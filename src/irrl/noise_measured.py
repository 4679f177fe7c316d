"""What an immature discriminator does to the reward, measured beside an oracle.

Where posteriors of both an online discriminator and an oracle are at hand, `describe_delta` tests
the paper's hypotheses about delta (Sec. 4.1), and `measured_noise` and `predicted_noise` put the
reward's noise beside what the expansion makes of the measured moments of delta.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from irrl.delta_noise import Floats, Moments, require_probability
from irrl.noise import RewardNoise, of_posterior, taylor_noise
from irrl.rewards import Reward


class Posteriors(NamedTuple):
    """Posteriors of the true labels of the same episodes, after a step of training.

    Attributes:
        step: of the training of the online discriminator.
        online: by the discriminator that was learning then, shape ``(n,)``.
        oracle: by a converged one, shape ``(n,)``.
        prior: of each label.

    Example:
        >>> Posteriors(3, np.array([0.5]), np.array([0.75]), 0.1).delta.tolist()
        [-0.25]
    """

    step: int
    online: Floats
    oracle: Floats
    prior: float

    @property
    def delta(self) -> Floats:
        """The discriminator noise, online minus oracle."""
        return self.online - self.oracle


@dataclass(frozen=True)
class DeltaSummary:
    """A sample of delta, and how far it bears out the hypotheses of zero mean and symmetry.

    Attributes:
        samples: how many there are.
        mean: theirs.
        std: their standard deviation.
        skewness: theirs.
        p_zero_mean: chance of a mean at least as far from zero, were the true one zero.
        p_symmetric: chance of an asymmetry at least as large, were delta symmetric about zero.
        resamples: signs were drawn so often: ``p_symmetric`` is at least 1 / (1 + resamples).

    Example:
        >>> describe_delta([0.0] * 10).to_json()["p_zero_mean"]
        1.0
    """

    samples: int
    mean: float
    std: float
    skewness: float
    p_zero_mean: float
    p_symmetric: float
    resamples: int

    def to_json(self) -> dict[str, float]:
        """Its fields by name."""
        return vars(self).copy()


def describe_delta(delta: ArrayLike, resamples: int = 2_000) -> DeltaSummary:
    """Moments of measured noise, with tests of the paper's hypotheses (Sec. 4.1).

    Zero mean: a z test. Symmetry, about zero: the distance between the distributions of the noise
    and of its mirror image, compared with that of samples whose signs are drawn anew. That test is
    exact for any symmetric noise; one about the sample mean is not where noise has a spike.

    Args:
        delta: at least 10 numbers, shape ``(n,)``.
        resamples: how often signs are drawn; always the same ones.

    Returns:
        Moments and the two p values.

    Example:
        >>> round(describe_delta([-0.5, 0.0, 0.5, 1.0, 0.5] * 4).mean, 6)
        0.3
    """
    sample = np.asarray(delta, dtype=float)
    if sample.ndim != 1 or sample.size < 10:
        raise ValueError(f"delta must hold at least 10 numbers, got shape {sample.shape}")
    if not np.isfinite(sample).all():
        raise ValueError("delta must hold finite numbers")
    mean, std = float(sample.mean()), float(sample.std(ddof=1))
    if std == 0.0:
        return DeltaSummary(sample.size, mean, 0.0, 0.0, float(mean == 0.0), 1.0, resamples)
    z = abs(mean) / (std / math.sqrt(sample.size))
    centred = sample - mean
    signs = np.sign(sample)[np.argsort(-np.abs(sample))]
    flips = _generator().choice([-1.0, 1.0], (resamples, sample.size))
    rarer = np.count_nonzero(_asymmetry(flips * np.abs(signs)) >= _asymmetry(signs))
    return DeltaSummary(
        sample.size,
        mean,
        std,
        float(np.mean(centred**3) / np.mean(centred**2) ** 1.5),
        math.erfc(z / math.sqrt(2.0)),
        float((1 + rarer) / (1 + resamples)),
        resamples,
    )


def measured_noise(
    reward_fn: str | Reward,
    online: ArrayLike,
    oracle: ArrayLike,
    prior: float = 0.1,
    weights: ArrayLike | None = None,
) -> RewardNoise:
    """Bias and variance of the reward noise, for posteriors of the same labels by both.

    Args:
        reward_fn: a reward or its name.
        online: posteriors by the discriminator that learns, shape ``(n,)``.
        oracle: posteriors by the oracle, shape ``(n,)``.
        prior: of the labels.
        weights: how much each counts, shape ``(n,)``; all alike if not given.

    Returns:
        The noise.

    Example:
        >>> round(measured_noise("linear", [0.5, 0.75], [0.25, 0.75]).bias, 6)
        0.125
        >>> round(measured_noise("linear", [0.5, 0.75], [0.25, 0.75], weights=[3, 1]).bias, 6)
        0.1875
    """
    of = of_posterior(reward_fn).of_log_posterior
    require_probability("prior", prior)
    online, oracle = _posteriors(online, oracle)
    shares = _shares(weights, len(online))
    log_p = math.log(prior)
    eps = of(np, np.log(online), log_p) - of(np, np.log(oracle), log_p)
    bias = float(shares @ eps)
    return RewardNoise(bias, float(shares @ (eps - bias) ** 2))


def predicted_noise(
    reward_fn: str | Reward,
    online: ArrayLike,
    oracle: ArrayLike,
    prior: float = 0.1,
    bins: int = 20,
    weights: ArrayLike | None = None,
) -> RewardNoise:
    """The same by the expansion (Eq. 5 and 6), from the moments of delta in bins of the oracle's.

    The expansion is about one true posterior. Samples are therefore sorted by the oracle's and cut
    into bins of equal number; each has its own moments, and variances add up as they should.

    Args:
        reward_fn: a reward or its name.
        online: posteriors by the discriminator that learns, shape ``(n,)``.
        oracle: posteriors by the oracle, shape ``(n,)``.
        prior: of the labels.
        bins: at most so many.
        weights: how much each counts, shape ``(n,)``; all alike if not given. Bins then have
            equal weight, as far as one sample does not have more.

    Returns:
        The noise.

    Example:
        >>> round(predicted_noise("linear", [0.5, 0.75], [0.25, 0.75]).bias, 6)
        0.125
    """
    if bins < 1:
        raise ValueError(f"bins must be at least 1, got {bins}")
    online, oracle = _posteriors(online, oracle)
    order = np.argsort(oracle, kind="stable")
    shares = _shares(weights, len(order))
    parts, of_parts = [], []
    for part in _bins(order, bins, None if weights is None else shares):
        delta, share = online[part] - oracle[part], shares[part].sum()
        inside = shares[part] / share
        moments = Moments(*(float(inside @ delta**n) for n in (1, 2, 3, 4)))
        centre = float(np.clip(inside @ oracle[part], 1e-9, 1.0 - 1e-9))
        parts.append(taylor_noise(reward_fn, centre, moments, prior))
        of_parts.append(float(share))
    bias = sum(w * part.bias for w, part in zip(of_parts, parts, strict=True))
    variance = sum(
        w * (part.variance + (part.bias - bias) ** 2)
        for w, part in zip(of_parts, parts, strict=True)
    )
    return RewardNoise(bias, variance)


def _generator() -> np.random.Generator:
    """Always the same signs: looking at noise must not depend on when one looks."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(0, spawn_key=(4,))))


def _asymmetry(signs: Floats) -> Floats:
    """Squared distance between F(x) and 1 - F(-x), from the signs of a sample, largest first."""
    distance: Floats = np.sum(np.cumsum(signs, axis=-1) ** 2, axis=-1)
    return distance


def _shares(weights: ArrayLike | None, count: int) -> Floats:
    """Weights as shares of their sum."""
    if weights is None:
        return np.full(count, 1.0 / count)
    w = np.asarray(weights, dtype=float)
    if w.shape != (count,) or not np.all((w >= 0.0) & (w < np.inf)) or not w.sum() > 0.0:
        raise ValueError(
            f"weights must be {count} finite numbers, none of them negative and not all zero"
        )
    shares: Floats = w / w.sum()
    return shares


def _bins(order: NDArray[np.intp], bins: int, shares: Floats | None) -> list[NDArray[np.intp]]:
    """Samples in order, cut into bins of equal number or, if they differ in it, of equal weight."""
    if shares is None:
        return np.array_split(order, min(bins, len(order)))
    order = order[shares[order] > 0.0]
    middle = np.cumsum(shares[order]) - 0.5 * shares[order]
    number = np.minimum((bins * middle).astype(int), bins - 1)
    return np.split(order, np.flatnonzero(np.diff(number)) + 1)


def _posteriors(online: ArrayLike, oracle: ArrayLike) -> tuple[Floats, Floats]:
    arrays = np.asarray(online, dtype=float), np.asarray(oracle, dtype=float)
    shapes = tuple(x.shape for x in arrays)
    if shapes[0] != shapes[1] or len(shapes[0]) != 1 or shapes[0] == (0,):
        raise ValueError(
            f"posteriors must be two rows of one length, online and oracle: got shapes "
            f"{shapes[0]} and {shapes[1]}"
        )
    if not all(np.all((x >= 0.0) & (x <= 1.0)) for x in arrays):
        raise ValueError("posteriors must be probabilities, none of them NaN")
    return np.maximum(arrays[0], 1e-12), np.maximum(arrays[1], 1e-12)
