"""Discriminator noise, measured: the online discriminator beside an oracle on the same glimpses."""

from pathlib import Path

import numpy as np

from irrl.nn.models import device_to_look
from irrl.noise_measured import Posteriors
from irrl.runs.run import Run
from irrl.tasks.digits.data import CLASSES, canvases_with_test_digits, layout_of
from irrl.tasks.digits.evaluate import play_without_chance
from irrl.tasks.digits.extensions.config import DigitsConfig
from irrl.tasks.digits.learner import read_oracle, restored_models
from irrl.tasks.digits.losses import oracle_log_probs


def measure_noise(
    run: Run[DigitsConfig], oracle_folder: Path, episodes: int, checkpoints: int
) -> list[Posteriors]:
    """Posteriors by both at some checkpoints of a run, early to late, on test canvases."""
    config = run.config
    device = device_to_look(config.device)
    oracle = read_oracle(oracle_folder, config, device)
    canvases = canvases_with_test_digits(config.seed, layout_of(config), episodes)
    everyone = np.arange(episodes)
    found = []
    for checkpoint in run.some_checkpoints(checkpoints):
        models = restored_models(config, checkpoint.arrays, device)
        trajectory, online = play_without_chance(config, *models, canvases)
        both = (online, oracle_log_probs(config, oracle, trajectory))
        log_probs = (trajectory.last(x).cpu().numpy() for x in both)
        by_online, by_oracle = (np.exp(x[everyone, canvases.labels]) for x in log_probs)
        found.append(Posteriors(checkpoint.step, by_online, by_oracle, 1.0 / CLASSES))
    return found
