"""Discriminator noise, measured: the online discriminator beside an oracle on the same glimpses."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from irrl.runs.checkpoint import checkpoint_paths, load_checkpoint
from irrl.errors import UserError
from irrl.nn.models import device_to_look
from irrl.noise import describe_delta, measured_noise, predicted_noise
from irrl.analysis.plots import colour_of, plt, tidy
from irrl.rewards import REWARDS
from irrl.runs.run import CHECKPOINTS, Run
from irrl.tasks.digits.config import DigitsConfig
from irrl.tasks.digits.data import CLASSES, Canvases, canvases_with_test_digits, layout_of
from irrl.tasks.digits.discriminator import Discriminator
from irrl.tasks.digits.evaluate import play
from irrl.tasks.digits.policy import Policy
from irrl.tasks.digits.state import read_oracle, restored_models
from irrl.tasks.digits.train import oracle_log_probs

PRIOR = 1.0 / CLASSES


class Posteriors(NamedTuple):
    """Of the true labels of the same episodes, after an epoch of training."""

    epoch: int
    online: np.ndarray
    oracle: np.ndarray

    @property
    def delta(self) -> np.ndarray:
        return self.online - self.oracle


def measure(run: Run, oracle_folder: Path, images: int, epochs: int) -> list[Posteriors]:
    """Posteriors by both at some checkpoints of a run, early to late, on test canvases."""
    config = DigitsConfig.from_settings(run.settings)
    device = device_to_look(config.device)
    oracle = read_oracle(oracle_folder, config, device)
    paths = checkpoint_paths(run.folder / CHECKPOINTS)
    if not paths:
        raise UserError(f"{run.folder} has no checkpoint to measure")
    chosen = np.unique(np.linspace(0, len(paths) - 1, min(epochs, len(paths))).round().astype(int))
    canvases = canvases_with_test_digits(config.seed, layout_of(config), images)
    found = []
    for path in (paths[i] for i in chosen):
        checkpoint = load_checkpoint(path)
        models = restored_models(config, checkpoint.arrays, device)
        found.append(_both(config, checkpoint.step, models, oracle, canvases))
    return found


def _both(
    config: DigitsConfig,
    epoch: int,
    models: tuple[Discriminator, Policy],
    oracle: Discriminator,
    canvases: Canvases,
) -> Posteriors:
    trajectory, online = play(config, *models, canvases)
    judged = oracle_log_probs(config, oracle, trajectory)
    each = np.arange(len(canvases.labels))
    pair = (trajectory.last(log_probs).cpu().numpy() for log_probs in (online, judged))
    return Posteriors(epoch, *(np.exp(p[each, canvases.labels]) for p in pair))


def delta_rows(found: Sequence[Posteriors]) -> list[dict[str, Any]]:
    return [{"epoch": f.epoch, **describe_delta(f.delta).to_json()} for f in found]


def reward_rows(found: Sequence[Posteriors], names: Sequence[str]) -> list[dict[str, Any]]:
    """Measured bias and deviation of each reward, and what the second order predicts."""
    rows = []
    for f in found:
        for name in names:
            measured = measured_noise(name, f.online, f.oracle, PRIOR)
            predicted = predicted_noise(name, f.online, f.oracle, PRIOR)
            rows.append(
                {
                    "epoch": f.epoch,
                    "reward": name,
                    "bias": measured.bias,
                    "predicted_bias": predicted.bias,
                    "deviation": measured.deviation,
                    "predicted_deviation": predicted.deviation,
                }
            )
    return rows


def violin_figure(groups: dict[str, list[Posteriors]]) -> Figure:
    """Violins of delta over epochs, a panel for each run (fig:noisy-visualization-log and -acc)."""
    figure, panels = plt.subplots(
        1, len(groups), figsize=(4.2 * len(groups) + 0.6, 3.4), sharey=True, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for axes, (name, found) in zip(panels[0], groups.items(), strict=True):
        places = np.arange(len(found))
        colour = colour_of(name) if name in REWARDS else "0.4"
        parts = axes.violinplot([f.delta for f in found], places, widths=0.8, showextrema=False)
        for body in parts["bodies"]:
            body.set(facecolor=colour, edgecolor=colour, alpha=0.45)
        for place, f in zip(places, found, strict=True):
            low, quarter, three, high = _box(f.delta)
            axes.vlines(place, low, high, color="0.2", lw=0.8)
            axes.vlines(place, quarter, three, color="0.2", lw=4)
            axes.hlines(f.delta.mean(), place - 0.09, place + 0.09, color="white", lw=2, zorder=4)
        axes.axhline(0.0, color="0.5", lw=0.8, ls=":")
        axes.set_xticks(places, [str(f.epoch) for f in found])
        axes.set(xlabel="epoch", title=name, ylim=(-1.02, 1.02))
        tidy(axes)
    panels[0, 0].set_ylabel("discriminator noise, online minus oracle")
    return figure


def _box(values: np.ndarray) -> tuple[float, float, float, float]:
    """Lower adjacent value, quartiles, upper adjacent value."""
    quarter, three = np.percentile(values, [25, 75])
    reach = 1.5 * (three - quarter)
    inside = values[(values >= quarter - reach) & (values <= three + reach)]
    return float(inside.min()), float(quarter), float(three), float(inside.max())
