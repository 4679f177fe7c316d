"""What an immature reward model that regresses does to the reward, in theory.

The reward model reports the mean ``m + a`` and the log-variance ``v + b`` instead of those of the
true posterior, a normal; a and b are normal and independent (`NormalNoise`). The reward then
carries noise eps, the reward as reported less that of the truth, in one dimension. Two ways to
get its moments, for each reward of `irrl.density_rewards`, as `irrl.noise` does for the others:

* `taylor_noise`: second-order expansion in a and b, from derivatives at the truth;
* `exact_noise`: quadrature over a and b.

Both at one label, or over labels drawn from the true posterior. Let a posterior of standard
deviation ``s`` have noise of standard deviation ``t`` in its mean alone, both in prior standard
deviations. Over labels the mean of eps is then

* ``density-log``: ``-t^2 / (2 s^2)``: without bound, the larger the surer the posterior;
* ``crps``: ``-2 s (sqrt(1 + t^2 / (2 s^2)) - 1) / sqrt(pi)``: never below ``-t sqrt(2 / pi)``;
* ``ball``: the mass within epsilon falls from that of a normal of variance ``2 s^2`` to that of one
  of variance ``2 s^2 + t^2``: never below -1.

Everything is NumPy in double precision.
"""

import math
from dataclasses import dataclass

import numpy as np

from irrl._quadrature import REACH, Floats, crowded, differences, normal_rule, roots
from irrl.densities import Normal, Uniform
from irrl.density_rewards import DensityReward, density_reward
from irrl.noise import RewardNoise

__all__ = ["NormalNoise", "exact_noise", "taylor_noise"]

_STEP = 1e-2  # of five-point differences, in posterior standard deviations


@dataclass(frozen=True)
class NormalNoise:
    """Noise of a normal density's parameters: independent, normal, in units of the label.

    Attributes:
        mean: standard deviation of the error of the mean.
        log_var: standard deviation of the error of the log-variance.
        mean_bias: mean error of the mean.
        log_var_bias: mean error of the log-variance; below zero for a model too sure of itself.

    Example:
        >>> NormalNoise(mean=0.2, log_var=0.5).log_var_bias
        0.0
    """

    mean: float = 0.1
    log_var: float = 0.2
    mean_bias: float = 0.0
    log_var_bias: float = 0.0

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name, value in vars(self).items():
            if not math.isfinite(value) or (value < 0 and not name.endswith("bias")):
                kind = "finite" if name.endswith("bias") else "finite and not negative"
                raise ValueError(f"{name} must be {kind}, got {value}")


def taylor_noise(
    reward_fn: str | DensityReward,
    posterior: Normal,
    noise: NormalNoise,
    prior: Normal | Uniform,
    label: float | None = None,
) -> RewardNoise:
    """Bias and variance of the reward noise, to second order in the errors.

    With gradient g, second derivatives H and errors x of mean c and variances S, the noise is
    ``g x + x H x / 2``; its mean is ``g c + c H c / 2 + tr(H S) / 2``, its variance
    ``(g + H c) S (g + H c) + tr(H S H S) / 2``. A clipped reward has no slope where it is zero.
    Over labels its kinks add to the bias at the same order: each the density of the label there
    times ``E[(g x)^2] / 2`` over the slope in the label.

    Args:
        reward_fn: a reward of densities or its name.
        posterior: the true one, two numbers.
        noise: of its parameters.
        prior: of the label, two numbers.
        label: a number; None for labels drawn from the true posterior.

    Returns:
        The noise. Over labels the variance is that over labels and errors.

    Example:
        >>> noise, prior = NormalNoise(mean=0.1, log_var=0.0), Normal(0.0, 1.0)
        >>> round(taylor_noise("density-log", Normal(0.0, 0.5), noise, prior).bias, 6)
        -0.02
    """
    found, mean, std, prior = _accept(reward_fn, posterior, prior, label)
    y, weight, kinks = _labels(found, mean, std, prior, label)
    c = np.array([noise.mean_bias, noise.log_var_bias])
    S = np.array([noise.mean**2, noise.log_var**2])
    g, H = _derivatives(found, mean, std, y, prior)
    if found.clipped:
        sloped = _plain(found, mean, std, y, prior) > 0.0
        g, H = g * sloped[:, None], H * sloped[:, None, None]
    Hc = H @ c
    bias = g @ c + 0.5 * Hc @ c + 0.5 * np.einsum("nii,i->n", H, S)
    variance = (g + Hc) ** 2 @ S + 0.5 * np.einsum("nij,nij,i,j->n", H, H, S, S)
    result = _over_labels(bias, variance + bias**2, weight)
    if kinks.size == 0:
        return result
    g, _ = _derivatives(found, mean, std, kinks, prior)
    h = 1e-4 * std
    around = [_plain(found, mean, std, kinks + sign * h, prior) for sign in (-1, 1)]
    slope = np.abs(around[1] - around[0]) / (2.0 * h)
    density = np.exp(Normal(mean, std).log_density(np, kinks))
    at_kinks = float(np.sum(0.5 * density * (g**2 @ S + (g @ c) ** 2) / slope))
    return RewardNoise(result.bias + at_kinks, result.variance)


