"""What a model is worth: right and well-founded answers, moves, the health of its count head."""

from typing import Any

import numpy as np

from irrl.diagnostics import discriminator_health
from irrl.errors import UserError
from irrl.nn.models import Arrays, device_to_look
from irrl.nn.parallel import Map, parts_in_parallel
from irrl.rewards import reward
from irrl.tasks.counting.config import CountingConfig
from irrl.tasks.counting.data import Split, load_split
from irrl.tasks.counting.dataset import Scenes
from irrl.tasks.counting.model import Model
from irrl.tasks.counting.rollout import Trajectory, draw_evaluation, rollout
from irrl.tasks.counting.scene import VIEWS, count_prior
from irrl.tasks.counting.state import restored_model

CHUNK = 50  # scenes at a time


def evaluate(config: CountingConfig, model: Model, split: Split, each: Map = map) -> dict[str, Any]:
    """Metrics of greedy episodes, one for each scene. Changes nothing."""
    draws = draw_evaluation(config, config.seed, np.arange(len(split)))

    def walk(start: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        trajectory = rollout(model, split, draws.part(start, start + CHUNK), greedy=True)
        founded = saw_all_goals(split.scenes, trajectory)
        return trajectory.log_count.cpu().numpy(), trajectory.lengths.cpu().numpy(), founded

    found = each(walk, range(0, len(split), CHUNK))
    log_count, lengths, founded = (np.concatenate(x) for x in zip(*found, strict=True))
    require_finite(log_count)
    right = log_count.argmax(axis=1) == split.labels
    health = discriminator_health(
        log_count, split.labels, reward(config.reward, validate=False), log_prior_of(config)
    )
    return {
        "accuracy": health.pop("discriminator_accuracy"),
        "well_founded": 100.0 * float((right & founded).mean()),
        "moves": float(lengths.mean() - 1.0),
        **health,
    }


def require_finite(log_count: np.ndarray) -> None:
    if not np.isfinite(log_count).all():
        raise UserError(
            "training came apart: its posteriors are not finite; a smaller learning-rate helps"
        )


def log_prior_of(config: CountingConfig) -> np.ndarray:
    return np.log(count_prior(uniform=config.prior == "uniform"))


def saw_all_goals(scenes: Scenes, trajectory: Trajectory) -> np.ndarray:
    """Whether each cube to be counted was to be seen in some view taken, for each episode, (n,).

    To be seen is to show a tenth of what such a cube usually shows, `scene.is_seen`. Where there is
    nothing to be counted, nothing is missing. An answer that is right and passes this is
    well-founded; one that is right and does not is a lucky guess.
    """
    lengths = trajectory.lengths.cpu().numpy()
    taken = np.arange(len(trajectory.views))[:, None] < lengths
    visited = np.zeros((len(lengths), VIEWS), bool)
    steps, episodes = np.nonzero(taken)
    visited[episodes, trajectory.views[steps, episodes]] = True
    chosen = scenes.at(trajectory.scenes)
    visible = chosen.seen & visited[:, :, None]
    return np.all(visible.any(axis=1) | ~chosen.is_goal, axis=1)


def evaluate_arrays(config: CountingConfig, arrays: Arrays) -> dict[str, Any]:
    """Metrics of the arrays of a checkpoint, on the evaluation scenes."""
    device = device_to_look(config.device)
    model = restored_model(config, arrays, device)
    with parts_in_parallel(device, config.parts) as each:
        return evaluate(config, model, load_split(config, "eval"), each)
