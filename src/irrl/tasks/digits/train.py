"""Hard attention: a policy is paid for glimpses from which a discriminator can tell the digit.

The loop of the paper is `learn_batch`: rollout, reward, policy, discriminator. Everything around it
prepares canvases and random numbers, and looks at the models it leaves behind.
"""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from array_api_compat import array_namespace
from torch import Tensor

from irrl.diagnostics import discriminator_health
from irrl.nn.distributed import ALONE, World, current_world
from irrl.errors import UserError
from irrl.losses import baseline_loss, entropy, reinforce_loss
from irrl.nn.models import choose_device
from irrl.nn.parallel import Map, parts_in_parallel, set_gradients
from irrl.returns import gains, lambda_returns
from irrl.rewards import reward
from irrl.runs.run import Run
from irrl.tasks.digits.config import DigitsConfig
from irrl.tasks.digits.data import (
    CLASSES,
    Canvases,
    fresh_training_set,
    layout_of,
    train_and_validation,
)
from irrl.tasks.digits.evaluate import evaluate, evaluate_test
from irrl.tasks.digits.mnist import check_mnist
from irrl.tasks.digits.policy import Policy
from irrl.tasks.digits.rollout import Draws, Trajectory, draw_epoch, rollout
from irrl.tasks.digits.state import (
    Learner,
    initial_learner,
    restored_learner,
    to_checkpoint,
)


class Outcome(NamedTuple):
    """What some episodes came to: posteriors after the last glimpse, what was paid, lengths."""

    log_probs: Tensor
    paid: Tensor
    lengths: Tensor


class Part(NamedTuple):
    """Some episodes of a batch, and what share of the batch they are."""

    images: Tensor
    labels: Tensor
    draws: Draws
    share: float


def learn_part(
    config: DigitsConfig, learner: Learner, part: Part, epoch: float
) -> tuple[list[Tensor], Outcome]:
    """Gradients of all parameters from some of the episodes of a batch. Changes nothing."""
    discriminator, policy, _, oracle = learner
    images, labels, draws, share = part
    std = config.location_std_at(epoch)

    # trajectory = rollout(policy, label)
    trajectory = rollout(discriminator, policy, images, draws.first, config.steps, draws, std)

    # reward = shape(log q(y | trajectory), log p(y))
    states = discriminator.states(trajectory.memory, judged(config))
    log_probs = discriminator.log_probs(states)
    judge = log_probs if oracle is None else oracle_log_probs(config, oracle, trajectory)
    worth = worth_of(config, judge, labels)

    # policy <- trajectory, reward
    policy_loss = loss_of_policy(config, policy, trajectory, worth, epoch)

    # discriminator <- trajectory, label
    discriminator_loss = loss_of_discriminator(config, trajectory, log_probs, labels)

    loss = share * (policy_loss + discriminator_loss)
    gradients = torch.autograd.grad(loss, parameters_of(learner), materialize_grads=True)
    ends = (trajectory.last(log_probs.detach()), trajectory.last(worth.detach()))
    return list(gradients), Outcome(*ends, trajectory.lengths)


def learn_batch(
    config: DigitsConfig,
    learner: Learner,
    parts: Sequence[Part],
    epoch: float,
    each: Map = map,
    world: World = ALONE,
) -> list[Outcome]:
    """One update from all parts of a batch; returns what became of this process's share of them.

    ``epoch`` is how many have passed, for what changes over a run; ``each`` is `map`, or one that
    uses several threads.
    """
    mine = world.share(parts)
    found = list(each(lambda part: learn_part(config, learner, part, epoch), mine))
    set_gradients(parameters_of(learner), [gradients for gradients, _ in found], world)
    learner.optimiser.step()
    return [outcome for _, outcome in found]


def parameters_of(learner: Learner) -> list[Tensor]:
    return [p for group in learner.optimiser.param_groups for p in group["params"]]


