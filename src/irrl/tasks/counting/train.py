"""Object counting: a policy is paid for walks after which a discriminator can tell the count.

The loop of the paper is `learn_batch`: rollout, reward, policy, discriminator. Everything around it
prepares scenes and random numbers, and looks at the model it leaves behind.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from irrl.diagnostics import discriminator_health
from irrl.nn.distributed import ALONE, World, current_world
from irrl.losses import entropy, mean_over_taken, ppo_loss, value_loss
from irrl.nn.models import choose_device
from irrl.nn.parallel import Map, parts_in_parallel, set_gradients
from irrl.returns import gae
from irrl.rewards import reward
from irrl.runs.run import Run
from irrl.runs.seeding import stream
from irrl.tasks.counting.config import CountingConfig
from irrl.tasks.counting.data import Split, load_split
from irrl.tasks.counting.evaluate import evaluate, log_prior_of, require_finite
from irrl.tasks.counting.model import Model
from irrl.tasks.counting.rollout import (
    STOP,
    Draws,
    Trajectory,
    draw_batch,
    join,
    last_of,
    oracle_log_count,
    rollout,
    states_again,
)
from irrl.tasks.counting.state import Learner, initial_learner, restored_learner, to_checkpoint

Figures = dict[str, float]
OF_POLICY = ("policy_entropy", "policy_clip_fraction", "policy_kl")


class Lesson(NamedTuple):
    """Episodes, and what is to be learned from them."""

    trajectory: Trajectory
    labels: Tensor  # (n,)
    advantage: Tensor  # (moves, n)
    returns: Tensor  # (moves, n)
    entropy_weight: float


class Part(NamedTuple):
    """Some episodes of a minibatch, and what share of it they are."""

    chosen: Tensor
    of_actions: float
    of_episodes: float
    of_views: float
    chance: torch.Generator


class Outcome(NamedTuple):
    """What some episodes came to, and what was learned from them."""

    log_count: Tensor
    labels: Tensor
    paid: Tensor
    moves: Tensor
    updates: list[Figures]


def learn_batch(
    config: CountingConfig,
    learner: Learner,
    split: Split,
    draws: Draws,
    done: int,
    each: Map = map,
    world: World = ALONE,
) -> Outcome:
    """Episodes of a batch, which begins after so many, and several passes of PPO over them.

    ``each`` is `map`, or one that uses several threads. Processes share the work, then tell each
    other how their episodes went: all of them know the whole batch.
    """
    model, _, oracle = learner
    everywhere = world.everywhere(each)
    labels = torch.from_numpy(split.labels[draws.scenes]).to(model.act.weight.device)

    # trajectory = rollout(policy, label)
    walks = list(everywhere(lambda part: rollout(model, split, part), cut_draws(config, draws)))
    trajectory = join(walks)

    # reward = shape(log q(y | trajectory), log p(y))
    judge = trajectory.log_count
    if oracle is not None:
        judged = everywhere(lambda walk: oracle_log_count(oracle, split, walk), walks)
        judge = torch.cat(list(judged))
    paid = paid_for(config, judge, labels)

    # policy <- trajectory, reward
    # discriminator <- trajectory, label     (in the same passes, `learn_part`: they share a trunk)
    lesson = lesson_of(config, trajectory, paid, labels, done)
    updates = [
        learn_minibatch(config, learner, lesson, world.share(parts), each, world)
        for parts in minibatches(config, trajectory, done)
    ]
    return Outcome(trajectory.log_count, labels, paid, trajectory.lengths - 1, updates)


def learn_part(
    config: CountingConfig, model: Model, lesson: Lesson, part: Part
) -> tuple[list[Tensor], Figures]:
    """Gradients of all parameters from some of the episodes of a minibatch. Changes nothing."""
    states = states_again(model, lesson.trajectory, part.chosen, part.chance)
    loss = states.new_zeros(())
    figures: Figures = {}

    # policy <- trajectory, reward
    if config.learns_to_walk:
        policy_loss, figures = loss_of_policy(config, model, states, lesson, part.chosen)
        loss = loss + part.of_actions * policy_loss

    # discriminator <- trajectory, label
    loss = loss + loss_of_discriminator(config, model, states, lesson, part)

    gradients = torch.autograd.grad(loss, parameters_of(model), materialize_grads=True)
    return list(gradients), figures


def learn_minibatch(
    config: CountingConfig,
    learner: Learner,
    lesson: Lesson,
    mine: Sequence[Part],
    each: Map,
    world: World,
) -> Figures:
    """One update from all parts of a minibatch; returns what this process's add to its figures."""
    model = learner.model
    found = list(each(lambda part: learn_part(config, model, lesson, part), mine))
    parameters = parameters_of(model)
    set_gradients(parameters, [gradients for gradients, _ in found], world)
    torch.nn.utils.clip_grad_norm_(parameters, config.max_gradient)
    learner.optimiser.step()
    return {
        name: sum(part.of_actions * f[name] for part, (_, f) in zip(mine, found, strict=True))
        for name in (OF_POLICY if config.learns_to_walk else ())
    }


