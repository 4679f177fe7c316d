"""The policy gradient of digits: batches judged by the run's discriminator and by an oracle.

Episodes are those that the run trains on next after a checkpoint, cut into its batches and parts,
and the gradient is REINFORCE as `policy_loss` has it, with the run's credit and normalisation of
advantages; what it holds besides the reward (entropy, the weight of the loss) is left out. The
baseline of a run knows the run's own reward only. To any other it is fitted: one slope for all, and
a level for each action. The run's own reward is measured over its own baseline, too.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from irrl.errors import UserError
from irrl.gradient_measured import ORACLE, RUN, Arm, MeasuredGradients, make_arms
from irrl.gradient_noise import FEWEST, BatchGroup, sampled_moments
from irrl.losses import label_nll, normalise_advantage, reinforce_loss
from irrl.nn.models import device_to_look, open_oracle
from irrl.nn.parallel import parts_in_parallel
from irrl.runs.run import Run
from irrl.tasks.digits.chance import sample_epoch
from irrl.tasks.digits.data import CLASSES
from irrl.tasks.digits.discriminator import Discriminator
from irrl.tasks.digits.extensions.config import DigitsConfig
from irrl.tasks.digits.learner import read_oracle, restored_models
from irrl.tasks.digits.losses import (
    TakenActions,
    classified_glimpses,
    oracle_log_probs,
    returns_of,
    reward_potential,
    taken_actions,
)
from irrl.tasks.digits.policy import Policy
from irrl.tasks.digits.rollout import Trajectory, rollout
from irrl.tasks.digits.train import BatchPart, Data, canvases_of, cut_batch, sample_data

BATCHES = 50  # if none are asked for
GROUPS = 50  # of batches, at most
CANVASES_ALIKE = ("clutter", "clutter_size", "placement")
"""Settings in which an oracle must agree besides: it must know the canvases that it judges."""

Batch = tuple[float, list[BatchPart]]
"""Epochs that have passed, and the episodes."""


class Models(NamedTuple):
    """The models of a checkpoint, and the judge of its discriminator."""

    discriminator: Discriminator
    policy: Policy
    oracle: Discriminator


def measure_gradient(
    run: Run[DigitsConfig],
    oracle_folder: Path | None,
    rewards: Sequence[str],
    episodes: int | None,
    checkpoints: int,
    progress: Callable[[int, int], None],
) -> list[MeasuredGradients]:
    """Gradients of batches at some checkpoints of a run, early to late."""
    config = run.config
    if oracle_folder is None:
        raise UserError("digits need an oracle: give --oracle RUN, a converged run")
    if config.has_bonus:
        raise UserError("this run has a bonus: its policy's gradient is not that of a reward alone")
    open_oracle(oracle_folder, config, CANVASES_ALIKE)
    device = device_to_look(config.device)
    oracle = read_oracle(oracle_folder, config, device)
    batches = batches_of(config, episodes)
    arms = make_arms(tuple(rewards), as_trained=config.reward)
    chosen = run.some_checkpoints(checkpoints)
    data = sample_data(config)
    found = []
    for number, checkpoint in enumerate(chosen):
        models = Models(*restored_models(config, checkpoint.arrays, device), oracle)

        def upcoming(epoch: int = checkpoint.step) -> Iterator[Batch]:
            return islice(upcoming_batches(config, data, epoch, device), batches)

        def tell(done: int, before: int = number) -> None:
            progress(before * batches + done, len(chosen) * batches)

        with parts_in_parallel(device, 1):  # threads would wait for each other most of the time
            found.append(gradients_of(config, models, arms, checkpoint.step, upcoming, tell))
    return found


def batches_of(config: DigitsConfig, episodes: int | None) -> int:
    """How many batches of the run's size so many episodes make."""
    batches = BATCHES if episodes is None else episodes // config.batch_size
    if batches < FEWEST:
        raise UserError(
            f"episodes must make at least {FEWEST} batches of {config.batch_size}, the "
            f"batch-size of the run: {FEWEST * config.batch_size} or more, got {episodes}"
        )
    return batches


def upcoming_batches(
    config: DigitsConfig, data: Data, epoch: int, device: torch.device
) -> Iterator[Batch]:
    """Whole batches of the epochs to come, as `learn_epoch` cuts them."""
    for now in count(epoch):
        canvases = canvases_of(config, data, now)
        order, numbers = sample_epoch(config, now, device)
        images, labels = (torch.from_numpy(x).to(device) for x in canvases[:2])
        size = config.batch_size
        for n, first in enumerate(range(0, config.train_images - size + 1, size)):
            chosen, batch = order[first : first + size], numbers.batch(first, first + size)
            parts = cut_batch(images[chosen], labels[chosen], batch, config.parts)
            yield now + n / config.updates_per_epoch, parts


def gradients_of(
    config: DigitsConfig,
    models: Models,
    arms: tuple[Arm, ...],
    step: int,
    upcoming: Callable[[], Iterator[Batch]],
    progress: Callable[[int], None],
) -> MeasuredGradients:
    """Moments of the gradients of some batches, which are played twice: the first time to fit
    baselines.
    """
    each = [
        outcomes(config, play(config, models, part, arms, now))
        for now, parts in upcoming()
        for part in parts
    ]
    seen = Outcomes(*(torch.cat(some, dim=-1) for some in zip(*each, strict=True)))
    baselines = fit_baselines(arms, seen)
    groups: list[BatchGroup] = []
    done = 0
    for done, batch in enumerate(upcoming(), start=1):
        gradients = batch_gradients(config, models, arms, baselines, batch)
        if len(groups) < GROUPS:
            groups.append(BatchGroup.of(gradients))
        else:
            groups[done % GROUPS] = groups[done % GROUPS].plus(gradients)
        progress(done)
    online, oracle = (
        x.double().exp().clamp(max=1.0).cpu().numpy() for x in (seen.online, seen.oracle)
    )
    return MeasuredGradients(
        step,
        config.batch_size,
        done,
        arms,
        sampled_moments(groups),
        online,
        oracle,
        1.0 / CLASSES,
    )


