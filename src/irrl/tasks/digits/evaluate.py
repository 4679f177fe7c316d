"""How good a model is: accuracy without chance, and the health of its discriminator."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from irrl.diagnostics import discriminator_health
from irrl.nn.heads import mean_disagreement
from irrl.nn.models import device_to_look
from irrl.nn.parallel import Map, parts_in_parallel
from irrl.runs.checkpoint import Checkpoint
from irrl.runs.seeding import stream
from irrl.tasks.digits.config import DIGIT, RamConfig
from irrl.tasks.digits.data import Canvases, canvases_with_test_digits, layout_of
from irrl.tasks.digits.discriminator import Discriminator
from irrl.tasks.digits.extensions.config import DigitsConfig
from irrl.tasks.digits.learner import restored_models
from irrl.tasks.digits.policy import Policy
from irrl.tasks.digits.rollout import Trajectory, rollout

CHUNK = 1_000  # canvases at a time


def evaluate(config: DigitsConfig, checkpoint: Checkpoint) -> dict[str, Any]:
    """Metrics of a checkpoint, on canvases with test digits."""
    device = device_to_look(config.device)
    discriminator, policy = restored_models(config, checkpoint.arrays, device)
    canvases = canvases_with_test_digits(config.seed, layout_of(config), config.test_images)
    with parts_in_parallel(device, config.parts) as each:
        return under("test", evaluate_on(config, discriminator, policy, canvases, each))


def under(prefix: str, metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Metrics named by what they were measured on."""
    return {f"{prefix}_{name}": value for name, value in metrics.items()}


def evaluate_on(
    config: DigitsConfig,
    discriminator: Discriminator,
    policy: Policy,
    canvases: Canvases,
    each: Map = map,
) -> dict[str, Any]:
    """Metrics of episodes without chance, one for each canvas; first locations are the same in
    every evaluation of a run. Changes nothing.
    """

    def look_at(start: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        part = canvases.part(start, start + CHUNK)
        trajectory, log_q = play_without_chance(config, discriminator, policy, part, start)
        log_probs, lengths = trajectory.last(log_q).cpu(), trajectory.lengths.cpu()
        on_digit = share_on_digit(config, trajectory, part.corners)
        with torch.no_grad():
            heads = discriminator.head_log_probs(trajectory.last(trajectory.cache.states))
        return log_probs.numpy(), lengths.numpy(), on_digit, heads.movedim(0, -2).cpu().numpy()

    found = each(look_at, range(0, len(canvases.labels), CHUNK))
    log_probs, lengths, on_digit, heads = (np.concatenate(x) for x in zip(*found, strict=True))
    health = discriminator_health(log_probs, canvases.labels, config.reward_fn(validate=False))
    return {
        "accuracy_percent": health.pop("discriminator_accuracy_percent"),
        "glimpses": float(lengths.mean()),
        "share_on_digit": float(on_digit.mean()),
        **health,
        **mean_disagreement(torch.from_numpy(heads).movedim(-2, 0)),
    }


@torch.no_grad()
def play_without_chance(
    config: DigitsConfig,
    discriminator: Discriminator,
    policy: Policy,
    canvases: Canvases,
    start: int = 0,
    seed: int | None = None,
) -> tuple[Trajectory, Tensor]:
    """Episodes on canvases ``start``, ... of a set, and log q after each glimpse.

    First locations come from the seed of the run, if no other is given.
    """
    device = discriminator.classifier.weight.device
    images = torch.from_numpy(canvases.images).to(device)
    seed = config.seed if seed is None else seed
    first = first_locations(seed, start, len(images)).to(device)
    trajectory = rollout(discriminator, policy, images, first, config.glimpses)
    return trajectory, discriminator.log_probs(trajectory.cache.states)


def first_locations(seed: int, start: int, count: int) -> Tensor:
    uniform = stream(seed, "evaluation").random((start + count, 2), np.float32)
    return torch.from_numpy(2 * uniform[start:] - 1)


def share_on_digit(config: RamConfig, trajectory: Trajectory, corners: np.ndarray) -> np.ndarray:
    """Of each episode, the share of glimpses whose centre lies in the digit's square."""
    pixel = 0.5 * (trajectory.locations.cpu().numpy() + 1.0) * config.canvas_size
    inside = pixel[..., ::-1] - corners  # (glimpses, batch, 2): row, column
    hits = ((inside >= 0) & (inside < DIGIT)).all(axis=-1)
    lengths = trajectory.lengths.cpu().numpy()
    taken = np.arange(len(hits))[:, None] < lengths
    return (hits & taken).sum(axis=0) / lengths