def parameters_of(model: Model) -> list[Tensor]:
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def paid_for(config: CountingConfig, log_count: Tensor, labels: Tensor) -> Tensor:
    """What each episode is paid at its end, (n,)."""
    log_prior = torch.from_numpy(log_prior_of(config)).to(log_count)
    return reward(config.reward, validate=False)(log_count, labels, log_prior)


def lesson_of(
    config: CountingConfig, trajectory: Trajectory, paid: Tensor, labels: Tensor, done: int
) -> Lesson:
    """How much better than expected each action was, and what followed it."""
    moved = trajectory.taken & (trajectory.actions != STOP)
    reward_t = torch.where(trajectory.ended, paid, 0.0) - config.move_cost * moved
    discount_t = config.discount_at(done) * (trajectory.taken & ~trajectory.ended)
    advantage = gae(reward_t, discount_t, trajectory.value, config.lambda_)
    returns = advantage + trajectory.value
    if config.normalise_advantage:
        among = advantage[trajectory.taken]
        advantage = (advantage - among.mean()) / among.std(correction=0).clamp(min=1e-6)
    return Lesson(trajectory, labels, advantage, returns, config.entropy_weight_at(done))


def loss_of_policy(
    config: CountingConfig, model: Model, states: Tensor, lesson: Lesson, chosen: Tensor
) -> tuple[Tensor, Figures]:
    """PPO for actions and what is expected before them, means over actions taken; and figures."""
    trajectory, steps = lesson.trajectory, min(len(states), len(lesson.returns))
    actions, old_log_prob, old_value, advantage, returns, taken = (
        x[:steps, chosen]
        for x in (
            trajectory.actions, trajectory.log_prob, trajectory.value,
            lesson.advantage, lesson.returns, trajectory.taken,
        )
    )  # fmt: skip
    beliefs = model.beliefs(states[:steps])
    log_prob = beliefs.log_policy.gather(2, actions[..., None])[..., 0]
    uncertainty = mean_over_taken(entropy(beliefs.log_policy), taken)
    loss = (
        ppo_loss(log_prob, old_log_prob, advantage, taken, config.clip)
        + config.value_weight * value_loss(beliefs.value, old_value, returns, taken, config.clip)
        - lesson.entropy_weight * uncertainty
    )
    with torch.no_grad():
        change = torch.where(taken, log_prob - old_log_prob, 0.0)
        clipped = ((change.exp() - 1.0).abs() > config.clip).float()
        figures = {
            "policy_entropy": uncertainty.item(),
            "policy_clip_fraction": mean_over_taken(clipped, taken).item(),
            "policy_kl": mean_over_taken(change.expm1() - change, taken).item(),
        }
    return loss, figures


def loss_of_discriminator(
    config: CountingConfig, model: Model, states: Tensor, lesson: Lesson, part: Part
) -> Tensor:
    """Cross-entropy after the last view; if all are supervised, that of the mean view too."""
    labels, lengths = lesson.labels[part.chosen], lesson.trajectory.lengths[part.chosen]
    if config.supervision == "last":
        log_count = model.log_count(last_of(states, lengths))
        return -part.of_episodes * log_count.gather(1, labels[:, None]).mean()
    log_count = model.log_count(states)
    nll = -log_count.gather(2, labels.expand(len(states), -1)[..., None])[..., 0]
    taken = torch.arange(len(nll), device=nll.device)[:, None] < lengths
    last = last_of(nll, lengths).mean()
    return part.of_episodes * last + part.of_views * mean_over_taken(nll, taken)


# --- cutting ---


def cut_draws(config: CountingConfig, draws: Draws) -> list[Draws]:
    return [draws.part(a, b) for a, b in edges(len(draws.scenes), config.parts)]