# --- episodes, judged ---


class Judged(NamedTuple):
    """Episodes as training plays them, and what each arm says of them."""

    trajectory: Trajectory
    actions: TakenActions
    potentials: Tensor  # (arms, glimpses or 1, batch)
    online: Tensor  # (batch): log-posterior of the label at the end
    oracle: Tensor


class Outcomes(NamedTuple):
    """What is kept of them to fit baselines to, (..., batch)."""

    returns: Tensor  # (arms, actions, batch): rewards as they came
    expected: Tensor  # (actions, batch): by the baseline of the run
    taken: Tensor  # (actions, batch)
    online: Tensor
    oracle: Tensor


def play(
    config: DigitsConfig, models: Models, part: BatchPart, arms: Sequence[Arm], epoch: float
) -> Judged:
    discriminator, policy, oracle = models
    numbers, labels, std = part.numbers, part.labels, config.location_std_at(epoch)
    trajectory = rollout(
        discriminator, policy, part.images, numbers.first, config.glimpses, numbers, std
    )
    with torch.no_grad():
        log_probs = discriminator.log_probs(trajectory.cache.states[classified_glimpses(config)])
    by = {RUN: log_probs, ORACLE: oracle_log_probs(config, oracle, trajectory)}
    potentials = [reward_potential(rewarded_by(config, arm), by[arm.judge], labels) for arm in arms]
    actions = taken_actions(config, policy, trajectory, epoch)
    ends = (-label_nll(trajectory.last(by[who]), labels) for who in (RUN, ORACLE))
    return Judged(trajectory, actions, torch.stack(potentials), *ends)


def outcomes(config: DigitsConfig, judged: Judged) -> Outcomes:
    trajectory, actions, potentials, *ends = judged
    expected, full = actions.expected.detach(), dataclasses.replace(config, lambda_=1.0)
    returns = [returns_of(full, trajectory, potential, expected) for potential in potentials]
    return Outcomes(torch.stack(returns), expected, actions.taken, *ends)


def rewarded_by(config: DigitsConfig, arm: Arm) -> DigitsConfig:
    """The same with the reward of an arm, whose values are all that is asked for.

    Its unit is that of the run where the baseline is.
    """
    unit = config.reward_unit if arm.as_trained else "absolute"
    return dataclasses.replace(
        config, reward=arm.reward, reward_unit=unit, leak_reward_gradient=False
    )


# --- baselines ---


class Baseline(NamedTuple):
    """slope * what the run's baseline expects + a level for each action."""

    slope: float
    level: Tensor  # (actions)

    def __call__(self, expected: Tensor) -> Tensor:
        return self.slope * expected + self.level[:, None]


def fit_baselines(arms: Sequence[Arm], seen: Outcomes) -> list[Baseline]:
    """Least squares for each arm; the run's own as it is where that is asked for."""
    as_it_is = Baseline(1.0, torch.zeros(len(seen.expected), device=seen.expected.device))
    return [
        as_it_is if arm.as_trained else fit_baseline(seen.expected, returns, seen.taken)
        for arm, returns in zip(arms, seen.returns, strict=True)
    ]


def fit_baseline(expected: Tensor, returns: Tensor, taken: Tensor) -> Baseline:
    expected, returns = expected.double(), returns.double()
    many = taken.sum(dim=1).clamp(min=1)
    centre, mean = (torch.where(taken, x, 0.0).sum(dim=1) / many for x in (expected, returns))
    x, y = (
        torch.where(taken, a - m[:, None], 0.0) for a, m in ((expected, centre), (returns, mean))
    )
    spread = x.square().sum().item()
    slope = (x * y).sum().item() / spread if spread > 1e-12 * taken.sum().item() else 0.0
    return Baseline(slope, (mean - slope * centre).float())


# --- gradients ---


def rewarded_parameters(policy: Policy) -> list[Tensor]:
    """All but those of the baseline, which learns by a loss of its own."""
    return [p for name, p in policy.named_parameters() if not name.startswith("baseline")]


def batch_gradients(
    config: DigitsConfig,
    models: Models,
    arms: Sequence[Arm],
    baselines: Sequence[Baseline],
    batch: Batch,
) -> np.ndarray:
    """Of one batch under each arm: (arms, parameters)."""
    now, parts = batch
    parameters = rewarded_parameters(models.policy)
    total = parameters[0].new_zeros(len(arms), sum(p.numel() for p in parameters))
    for part in parts:
        trajectory, actions, potentials, *_ = play(config, models, part, arms, now)
        log_prob, taken, expected, _ = actions
        for n, (baseline, potential) in enumerate(zip(baselines, potentials, strict=True)):
            value = baseline(expected.detach())
            advantage = returns_of(config, trajectory, potential, value) - value
            advantage = normalise_advantage(advantage, taken, config.normalise_advantage)
            gradients = torch.autograd.grad(
                -part.share * reinforce_loss(log_prob, advantage, taken),
                parameters,
                retain_graph=True,
                materialize_grads=True,
            )
            total[n] += torch.cat([g.flatten() for g in gradients])
    return total.cpu().numpy()
