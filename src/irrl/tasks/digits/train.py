"""Hard attention: a policy is rewarded for glimpses from which a discriminator can tell the digit.

The loop of the paper is `learn_part`: rollout, reward, policy, discriminator. `learn_batch` makes
one update of what it finds. Everything around it prepares canvases and random numbers, and looks
at the models it leaves behind.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from irrl.diagnostics import discriminator_health, require_finite
from irrl.nn.distributed import ALONE, World, current_world
from irrl.nn.heads import heads_loss, mixture
from irrl.nn.models import choose_device
from irrl.nn.parallel import Map, part_edges, parts_in_parallel, set_gradients
from irrl.runs.checkpoint import Checkpoint
from irrl.runs.run import Run
from irrl.runs.schedule import is_due
from irrl.tasks.digits.chance import RandomNumbers, sample_epoch
from irrl.tasks.digits.data import (
    Canvases,
    canvases_with_test_digits,
    fresh_training_set,
    layout_of,
    train_and_validation,
)
from irrl.tasks.digits.evaluate import evaluate_on, under
from irrl.tasks.digits.extensions.config import DigitsConfig
from irrl.tasks.digits.learner import (
    Learner,
    check_oracle,
    initial_learner,
    restored_learner,
    to_checkpoint,
)
from irrl.tasks.digits.losses import (
    classified_glimpses,
    oracle_log_probs,
    policy_loss,
    reward_potential,
    with_bonus,
)
from irrl.tasks.digits.mnist import Digits, read_mnist, require_mnist
from irrl.tasks.digits.rollout import rollout


class BatchPart(NamedTuple):
    """Some episodes of a batch that are to be played, and what share of the batch they are."""

    images: Tensor
    labels: Tensor
    numbers: RandomNumbers
    share: float


class EpisodeEnds(NamedTuple):
    """How some episodes ended: posteriors after the last glimpse, pay, numbers of glimpses."""

    log_probs: Tensor
    rewards: Tensor  # without the bonus
    paid: Tensor  # with it
    lengths: Tensor


# --- the loop ---


def learn_part(
    config: DigitsConfig, learner: Learner, part: BatchPart, epoch: float
) -> tuple[Sequence[Tensor], EpisodeEnds]:
    """Gradients of all parameters from some of the episodes of a batch. Changes nothing."""
    discriminator, policy, _, oracle = learner
    images, labels, numbers, share = part
    std = config.location_std_at(epoch)

    # trajectory = rollout(policy, label)
    trajectory = rollout(
        discriminator, policy, images, numbers.first, config.glimpses, numbers, std
    )

    # reward = shape(log q(y | trajectory), log p(y))
    states = discriminator.states(trajectory.cache, classified_glimpses(config))
    heads = discriminator.head_log_probs(states)
    log_probs = mixture(heads)
    judgement = log_probs if oracle is None else oracle_log_probs(config, oracle, trajectory)
    potential = reward_potential(config, judgement, labels)
    paid = with_bonus(config, potential, heads)

    # policy <- trajectory, reward
    loss = policy_loss(config, policy, trajectory, paid, epoch)

    # discriminator <- trajectory, label
    loss = loss + heads_loss(heads, labels, trajectory.lengths, config.supervision)

    gradients = torch.autograd.grad(share * loss, learner.parameters(), materialize_grads=True)
    ends = (trajectory.last(x.detach()) for x in (log_probs, potential, paid))
    return gradients, EpisodeEnds(*(*ends, trajectory.lengths))


def learn_batch(
    config: DigitsConfig,
    learner: Learner,
    parts: Sequence[BatchPart],
    epoch: float,
    each: Map = map,
    world: World = ALONE,
) -> list[EpisodeEnds]:
    """One update from all parts of a batch; returns how this process's share of them ended.

    ``epoch`` is how many have passed, for what changes over a run; ``each`` is `map`, or one that
    uses several threads.
    """
    mine = world.share(parts)
    found = list(each(lambda part: learn_part(config, learner, part, epoch), mine))
    set_gradients(learner.parameters(), [gradients for gradients, _ in found], world)
    learner.optimiser.step()
    return [ends for _, ends in found]


def cut_batch(
    images: Tensor, labels: Tensor, numbers: RandomNumbers, parts: int
) -> list[BatchPart]:
    """A batch in parts of nearly equal size."""
    count = len(labels)
    return [
        BatchPart(images[a:b], labels[a:b], numbers.batch(a, b), (b - a) / count)
        for a, b in part_edges(count, parts)
    ]


# --- around the loop ---


class Data(NamedTuple):
    """Training digits, and canvases with them and with test digits."""

    digits: Digits
    training: Canvases
    validation: Canvases
    test: Canvases


class Prepared(NamedTuple):
    """What training begins with; ``epoch`` is how many are done."""

    learner: Learner
    data: Data
    device: torch.device
    epoch: int = 0
    is_new: bool = True


class Engine(NamedTuple):
    """What does the work: a ``map`` over parts of a batch, and the processes that share them."""

    each: Map
    world: World


def check(config: DigitsConfig) -> None:
    """Raise where training could not begin: no MNIST, no device, an oracle that cannot judge."""
    current_world().require_parts(config.parts, config.batch_size)
    choose_device(config.device)
    require_mnist()
    if config.oracle:
        check_oracle(Path(config.oracle), config)


def prepare(config: DigitsConfig, checkpoint: Checkpoint | None) -> Prepared:
    """Canvases, device and learner, new or from a checkpoint."""
    current_world().require_parts(config.parts, config.batch_size)
    device = choose_device(config.device)
    data = sample_data(config)
    if checkpoint is None:
        return Prepared(initial_learner(config, device), data, device)
    learner = restored_learner(config, checkpoint, device)
    return Prepared(learner, data, device, checkpoint.step, is_new=False)


def sample_data(config: DigitsConfig) -> Data:
    digits, layout = read_mnist("train"), layout_of(config)
    counts = (config.train_images, config.validation_images)
    training, validation = train_and_validation(digits, config.seed, layout, *counts)
    test = canvases_with_test_digits(config.seed, layout, config.test_images)
    return Data(digits, training, validation, test)


def train(run: Run[DigitsConfig], prepared: Prepared) -> dict[str, Any]:
    """Train to the end; return the summary."""
    config = run.config
    learner, data, device, first, is_new = prepared
    with parts_in_parallel(device, config.parts) as each:
        engine = Engine(each, current_world())
        if is_new:
            observe(run, 0, learner, {}, data.validation, engine)
        for epoch in range(first, config.epochs):
            canvases = canvases_of(config, data, epoch)
            metrics = learn_epoch(config, learner, canvases, epoch, device, engine)
            observe(run, epoch + 1, learner, metrics, data.validation, engine)
        return summarise(run, learner, data.test, engine)


def canvases_of(config: DigitsConfig, data: Data, epoch: int) -> Canvases:
    """Those to learn from in an epoch."""
    if not config.fresh_canvases or epoch == 0:
        return data.training
    count = config.train_images
    return fresh_training_set(data.digits, config.seed, epoch, layout_of(config), count)


def learn_epoch(
    config: DigitsConfig,
    learner: Learner,
    canvases: Canvases,
    epoch: int,
    device: torch.device,
    engine: Engine,
) -> dict[str, float]:
    """One pass over the canvases; returns metrics of its episodes."""
    order, numbers = sample_epoch(config, epoch, device)
    images = torch.from_numpy(canvases.images).to(device)
    labels = torch.from_numpy(canvases.labels).to(device)
    found, truths = [], []
    for number, first in enumerate(range(0, config.train_images, config.batch_size)):
        now = epoch + number / config.updates_per_epoch
        set_step_sizes(learner.optimiser, config.step_sizes_at(now))
        chosen = order[first : first + config.batch_size]
        batch = numbers.batch(first, first + config.batch_size)
        parts = cut_batch(images[chosen], labels[chosen], batch, config.parts)
        found.append(learn_batch(config, learner, parts, now, *engine))
        truths.append(labels[chosen])
    return training_metrics(config, epoch, in_order(engine.world.gather(found)), torch.cat(truths))


def training_metrics(
    config: DigitsConfig, epoch: int, ends: Sequence[EpisodeEnds], labels: Tensor
) -> dict[str, float]:
    """Of all episodes of an epoch, in their order."""
    log_probs, rewards, paid, lengths = (torch.cat(each) for each in zip(*ends, strict=True))
    require_finite(epoch + 1, log_probs)
    return {
        "glimpses": lengths.float().mean().item(),
        **discriminator_health(log_probs, labels, config.reward_fn()),
        "reward_mean": rewards.mean().item(),  # by an oracle, if there is one
        "reward_std": rewards.std(correction=0).item(),
        **({"bonus_mean": (paid - rewards).mean().item()} if config.has_bonus else {}),
    }


def in_order(of_processes: Sequence[Sequence[list[EpisodeEnds]]]) -> list[EpisodeEnds]:
    """How the parts of each process ended, batch by batch."""
    return [ends for batch in zip(*of_processes, strict=True) for parts in batch for ends in parts]


def set_step_sizes(optimiser: torch.optim.Adam, sizes: tuple[float, float]) -> None:
    for group, size in zip(optimiser.param_groups, sizes, strict=True):
        group["lr"] = size


def observe(
    run: Run[DigitsConfig],
    epoch: int,
    learner: Learner,
    training: dict[str, float],
    validation: Canvases,
    engine: Engine,
) -> None:
    """Log a row and write a checkpoint where they are due."""
    config = run.config
    each, world = engine
    if is_due(epoch - 1, epoch, config.evaluate_every, config.epochs):
        row = evaluate_on(config, learner.discriminator, learner.policy, validation,
                          world.map_all_ranks(each))  # fmt: skip
        if world.is_first:
            run.log({"step": epoch, **row, **under("train", training)})
    if world.is_first and is_due(epoch - 1, epoch, config.checkpoint_every, config.epochs):
        run.save(epoch, *to_checkpoint(learner))


def summarise(
    run: Run[DigitsConfig], learner: Learner, test: Canvases, engine: Engine
) -> dict[str, Any]:
    """The last row, the best accuracy, and what the models do on test digits."""
    config = run.config
    each, world = engine
    rows, seconds = world.once(run.rows), run.seconds
    models = (learner.discriminator, learner.policy)
    summary = {
        **{name: value for name, value in rows[-1].items() if name != "step"},
        "best_accuracy_percent": max(row["accuracy_percent"] for row in rows),
        **under("test", evaluate_on(config, *models, test, world.map_all_ranks(each))),
        "epochs": config.epochs,
        "seconds": seconds,
        "episodes_per_second": config.epochs * config.train_images / seconds,
    }
    return world.once(lambda: run.finish(summary))