def edges(count: int, parts: int) -> list[tuple[int, int]]:
    """Where parts of nearly equal size begin and end."""
    marks = [count * n // parts for n in range(parts + 1)]
    return [(a, b) for a, b in itertools.pairwise(marks) if b > a]


def minibatches(config: CountingConfig, trajectory: Trajectory, done: int) -> Iterator[list[Part]]:
    """All episodes in each pass, in a new order, by minibatches of nearly equal size, in parts."""
    count = len(trajectory.lengths)
    number = -(-count // config.minibatch_episodes)
    for n in range(config.ppo_passes):
        order = torch.from_numpy(stream(config.seed, "policy", 1, done, n).permutation(count))
        for first, last in edges(count, number):
            yield cut(config, trajectory, order[first:last], (done, n, first))


def cut(
    config: CountingConfig, trajectory: Trajectory, chosen: Tensor, address: tuple[int, ...]
) -> list[Part]:
    """A minibatch in parts; the address is that of their random numbers."""
    device = trajectory.lengths.device
    chosen = chosen.to(device)
    lengths, acted = trajectory.lengths[chosen], trajectory.acted[chosen]
    parts = []
    for first, last in edges(len(chosen), config.parts):
        seed = stream(config.seed, "discriminator", 1, *address, first).integers(2**62)
        parts.append(
            Part(
                chosen[first:last],
                (acted[first:last].sum() / acted.sum()).item(),
                (last - first) / len(chosen),
                (lengths[first:last].sum() / lengths.sum()).item(),
                torch.Generator(device).manual_seed(int(seed)),
            )
        )
    return parts


# --- around the loop ---


def check(config: CountingConfig) -> None:
    """Raise where training could not begin: no scenes, weights or device, a bad oracle."""
    current_world().require_parts(config.parts, config.minibatch_episodes)
    device = choose_device(config.device)
    for split in ("train", "eval"):
        load_split(config, split)
    initial_learner(config, device)


def train(config: CountingConfig, run: Run) -> dict[str, Any]:
    """Train, from the last checkpoint of the run if it has one; return the summary."""
    world = current_world()
    world.require_parts(config.parts, config.minibatch_episodes)
    device = choose_device(config.device)
    with parts_in_parallel(device, config.parts) as each:
        return _train(config, run, device, each, world)


def _train(
    config: CountingConfig, run: Run, device: torch.device, each: Map, world: World
) -> dict[str, Any]:
    training, held_out = load_split(config, "train"), load_split(config, "eval")
    checkpoint = world.once(run.restore)
    outcomes: list[Outcome] = []

    def observe(before: int, done: int) -> None:
        """Log a row and write a checkpoint where they are due."""
        if is_due(before, done, config.evaluate_every, config.episodes):
            row = evaluate(config, learner.model, held_out, world.everywhere(each))
            sampled = sampled_figures(config, outcomes, world)
            outcomes.clear()
            if world.is_first:
                run.log({"step": done, **row, **sampled})
        if world.is_first and is_due(before, done, config.checkpoint_every, config.episodes):
            run.save(done, *to_checkpoint(config, learner, training.sha256))

    if checkpoint is None:
        done, learner = 0, initial_learner(config, device)
        observe(-1, 0)
    else:
        done = checkpoint.step
        learner = restored_learner(config, checkpoint, training.sha256, device)

    while done < config.episodes:
        for group in learner.optimiser.param_groups:
            group["lr"] = config.step_size_at(done)
        draws = draw_batch(config, done, len(training))
        outcome = learn_batch(config, learner, training, draws, done, each, world)
        before, done = done, done + len(draws.scenes)
        require_finite(outcome.log_count.cpu().numpy())
        outcomes.append(outcome)
        observe(before, done)

    seconds = run.seconds
    rows = world.once(run.rows)
    summary = {
        **{name: value for name, value in rows[-1].items() if name != "step"},
        "best_accuracy": max(row["accuracy"] for row in rows),
        "episodes": config.episodes,
        "seconds": seconds,
        "episodes_per_second": config.episodes / seconds,
    }
    return world.once(lambda: run.finish(summary))


def is_due(before: int, done: int, every: int, end: int) -> bool:
    """Whether a multiple of ``every`` was passed, or the end was reached."""
    return done == end or done // every > before // every


def sampled_figures(config: CountingConfig, outcomes: Sequence[Outcome], world: World) -> Figures:
    """Of the episodes since the last evaluation, as they were drawn in training."""
    if not outcomes:
        return {}
    log_count, labels, paid, moves = (
        torch.cat([getattr(outcome, name) for outcome in outcomes]).cpu()
        for name in ("log_count", "labels", "paid", "moves")
    )
    health = discriminator_health(
        log_count.numpy(), labels.numpy(), reward(config.reward), log_prior_of(config)
    )
    shares = world.gather([figures for outcome in outcomes for figures in outcome.updates])
    updates = [add(figures) for figures in zip(*shares, strict=True)]
    figures = {
        "moves": moves.float().mean().item(),
        **health,
        "reward_mean": paid.mean().item(),  # by an oracle, if there is one
        "reward_deviation": paid.std(correction=0).item(),
        **{name: float(np.mean([u[name] for u in updates])) for name in updates[0]},
    }
    return {f"train_{name}": value for name, value in figures.items()}


def add(shares: Sequence[Figures]) -> Figures:
    return {name: sum(figures[name] for figures in shares) for name in shares[0]}