def cut(images: Tensor, labels: Tensor, draws: Draws, parts: int) -> list[Part]:
    """A batch in parts of nearly equal size."""
    count = len(labels)
    edges = [count * n // parts for n in range(parts + 1)]
    return [
        Part(images[a:b], labels[a:b], draws.batch(a, b), (b - a) / count)
        for a, b in itertools.pairwise(edges)
        if b > a
    ]


def judged(config: DigitsConfig) -> slice:
    """The states that are classified: all, unless only that of the last glimpse is needed."""
    only_last = config.credit == "final" and config.supervision == "last" and not config.stops
    return slice(-1, None) if only_last else slice(None)


@torch.no_grad()
def oracle_log_probs(config: DigitsConfig, oracle: Any, trajectory: Trajectory) -> Tensor:
    """What a frozen discriminator makes of the same glimpses."""
    memory = oracle.blank(trajectory.steps, len(trajectory.lengths))
    memory.glimpses.copy_(trajectory.memory.glimpses)
    for t in range(trajectory.steps):
        oracle.remember(memory, t, trajectory.locations[t])
    return oracle.log_probs(memory.states[judged(config)])


def worth_of(config: DigitsConfig, log_probs: Tensor, labels: Tensor) -> Tensor:
    """What an episode is paid if it ends at a glimpse, for the last or for each (steps, batch)."""
    steps = len(log_probs)
    if config.leak_reward_gradient:
        log_q = log_probs.gather(2, labels.expand(steps, -1)[..., None])[..., 0]
        log_p = torch.full_like(log_q, -np.log(CLASSES))
        paid = reward(config.reward).gain(array_namespace(log_q), log_q, log_p)
    else:
        paid = reward(config.reward, validate=False)(log_probs, labels.expand(steps, -1))
    if not config.stops:
        return paid
    taken = torch.arange(1, steps + 1, device=paid.device)[:, None]
    return paid * config.step_discount**taken


def returns_of(
    config: DigitsConfig, trajectory: Trajectory, worth: Tensor, expected: Tensor
) -> Tensor:
    """What followed each action, (steps - 1, batch); after a stop, nothing does."""
    if config.credit == "final":
        return trajectory.last(worth).expand(trajectory.steps - 1, -1)
    paid = torch.where(trajectory.moved, gains(worth), 0.0)
    return lambda_returns(paid, config.discount * trajectory.moved, expected, config.lambda_)


def loss_of_policy(
    config: DigitsConfig, policy: Policy, trajectory: Trajectory, worth: Tensor, epoch: float
) -> Tensor:
    """REINFORCE with a learned baseline, for moves and, with DT-RAM, for stops."""
    std, entropy_weight = config.location_std_at(epoch), config.entropy_weight_at(epoch)
    thought, foreseen = policy.recall(trajectory.mind, trajectory.memory.glimpses[:-1])
    aim, stop = policy(thought, trajectory.anchors)
    log_prob = policy.log_prob(aim, trajectory.samples, trajectory.choices, std)
    taken = trajectory.moved
    if stop is not None:
        log_prob = torch.where(taken, log_prob + torch.log1p(-stop), torch.log(stop))
        taken = taken | trajectory.stopped
    expected = policy.baseline(foreseen)
    returns = returns_of(config, trajectory, worth, expected.detach())
    advantage = returns - expected.detach()
    if config.normalise_advantage and trajectory.steps > 1:
        advantage = advantage / advantage[taken].std(correction=0).clamp(min=1e-6)
    if config.leak_reward_gradient:
        leaking = torch.where(taken, log_prob * advantage, 0.0)
        reinforce = -leaking.sum(dim=0).mean()
    else:
        reinforce = reinforce_loss(log_prob, advantage, taken)
    if entropy_weight > 0:
        undecided = torch.where(trajectory.moved, entropy(aim), 0.0).sum(dim=0).mean()
        reinforce = reinforce - entropy_weight * undecided
    return baseline_loss(expected, returns, taken) + config.policy_weight * reinforce


def loss_of_discriminator(
    config: DigitsConfig, trajectory: Trajectory, log_probs: Tensor, labels: Tensor
) -> Tensor:
    """Cross-entropy after the last glimpse; if all are supervised, that of the mean glimpse too."""
    nll = -log_probs.gather(2, labels.expand(len(log_probs), -1)[..., None])[..., 0]
    last = trajectory.last(nll).mean()
    if config.supervision == "last":
        return last
    taken = torch.arange(len(nll), device=nll.device)[:, None] < trajectory.lengths
    return last + torch.where(taken, nll, 0.0).sum() / taken.sum()


# --- around the loop ---


def check(config: DigitsConfig) -> None:
    """Raise where training could not begin: no MNIST, no device, an oracle that cannot judge."""
    current_world().require_parts(config.parts, config.batch_size)
    device = choose_device(config.device)
    check_mnist()
    initial_learner(config, device)


def train(config: DigitsConfig, run: Run) -> dict[str, Any]:
    """Train, from the last checkpoint of the run if it has one; return the summary."""
    world = current_world()
    world.require_parts(config.parts, config.batch_size)
    device = choose_device(config.device)
    with parts_in_parallel(device, config.parts) as each:
        return _train(config, run, device, each, world)


def _train(
    config: DigitsConfig, run: Run, device: torch.device, each: Map, world: World
) -> dict[str, Any]:
    training, validation = train_and_validation(
        config.seed, layout_of(config), config.train_images, config.validation_images
    )
    checkpoint = world.once(run.restore)
    if checkpoint is None:
        epoch, learner = 0, initial_learner(config, device)
        observe(config, run, epoch, learner, {}, validation, each, world)
    else:
        epoch, learner = checkpoint.step, restored_learner(config, checkpoint, device)

    while epoch < config.epochs:
        if config.fresh_canvases and epoch > 0:
            training = fresh_training_set(
                config.seed, epoch, layout_of(config), config.train_images
            )
        figures = learn_epoch(config, learner, training, epoch, device, each, world)
        epoch += 1
        observe(config, run, epoch, learner, figures, validation, each, world)

    rows = world.once(run.rows)
    seconds = run.seconds
    summary = {
        **{name: value for name, value in rows[-1].items() if name != "step"},
        "best_accuracy": max(row["accuracy"] for row in rows),
        **evaluate_test(config, learner.discriminator, learner.policy, world.everywhere(each)),
        "epochs": config.epochs,
        "seconds": seconds,
        "episodes_per_second": config.epochs * config.train_images / seconds,
    }
    return world.once(lambda: run.finish(summary))


def learn_epoch(
    config: DigitsConfig,
    learner: Learner,
    canvases: Canvases,
    epoch: int,
    device: torch.device,
    each: Map,
    world: World,
) -> dict[str, float]:
    """One pass over the canvases; returns figures of its episodes."""
    order, draws = draw_epoch(config, epoch, device)
    images = torch.from_numpy(canvases.images).to(device)
    labels = torch.from_numpy(canvases.labels).to(device)
    found, truths = [], []
    for number, first in enumerate(range(0, config.train_images, config.batch_size)):
        now = epoch + number / config.updates_per_epoch
        set_step_sizes(learner.optimiser, config.step_sizes_at(now))
        chosen = order[first : first + config.batch_size]
        part = draws.batch(first, first + config.batch_size)
        parts = cut(images[chosen], labels[chosen], part, config.parts)
        found.append(learn_batch(config, learner, parts, now, each, world))
        truths.append(labels[chosen])
    outcomes = in_order(world.gather(found))
    log_probs = torch.cat([o.log_probs for o in outcomes]).cpu().numpy()
    if not np.isfinite(log_probs).all():
        raise UserError(
            f"training came apart in epoch {epoch + 1}: its posteriors are not finite; "
            "a smaller learning-rate helps"
        )
    health = discriminator_health(log_probs, torch.cat(truths).cpu().numpy(), reward(config.reward))
    lengths, paid = (torch.cat([getattr(o, n) for o in outcomes]) for n in ("lengths", "paid"))
    return {
        "steps": lengths.float().mean().item(),
        **health,
        "reward_mean": paid.mean().item(),  # by an oracle, if there is one
        "reward_deviation": paid.std(correction=0).item(),
    }


def in_order(of_processes: Sequence[Sequence[list[Outcome]]]) -> list[Outcome]:
    """What each process made of its parts of each batch, batch by batch."""
    return [
        outcome for batch in zip(*of_processes, strict=True) for parts in batch for outcome in parts
    ]


def set_step_sizes(optimiser: torch.optim.Adam, sizes: tuple[float, float]) -> None:
    for group, size in zip(optimiser.param_groups, sizes, strict=True):
        group["lr"] = size


def observe(
    config: DigitsConfig,
    run: Run,
    epoch: int,
    learner: Learner,
    figures: dict[str, float],
    validation: Canvases,
    each: Map,
    world: World,
) -> None:
    """Log a row and write a checkpoint where they are due."""
    at_end = epoch == config.epochs
    if at_end or epoch % config.evaluate_every == 0:
        everywhere = world.everywhere(each)
        row = evaluate(config, learner.discriminator, learner.policy, validation, everywhere)
        sampled = {f"train_{name}": value for name, value in figures.items()}
        if world.is_first:
            run.log({"step": epoch, **row, **sampled})
    if world.is_first and (at_end or epoch % config.checkpoint_every == 0):
        run.save(epoch, *to_checkpoint(config, learner))