def exact_noise(
    reward_fn: str | DensityReward,
    posterior: Normal,
    noise: NormalNoise,
    prior: Normal | Uniform,
    label: float | None = None,
) -> RewardNoise:
    """Bias and variance of the reward noise, by quadrature over the errors.

    Good to five digits where the reward is smooth, to three where it is clipped, as long as the
    errors of the mean are not some hundred times as wide as the posterior.

    Args:
        reward_fn: a reward of densities or its name.
        posterior: the true one, two numbers.
        noise: of its parameters.
        prior: of the label, two numbers.
        label: a number; None for labels drawn from the true posterior.

    Returns:
        The noise. Over labels the variance is that over labels and errors.

    Example:
        >>> noise, prior = NormalNoise(mean=0.1, log_var=0.0), Normal(0.0, 1.0)
        >>> round(exact_noise("crps", Normal(0.0, 0.5), noise, prior).bias, 6)
        -0.005614
    """
    found, mean, std, prior = _accept(reward_fn, posterior, prior, label)
    y, weight, _ = _labels(found, mean, std, prior, label)
    fine = 1 if label is None else 2  # labels, too, even out what a kink does to the rule
    reach = found.epsilon * float(np.squeeze(prior.spread(np)))
    a, weight_a = _errors_of_mean(y - mean, reach, noise, 24 * fine)
    nodes = 32 * fine if noise.mean > 0.0 else 640  # a kink that no error of the mean evens out
    b, weight_b = normal_rule(noise.log_var_bias, noise.log_var, nodes)
    reported = mean + a[:, :, None], std * np.exp(0.5 * b)
    eps = _plain(found, *reported, y[:, None, None], prior)
    true = _plain(found, mean, std, y, prior)
    if found.clipped:
        eps, true = np.maximum(eps, 0.0), np.maximum(true, 0.0)
    eps = eps - true[:, None, None]
    bias, square = (np.einsum("nab,na,b->n", x, weight_a, weight_b) for x in (eps, eps**2))
    return _over_labels(bias, square, weight)


def _accept(
    reward_fn: str | DensityReward,
    posterior: Normal,
    prior: Normal | Uniform,
    label: float | None,
) -> tuple[DensityReward, float, float, Normal | Uniform]:
    found = density_reward(reward_fn)
    if not isinstance(posterior, Normal):
        raise ValueError(f"posterior must be a Normal, got {type(posterior).__name__}")
    if not isinstance(prior, Normal | Uniform):
        raise ValueError(f"prior must be a Normal or a Uniform, got {type(prior).__name__}")
    like = np.zeros(1)
    posterior, prior = (
        posterior.accept(np, "posterior", like, True),
        prior.accept(np, "prior", like, True),
    )
    for density, name in ((posterior, "posterior"), (prior, "prior")):
        if any(x.size != 1 for x in density.arrays().values()):
            raise ValueError(f"{name} must be of one dimension")
    if label is not None and not math.isfinite(label):
        raise ValueError(f"label must be a finite number, got {label}")
    return found, float(np.squeeze(posterior.mean)), float(np.squeeze(posterior.std)), prior


