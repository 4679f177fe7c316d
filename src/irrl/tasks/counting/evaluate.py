"""How good a model is: right and well-founded answers, moves, the health of its count head."""

import numpy as np
import torch

from irrl.diagnostics import discriminator_health, require_finite
from irrl.nn.heads import mean_disagreement, mixture
from irrl.nn.models import device_to_look
from irrl.nn.parallel import Map, parts_in_parallel
from irrl.runs.checkpoint import Checkpoint
from irrl.tasks.contract import Metrics
from irrl.tasks.counting.config import CountingConfig
from irrl.tasks.counting.data import Split, load_split
from irrl.tasks.counting.dataset import Scenes
from irrl.tasks.counting.model import Model
from irrl.tasks.counting.rollout import Trajectory, rollout, sample_evaluation
from irrl.tasks.counting.scene import VIEWS, count_prior
from irrl.tasks.counting.state import restored_model

CHUNK = 50  # scenes at a time


def evaluate(config: CountingConfig, checkpoint: Checkpoint) -> Metrics:
    """Metrics of a checkpoint on the evaluation scenes."""
    split, device = load_split(config, "eval"), device_to_look(config.device)
    model = restored_model(config, checkpoint.arrays, device)
    with parts_in_parallel(device, config.parts) as each:
        return evaluate_model(model, split, checkpoint.step, each)


def evaluate_model(model: Model, split: Split, step: int, each: Map = map) -> Metrics:
    """Metrics of greedy episodes, one for each scene. Changes nothing."""
    config = model.config
    inputs = sample_evaluation(config, config.seed, np.arange(len(split)))

    def play(start: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        trajectory = rollout(model, split, inputs.part(start, start + CHUNK), greedy=True)
        founded = saw_all_goals(split.scenes, trajectory)
        by_scene = trajectory.head_log_counts.movedim(0, 1)  # so that all parts join alike
        return by_scene.cpu().numpy(), trajectory.lengths.cpu().numpy(), founded

    played = each(play, range(0, len(split), CHUNK))
    by_scene, lengths, founded = (np.concatenate(x) for x in zip(*played, strict=True))
    heads = torch.from_numpy(by_scene).movedim(1, 0)
    log_count = mixture(heads).numpy()
    require_finite(step, log_count)
    right = log_count.argmax(axis=1) == split.labels
    reward_fn = config.reward_fn(validate=False)
    health = discriminator_health(log_count, split.labels, reward_fn, log_prior_of(config))
    return {
        "accuracy_percent": health.pop("discriminator_accuracy_percent"),
        "well_founded_percent": 100.0 * float((right & founded).mean()),
        "moves": float(lengths.mean() - 1.0),
        **health,
        **mean_disagreement(heads),
    }


def log_prior_of(config: CountingConfig) -> np.ndarray:
    """log p(count), (7,)."""
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
