"""How well a discriminator alone filters: LightDark, a scripted walk to the light, no policy.

    python experiments/regression/filtering.py        two minutes on one core

Squared errors per step in prior variances, of episodes that do not leave the square: of a particle
filter that knows the motion, and of a GRU that learns by each of several losses.
"""

import argparse

import numpy as np
import torch
from gymnasium.spaces import Box, Dict

from irrl import Continuous, RewardModel
from irrl.densities import Uniform
from irrl.reward_model.store import Batch
from irrl.runs.config import share_left

LIGHT, HEIGHT, NOISE, STRIDE, STEPS = np.array([0.0, -0.7]), 0.2, 0.3, 0.15, 50
SPACE = Dict({"place": Box(-2.0, 2.0, (2,)), "action": Box(-1.0, 1.0, (2,))})
PLACE = Continuous((2,), Uniform(-1.0, 1.0), moves=True)
BATCH = 64


def noise_at(place: np.ndarray) -> np.ndarray:
    """The standard deviation of what is seen at places ``(..., 2)``."""
    return NOISE * (1.0 - HEIGHT**2 / (((place - LIGHT) ** 2).sum(axis=-1) + HEIGHT**2))


def stride(action: np.ndarray) -> np.ndarray:
    return STRIDE * action / np.maximum(1.0, np.linalg.norm(action, axis=-1, keepdims=True))


def walk(count: int, random: np.random.Generator) -> Batch:
    """Episodes that go where a simple filter believes the light to be, with noise."""
    place = random.uniform(-1.0, 1.0, (count, 2))
    believed, variance = np.zeros((count, 2)), np.full(count, 1.0 / 3.0)
    action, inside = np.zeros((count, 2)), np.ones(count, bool)
    seen, taken, places = [], [], []
    for step in range(STEPS):
        noise = random.normal(size=(count, 2)) * noise_at(place)[:, None]
        observed = (place + noise).clip(-2, 2)
        seen.append(observed), taken.append(action), places.append(place)
        about = noise_at((believed if step else observed).clip(-1, 1)) ** 2 + 1e-4
        gain = variance / (variance + about)
        believed, variance = believed + gain[:, None] * (observed - believed), variance * (1 - gain)
        wanted = (LIGHT - believed) / STRIDE + 0.37 * random.normal(size=(count, 2))
        action = wanted.clip(-1, 1)
        place, believed = place + stride(action), believed + stride(action)
        inside &= (np.abs(place) < 1).all(axis=1)
    parts = {"place": np.array(seen, np.float32), "action": np.array(taken, np.float32)}
    kept = {name: array[:, inside] for name, array in parts.items()}
    labels = np.array(places, np.float32)[:, inside]
    return Batch(kept, np.full(labels.shape[1], STEPS), labels)


def filtered(batch: Batch, particles: int = 1_000) -> np.ndarray:
    """Means of a particle filter ``(T, B, 2)``; what is lost by resampling is drawn anew nearby."""
    random, (steps, count, _) = np.random.default_rng(0), batch.labels.shape
    at, logs = random.uniform(-1.0, 1.0, (count, particles, 2)), np.zeros((count, particles))
    means = np.zeros((steps, count, 2))
    for step in range(steps):
        at = at + stride(batch.observations["action"][step])[:, None] * (step > 0)
        std = noise_at(at) + 5e-4
        away = ((batch.observations["place"][step][:, None] - at) ** 2).sum(axis=-1)
        logs = logs - away / 2 / std**2 - 2 * np.log(std) - 50.0 * (np.abs(at) >= 1).any(axis=-1)
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        means[step] = (weights[..., None] * at).sum(axis=1)
        spread = np.sqrt((weights[..., None] * (at - means[step][:, None]) ** 2).sum(axis=1))
        for n in np.nonzero(1.0 / (weights**2).sum(axis=1) < particles / 2)[0]:
            chosen = at[n][random.choice(particles, particles, p=weights[n])]
            near = 0.2 * (spread[n] + 1e-3) * random.normal(size=(particles, 2))
            at[n] = means[step, n] + 0.98 * (chosen - means[step, n]) + near
            logs[n] = 0.0
    return means


def error_of(means: np.ndarray, labels: np.ndarray) -> float:
    return float(3.0 * ((means - labels) ** 2).mean())


def learned(train: Batch, test: Batch, batches: int, **settings: float) -> float:
    """The error of a discriminator that learned from some episodes, on others."""
    model = RewardModel(SPACE, PLACE, core="gru", frequencies=0, held_out=0.0, **settings)
    rows = {n: a.swapaxes(0, 1).reshape(-1, 2) for n, a in train.observations.items()}
    model.add_many(rows, train.lengths, train.labels.swapaxes(0, 1).reshape(-1, 2))
    model.discriminator.features.normaliser.settle()
    random = np.random.default_rng(0)
    for done in range(batches):
        model.discriminator.scale_learning_rate(share_left("cosine", done, batches))
        chosen = random.integers(len(train.lengths), size=BATCH)
        model.discriminator.learn(model.store.episodes(chosen))
    with torch.no_grad():
        beliefs = model.discriminator(model.discriminator.to_tensors(test.observations))
    return error_of(model.kind.predictions(model.kind.mixture(beliefs)), test.labels)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--episodes", type=int, default=2_400)
    parser.add_argument("--batches", type=int, default=800)
    options = parser.parse_args()
    torch.set_num_threads(1)
    random = np.random.default_rng(1)
    test, train = walk(600, random), walk(options.episodes, random)
    print(
        f"particle filter                  {error_of(filtered(test), test.labels):.4f}", flush=True
    )
    for width, rate, beta in ((128, 1e-3, 0.0), (128, 1e-3, 0.5), (64, 3e-3, 0.5), (64, 3e-3, 1.0)):
        found = learned(
            train, test, options.batches, width=width, learning_rate=rate, beta_nll=beta
        )
        print(f"width {width:3d}, step {rate}, beta {beta}  {found:.4f}", flush=True)


if __name__ == "__main__":
    main()