def _plain(
    found: DensityReward,
    mean: float | Floats,
    std: float | Floats,
    y: Floats,
    prior: Normal | Uniform,
) -> Floats:
    """Rewards before clipping."""
    reported = Normal(np.asarray(mean)[..., None], np.asarray(std)[..., None])
    rewards: Floats = found.compare(np, reported, y[..., None], prior, found.epsilon)
    return rewards


def _derivatives(
    found: DensityReward, mean: float, std: float, y: Floats, prior: Normal | Uniform
) -> tuple[Floats, Floats]:
    """Gradient and second derivatives in mean and log-variance, before clipping."""

    def at(i: int, j: int) -> Floats:
        return _plain(found, mean + i * _STEP * std, std * math.exp(0.5 * j * _STEP), y, prior)

    unit = np.array([_STEP * std, _STEP])
    steps = (-2, -1, 0, 1, 2)
    along = [differences([at(i, 0) for i in steps]), differences([at(0, j) for j in steps])]
    mixed = 0.25 * (at(1, 1) - at(1, -1) - at(-1, 1) + at(-1, -1))
    g = np.stack([along[0][0], along[1][0]], axis=-1) / unit
    H = np.stack([along[0][1], mixed, mixed, along[1][1]], axis=-1).reshape(-1, 2, 2)
    return g, H / (unit[:, None] * unit)


def _labels(
    found: DensityReward, mean: float, std: float, prior: Normal | Uniform, label: float | None
) -> tuple[Floats, Floats, Floats]:
    """Labels, their weights, and where among them a clipped reward has its kinks.

    Labels of the true posterior that the prior rules out are left out. Nodes crowd at the kinks.
    """
    low, high = mean - REACH * std, mean + REACH * std
    if isinstance(prior, Uniform):
        low, high = max(low, float(np.squeeze(prior.low))), min(high, float(np.squeeze(prior.high)))
    if low >= high or (label is not None and not bool(np.all(prior.holds(np, np.array([label]))))):
        raise ValueError("prior gives no mass to the label")
    none = np.empty(0)
    if label is not None:
        return np.array([float(label)]), np.ones(1), none
    kinks = none
    if found.clipped:
        kinks = roots(lambda y: _plain(found, mean, std, y, prior), np.linspace(low, high, 2001))
    edges = np.array([low, *kinks, high] if kinks.size else [low, mean, high])
    y, weight = crowded(edges[:-1, None], edges[1:, None], 48)
    density = np.exp(Normal(mean, std).log_density(np, y))
    weights = (weight * density).ravel()
    return y.ravel(), weights / weights.sum(), kinks


def _errors_of_mean(
    away: Floats, reach: float, noise: NormalNoise, nodes: int
) -> tuple[Floats, Floats]:
    """Errors of the mean for labels so far away from it.

    Nodes crowd where the mean meets the label or an end of its ball.
    """
    if noise.mean == 0.0:
        return np.full((away.size, 1), noise.mean_bias), np.ones((away.size, 1))
    low, high = (noise.mean_bias + sign * REACH * noise.mean for sign in (-1, 1))
    ends = np.stack([0 * away + x for x in (low, noise.mean_bias, high)]
                    + [np.clip(away + x, low, high) for x in (-reach, 0.0, reach)])  # fmt: skip
    ends = np.sort(ends, axis=0)
    a, weight = crowded(ends[:-1, :, None], ends[1:, :, None], nodes)
    a, weight = (np.concatenate(list(x), axis=-1) for x in (a, weight))
    weight = weight * np.exp(-0.5 * ((a - noise.mean_bias) / noise.mean) ** 2)
    return a, weight / weight.sum(axis=-1, keepdims=True)


def _over_labels(bias: Floats, square: Floats, weight: Floats) -> RewardNoise:
    mean = float(weight @ bias)
    return RewardNoise(mean, float(weight @ square) - mean**2)
