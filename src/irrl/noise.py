"""What an immature discriminator does to the reward: theory (Sec. 4, App. A.1), measurement.

The discriminator reports q = p + delta instead of the true posterior p = p(y | trajectory).
The reward then carries noise eps = g(q) - g(p), whose mean is the bias of the reward. Two ways
to get its moments, for any reward that is a function of the posterior:

* ``taylor_noise``: the paper's second-order expansion (Eq. 5 and 6), from moments of delta;
* ``exact_noise``: quadrature over a distribution of delta, truncated to 0 <= p + delta <= 1.

Where posteriors of both an online discriminator and an oracle are at hand, ``describe_delta`` tests
the paper's hypotheses about delta, and ``measured_noise`` and ``predicted_noise`` put the reward's
noise beside what the expansion makes of the measured moments of delta.

Everything is NumPy in double precision.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from irrl.errors import unknown_name
from irrl.rewards import Reward, reward
from irrl.runs.seeding import stream

Floats = NDArray[np.float64]

DENSITIES: dict[str, Callable[[Floats], Floats]] = {
    "normal": lambda z: np.exp(-0.5 * z**2),
    "laplace": lambda z: np.exp(-math.sqrt(2.0) * np.abs(z)),
    "uniform": lambda z: (np.abs(z) <= math.sqrt(3.0)).astype(float),
}
"""Densities of delta / scale, up to a factor, each of unit standard deviation."""

_TAIL = {"normal": 10.0, "laplace": 26.0, "uniform": math.sqrt(3.0)}
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(160)


@dataclass(frozen=True)
class Moments:
    """Moments of the discriminator noise delta."""

    mean: float
    second: float
    third: float
    fourth: float

    @property
    def variance(self) -> float:
        return self.second - self.mean**2

    @property
    def variance_of_square(self) -> float:
        return self.fourth - self.second**2

    @property
    def covariance_with_square(self) -> float:
        """Cov[delta, delta^2], zero for symmetric noise of zero mean."""
        return self.third - self.mean * self.second


@dataclass(frozen=True)
class RewardNoise:
    """Bias (mean) and variance of the reward noise eps."""

    bias: float
    variance: float

    @property
    def deviation(self) -> float:
        return math.sqrt(max(self.variance, 0.0))


@dataclass(frozen=True)
class DeltaNoise:
    """Zero-mean symmetric noise of a family and scale, cut to where p + delta is a probability.

    The cut is what makes noise near p = 0 or p = 1 neither symmetric nor centred.
    """

    family: str = "normal"
    scale: float = 0.05

    def __post_init__(self) -> None:
        if self.family not in DENSITIES:
            raise ValueError(unknown_name("noise family", self.family, DENSITIES))
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise ValueError(f"scale must be a positive number, got {self.scale}")

    def quadrature(self, posterior: float, kinks: tuple[float, ...] = ()) -> tuple[Floats, Floats]:
        """Nodes q and normalised weights of a rule for the distribution of q = p + delta.

        Composite Gauss-Legendre, split at the centre of the noise and at ``kinks`` of the
        integrand; nodes crowd towards 0, where logarithms and roots are singular.
        """
        _check_probability("posterior", posterior)
        reach = _TAIL[self.family] * self.scale
        low, high = max(0.0, posterior - reach), min(1.0, posterior + reach)
        inner = sorted({posterior, *kinks})
        edges = [low, *(k for k in inner if low < k < high), high]
        nodes, weights = [], []
        for a, b in itertools.pairwise(edges):
            u = 0.5 * (_NODES + 1.0)
            nodes.append(a + (b - a) * u**4)
            weights.append((b - a) * 4.0 * u**3 * 0.5 * _WEIGHTS)
        q = np.concatenate(nodes)
        mass = np.concatenate(weights) * DENSITIES[self.family]((q - posterior) / self.scale)
        return q, mass / mass.sum()

    def moments(self, posterior: float) -> Moments:
        q, mass = self.quadrature(posterior)
        delta = q - posterior
        return Moments(*(float(np.sum(mass * delta**n)) for n in (1, 2, 3, 4)))


def slopes(name: str | Reward, posterior: ArrayLike, prior: float = 0.1) -> tuple[Floats, Floats]:
    """First and second derivative of a reward with respect to the posterior.

    At the prior, where the slope of a clipped reward jumps, those from above. Five-point
    differences: exact to about nine digits, and a new reward needs no derivatives of its own.
    """
    paid = _of_posterior(name)
    p = np.asarray(posterior, dtype=float)
    h = 1e-3 * p
    centre = p
    if paid.has_kink:  # keep the five points on one side
        near = np.abs(p - prior) < 2 * h
        centre = np.where(near, np.where(p >= prior, prior + 2 * h, prior - 2 * h), p)

    def g(steps: int) -> Floats:
        return paid.gain(np, np.log(centre + steps * h), math.log(prior))

    first = (8.0 * (g(1) - g(-1)) - (g(2) - g(-2))) / (12.0 * h)
    second = (16.0 * (g(1) + g(-1)) - (g(2) + g(-2)) - 30.0 * g(0)) / (12.0 * h**2)
    return first, second


def slope_at_prior(name: str | Reward, prior: float) -> float:
    """Slope of a reward just above the prior, where learning starts."""
    gain = _of_posterior(name).gain
    h = 1e-5 * prior
    g = [float(gain(np, np.log(prior + n * h), math.log(prior))) for n in range(3)]
    return (-3.0 * g[0] + 4.0 * g[1] - g[2]) / (2.0 * h)


def taylor_noise(
    name: str | Reward, posterior: float, moments: Moments, prior: float = 0.1
) -> RewardNoise:
    """Bias and variance of the reward noise to second order in delta (Eq. 5 and 6)."""
    _check_probability("posterior", posterior)
    _check_probability("prior", prior)
    first, second = (float(d) for d in slopes(name, posterior, prior))
    bias = first * moments.mean + 0.5 * second * moments.second
    variance = (
        first**2 * moments.variance
        + (0.5 * second) ** 2 * moments.variance_of_square
        + first * second * moments.covariance_with_square
    )
    return RewardNoise(bias, variance)


def exact_noise(
    name: str | Reward, posterior: float, noise: DeltaNoise, prior: float = 0.1
) -> RewardNoise:
    """Bias and variance of the reward noise, by quadrature over the distribution of delta."""
    _check_probability("prior", prior)
    paid = _of_posterior(name)
    q, mass = noise.quadrature(posterior, kinks=(prior,))
    log_p = math.log(prior)
    true = paid.gain(np, np.asarray(math.log(posterior)), log_p)
    eps = paid.gain(np, np.log(q), log_p) - true
    bias = float(np.sum(mass * eps))
    return RewardNoise(bias, float(np.sum(mass * (eps - bias) ** 2)))


def expansion_valid_from(
    name: str | Reward,
    noise: DeltaNoise,
    prior: float = 0.1,
    tolerance: float = 0.1,
    grid: ArrayLike | None = None,
) -> float | None:
    """The smallest posterior from which on the expansion can be trusted, up to 1 - 2 scales.

    Trusted means: its bias and its deviation are both within ``tolerance`` of the exact ones,
    in units of the exact deviation. None if it fails even at the top of the grid.
    """
    if grid is None:
        grid = np.linspace(0.01, max(1.0 - 2.0 * noise.scale, 0.02), 99)
    valid_from = None
    for p in np.sort(np.asarray(grid, dtype=float))[::-1]:
        exact = exact_noise(name, float(p), noise, prior)
        taylor = taylor_noise(name, float(p), noise.moments(float(p)), prior)
        worst = max(abs(taylor.bias - exact.bias), abs(taylor.deviation - exact.deviation))
        if worst > tolerance * exact.deviation:
            break
        valid_from = float(p)
    return valid_from


def theory_table(
    names: Sequence[str], noise: DeltaNoise, prior: float, posteriors: Sequence[float] = (0.3, 0.6)
) -> list[list[str]]:
    """Rows of text: exact and expanded bias and deviation, and where the expansion holds."""
    rows = []
    for name in names:
        valid_from = expansion_valid_from(name, noise, prior)
        valid = "nowhere" if valid_from is None else f"p >= {valid_from:.2f}"
        for p in sorted({prior, *posteriors, 0.9}):
            exact = exact_noise(name, p, noise, prior)
            expanded = taylor_noise(name, p, noise.moments(p), prior)
            figures = (exact.bias, expanded.bias, exact.deviation, expanded.deviation)
            rows.append([name, f"{p:.2f}", *(f"{x:.5f}" for x in figures), valid])
    return rows


# --- measurement ---


@dataclass(frozen=True)
class DeltaSummary:
    """A sample of delta, and how far it bears out the hypotheses of zero mean and symmetry."""

    samples: int
    mean: float
    deviation: float
    skewness: float
    p_zero_mean: float  # of a mean at least as far from zero, were the true one zero
    p_symmetric: float  # of an asymmetry at least as large, were delta symmetric about zero

    def to_json(self) -> dict[str, float]:
        return vars(self).copy()


def describe_delta(delta: ArrayLike, resamples: int = 2_000) -> DeltaSummary:
    """Moments of measured noise, with tests of the paper's hypotheses (Sec. 4.1).

    Zero mean: a z test. Symmetry, about zero: the distance between the distributions of the noise
    and of its mirror image, compared with that of samples whose signs are drawn anew. That test is
    exact for any symmetric noise; one about the sample mean is not where noise has a spike.
    """
    sample = np.asarray(delta, dtype=float)
    if sample.ndim != 1 or sample.size < 10:
        raise ValueError(f"delta must hold at least 10 numbers, got shape {sample.shape}")
    mean, deviation = float(sample.mean()), float(sample.std(ddof=1))
    if deviation == 0.0:
        return DeltaSummary(sample.size, mean, 0.0, 0.0, float(mean == 0.0), 1.0)
    z = abs(mean) / (deviation / math.sqrt(sample.size))
    centred = sample - mean
    signs = np.sign(sample)[np.argsort(-np.abs(sample))]
    flips = stream(0, "evaluation").choice([-1.0, 1.0], (resamples, sample.size))
    rarer = np.count_nonzero(_asymmetry(flips * np.abs(signs)) >= _asymmetry(signs))
    return DeltaSummary(
        sample.size,
        mean,
        deviation,
        float(np.mean(centred**3) / np.mean(centred**2) ** 1.5),
        math.erfc(z / math.sqrt(2.0)),
        float((1 + rarer) / (1 + resamples)),
    )


def _asymmetry(signs: NDArray) -> Any:
    """Squared distance between F(x) and 1 - F(-x), from the signs of a sample, largest first."""
    return np.sum(np.cumsum(signs, axis=-1) ** 2, axis=-1)


def measured_noise(
    name: str | Reward, online: ArrayLike, oracle: ArrayLike, prior: float = 0.1
) -> RewardNoise:
    """Bias and variance of the reward noise, for posteriors of the same labels by both."""
    gain = _of_posterior(name).gain
    online, oracle = _posteriors(online), _posteriors(oracle)
    log_p = math.log(prior)
    eps = gain(np, np.log(online), log_p) - gain(np, np.log(oracle), log_p)
    return RewardNoise(float(eps.mean()), float(eps.var()))


def predicted_noise(
    name: str | Reward,
    online: ArrayLike,
    oracle: ArrayLike,
    prior: float = 0.1,
    bins: int = 20,
) -> RewardNoise:
    """The same by the expansion (Eq. 5 and 6), from the moments of delta in bins of the oracle's.

    The expansion is about one true posterior. Samples are therefore sorted by the oracle's and cut
    into bins of equal number; each has its own moments, and variances add up as they should.
    """
    online, oracle = _posteriors(online), _posteriors(oracle)
    order = np.argsort(oracle, kind="stable")
    parts, weights = [], []
    for part in np.array_split(order, min(bins, len(order))):
        delta = online[part] - oracle[part]
        moments = Moments(*(float(np.mean(delta**n)) for n in (1, 2, 3, 4)))
        centre = float(np.clip(oracle[part].mean(), 1e-9, 1.0 - 1e-9))
        parts.append(taylor_noise(name, centre, moments, prior))
        weights.append(len(part) / len(order))
    bias = sum(w * part.bias for w, part in zip(weights, parts, strict=True))
    variance = sum(
        w * (part.variance + (part.bias - bias) ** 2)
        for w, part in zip(weights, parts, strict=True)
    )
    return RewardNoise(bias, variance)


def _posteriors(values: ArrayLike) -> Floats:
    array = np.asarray(values, dtype=float)
    if array.ndim != 1 or not np.all((array >= 0.0) & (array <= 1.0)):
        raise ValueError("posteriors must be a row of probabilities")
    return np.maximum(array, 1e-12)


def _of_posterior(name: str | Reward) -> Reward:
    paid = reward(name) if isinstance(name, str) else name
    if paid.shape is None:
        raise ValueError(
            f"reward {paid.name!r} is not a function of the label's posterior alone; "
            "its noise can be measured, not expanded"
        )
    return paid


def _check_probability(name: str, value: float) -> None:
    if not 0.0 < value < 1.0:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {value}")
