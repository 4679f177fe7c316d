"""The table of docs/regression.md: what an immature reward model does to rewards of densities.

python evidence/regression_noise.py
"""

import math

import numpy as np

from irrl.densities import Normal
from irrl.density_noise import NormalNoise, exact_noise
from irrl.density_rewards import density_reward

REWARDS = ("density-log", "clipped-density-log", "ball", "crps", "f-le-cam", "f-total-variation")
STD = 0.3  # of the posterior, in prior standard deviations
PLACES = np.linspace(-1.5, 1.5, 7)  # of its mean
NOISES = {
    "moderate": NormalNoise(mean=0.15, log_var=0.5),
    "strong": NormalNoise(mean=0.4, log_var=1.0),
    "strong, too sure": NormalNoise(mean=0.4, log_var=1.0, log_var_bias=-2.0),
}
PRIOR = Normal(0.0, 1.0)


def weights() -> np.ndarray:
    """How likely each place is, where labels have the prior."""
    likely = np.exp(-(PLACES**2) / (2.0 * (1.0 - STD**2)))
    return likely / likely.sum()


def mean_reward(name: str) -> float:
    """Of a model without errors, over labels and places."""
    offsets = STD * np.linspace(-6.0, 6.0, 4001)[:, None]
    likely = np.exp(-(offsets[:, 0] ** 2) / (2.0 * STD**2))
    found = [
        np.average(
            density_reward(name)(
                Normal(np.full_like(offsets, place), np.full_like(offsets, STD)),
                offsets + place,
                PRIOR,
            ),
            weights=likely,
        )
        for place in PLACES
    ]
    return float(weights() @ np.array(found))


def cell(name: str, noise: NormalNoise) -> str:
    """Bias and standard deviation of the reward's noise, as shares of the mean reward."""
    found = [exact_noise(name, Normal(place, STD), noise, PRIOR) for place in PLACES]
    mean = mean_reward(name)
    bias = weights() @ np.array([noise.bias for noise in found])
    std = math.sqrt(weights() @ np.array([noise.variance for noise in found]))
    return f"{bias / mean:.2f} ± {std / mean:.2f}"


def main() -> None:
    print("| reward |", " | ".join(NOISES), "|")
    print("|---" * (len(NOISES) + 1) + "|")
    for name in REWARDS:
        print(f"| `{name}` |", " | ".join(cell(name, noise) for noise in NOISES.values()), "|")


if __name__ == "__main__":
    main()
