"""What an immature discriminator does to the reward, in theory (Sec. 4, App. A.1).

The discriminator reports q = p + delta instead of the true posterior p = p(y | trajectory).
The reward then carries noise eps = g(q) - g(p), whose mean is the bias of the reward. Two ways
to get its moments, for any reward that is a function of the posterior alone:

* `taylor_noise`: the paper's second-order expansion (Eq. 5 and 6), from moments of delta;
* `exact_noise`: quadrature over a distribution of delta, truncated to 0 <= p + delta <= 1.

`irrl.noise_measured` has the same from posteriors of a discriminator and of an oracle. Everything
is NumPy in double precision.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from irrl.delta_noise import DENSITIES, DeltaNoise, Floats, Moments, require_probability
from irrl.rewards import Reward, reward

__all__ = [
    "DENSITIES",
    "DeltaNoise",
    "Moments",
    "RewardNoise",
    "exact_noise",
    "expansion_valid_from",
    "of_posterior",
    "slope_at_prior",
    "slopes",
    "taylor_noise",
    "theory_rows",
]


@dataclass(frozen=True)
class RewardNoise:
    """Bias (mean) and variance of the reward noise eps.

    Example:
        >>> RewardNoise(bias=0.1, variance=0.25).std
        0.5
    """

    bias: float
    variance: float

    @property
    def std(self) -> float:
        """Its standard deviation."""
        return math.sqrt(max(self.variance, 0.0))


def slopes(
    reward_fn: str | Reward, posterior: ArrayLike, prior: float = 0.1
) -> tuple[Floats, Floats]:
    """First and second derivative of a reward with respect to the posterior.

    At the prior, where the slope of a clipped reward jumps, those from above. Five-point
    differences: exact to about nine digits, and a new reward needs no derivatives of its own.

    Args:
        reward_fn: a reward or its name.
        posterior: above 0, up to 1, any shape.
        prior: of the label.

    Returns:
        Two arrays of the shape of ``posterior``.

    Example:
        >>> first, second = slopes("power-2", 0.5)
        >>> round(float(first), 6), round(float(second), 4)
        (1.0, 2.0)
    """
    reward_fn = of_posterior(reward_fn)
    require_probability("prior", prior)
    p = np.asarray(posterior, dtype=float)
    if not np.all((p > 0.0) & (p <= 1.0)):
        raise ValueError("posterior must hold probabilities above 0")
    h = 1e-3 * p
    centre = p
    if reward_fn.has_kink:  # keep the five points on one side
        near = np.abs(p - prior) < 2 * h
        centre = np.where(near, np.where(p >= prior, prior + 2 * h, prior - 2 * h), p)

    def g(steps: int) -> Floats:
        value: Floats = reward_fn.of_log_posterior(np, np.log(centre + steps * h), math.log(prior))
        return value

    first = (8.0 * (g(1) - g(-1)) - (g(2) - g(-2))) / (12.0 * h)
    second = (16.0 * (g(1) + g(-1)) - (g(2) + g(-2)) - 30.0 * g(0)) / (12.0 * h**2)
    return first, second


def slope_at_prior(reward_fn: str | Reward, prior: float) -> float:
    """Slope of a reward just above the prior, where learning starts.

    Args:
        reward_fn: a reward or its name.
        prior: of the label.

    Returns:
        The slope from above.

    Example:
        >>> round(slope_at_prior("clipped-power-2", 0.25), 6)
        0.5
    """
    of = of_posterior(reward_fn).of_log_posterior
    require_probability("prior", prior)
    h = 1e-5 * prior
    g = [float(of(np, np.log(prior + n * h), math.log(prior))) for n in range(3)]
    return (-3.0 * g[0] + 4.0 * g[1] - g[2]) / (2.0 * h)


def taylor_noise(
    reward_fn: str | Reward, posterior: float, moments: Moments, prior: float = 0.1
) -> RewardNoise:
    """Bias and variance of the reward noise, to second order (Eq. 5 and 6).

    Args:
        reward_fn: a reward or its name.
        posterior: the true one.
        moments: of delta.
        prior: of the label.

    Returns:
        The noise.

    Example:
        >>> round(taylor_noise("log", 0.5, Moments(0.0, 0.01, 0.0, 0.0003)).bias, 6)
        -0.02
    """
    require_probability("posterior", posterior)
    require_probability("prior", prior)
    first, second = (float(d) for d in slopes(reward_fn, posterior, prior))
    bias = first * moments.mean + 0.5 * second * moments.second
    variance = (
        first**2 * moments.variance
        + (0.5 * second) ** 2 * moments.variance_of_square
        + first * second * moments.covariance_with_square
    )
    return RewardNoise(bias, variance)


def exact_noise(
    reward_fn: str | Reward, posterior: float, noise: DeltaNoise, prior: float = 0.1
) -> RewardNoise:
    """Bias and variance of the reward noise, by quadrature over the distribution of delta.

    Args:
        reward_fn: a reward or its name.
        posterior: the true one.
        noise: the distribution of delta.
        prior: of the label.

    Returns:
        The noise.

    Example:
        >>> round(exact_noise("linear", 0.5, DeltaNoise("normal", 0.05)).std, 6)
        0.05
    """
    require_probability("prior", prior)
    of = of_posterior(reward_fn).of_log_posterior
    q, mass = noise.quadrature(posterior, kinks=(prior,))
    log_p = math.log(prior)
    true = of(np, np.asarray(math.log(posterior)), log_p)
    eps = of(np, np.log(q), log_p) - true
    bias = float(np.sum(mass * eps))
    return RewardNoise(bias, float(np.sum(mass * (eps - bias) ** 2)))


def expansion_valid_from(
    reward_fn: str | Reward,
    noise: DeltaNoise,
    prior: float = 0.1,
    tolerance: float = 0.1,
    grid: ArrayLike | None = None,
) -> float | None:
    """The smallest posterior from which on the expansion can be trusted.

    Trusted means: its bias and its standard deviation are both within ``tolerance`` of the exact
    ones, in units of the exact standard deviation.

    Args:
        reward_fn: a reward or its name.
        noise: the distribution of delta.
        prior: of the label.
        tolerance: how far they may be apart.
        grid: posteriors that are tried; up to 1 minus twice the scale of the noise if not given.

    Returns:
        A posterior of the grid; None if the expansion fails even at the top.

    Example:
        >>> round(expansion_valid_from("log", DeltaNoise("normal", 0.05)), 2)
        0.19
    """
    if grid is None:
        grid = np.linspace(0.01, max(1.0 - 2.0 * noise.scale, 0.02), 99)
    valid_from = None
    for p in np.sort(np.asarray(grid, dtype=float))[::-1]:
        exact = exact_noise(reward_fn, float(p), noise, prior)
        taylor = taylor_noise(reward_fn, float(p), noise.moments(float(p)), prior)
        worst = max(abs(taylor.bias - exact.bias), abs(taylor.std - exact.std))
        if worst > tolerance * exact.std:
            break
        valid_from = float(p)
    return valid_from


def theory_rows(
    names: Sequence[str], noise: DeltaNoise, prior: float, posteriors: Sequence[float] = (0.3, 0.6)
) -> list[dict[str, str | float | None]]:
    """Exact and expanded noise of some rewards, and where the expansion holds.

    Args:
        names: of the rewards.
        noise: the distribution of delta.
        prior: of the label.
        posteriors: true ones that are shown beside the prior and 0.9.

    Returns:
        Rows with the keys ``reward``, ``q`` (the posterior without noise), ``bias``, ``std``,
        ``second_order_bias``, ``second_order_std`` and ``valid_from``, a posterior or None.

    Example:
        >>> row = theory_rows(["linear"], DeltaNoise("normal", 0.05), 0.1)[1]
        >>> row["reward"], row["q"], round(row["std"], 3), row["valid_from"]
        ('linear', 0.3, 0.05, 0.01)
    """
    rows: list[dict[str, str | float | None]] = []
    for name in names:
        valid_from = expansion_valid_from(name, noise, prior)
        for q in sorted({prior, *posteriors, 0.9}):
            exact = exact_noise(name, q, noise, prior)
            expanded = taylor_noise(name, q, noise.moments(q), prior)
            rows.append(
                {
                    "reward": name,
                    "q": q,
                    "bias": exact.bias,
                    "second_order_bias": expanded.bias,
                    "std": exact.std,
                    "second_order_std": expanded.std,
                    "valid_from": valid_from,
                }
            )
    return rows


def of_posterior(reward_fn: str | Reward) -> Reward:
    """The reward, if noise of the posterior is all the noise that it has.

    Args:
        reward_fn: a reward or its name.

    Returns:
        The reward.

    Raises:
        ValueError: for ``accuracy`` and ``disdain``, which look at more than the posterior.

    Example:
        >>> of_posterior("log").name
        'log'
    """
    found = reward(reward_fn)
    if not found.of_posterior_alone:
        raise ValueError(
            f"reward {found.name!r} is not a function of the label's posterior alone; "
            "its noise cannot be told from that of the posterior"
        )
    return found
