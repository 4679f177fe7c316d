"""Object counting: a policy is rewarded for walks after which a discriminator can tell the count.

The loop of the paper is `train_batch`: rollout, reward, policy, discriminator. What its steps do
follows in the same order; what is around the loop stands at the end.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from irrl.diagnostics import require_finite
from irrl.ensembles import disagreement
from irrl.losses import (
    at_last_step,
    entropy,
    mean_over_taken,
    normalise_advantage,
    ppo_loss,
    value_loss,
)
from irrl.nn.distributed import ALONE, World, current_world
from irrl.nn.heads import heads_loss
from irrl.nn.parallel import Map, parts_in_parallel, set_gradients
from irrl.returns import gae
from irrl.runs.schedule import is_due
from irrl.tasks.contract import Metrics
from irrl.tasks.counting.batch_stats import BatchStats, training_metrics
from irrl.tasks.counting.config import CountingConfig
from irrl.tasks.counting.data import Split
from irrl.tasks.counting.evaluate import evaluate_model, log_prior_of
from irrl.tasks.counting.minibatches import MinibatchPart, minibatches
from irrl.tasks.counting.model import Model
from irrl.tasks.counting.prepare import Prepared
from irrl.tasks.counting.rollout import (
    STOP,
    EpisodeInputs,
    Trajectory,
    join,
    oracle_log_count,
    rollout,
    sample_batch,
    states_of,
)
from irrl.tasks.counting.state import CountingRun, Learner, to_checkpoint
from irrl.units import reward_unit

POLICY_METRICS = ("policy_entropy", "policy_clip_fraction", "policy_kl")


class PPOBatch(NamedTuple):
    """Episodes, and what is to be learned from them."""

    trajectory: Trajectory
    labels: Tensor  # (n,)
    advantage: Tensor  # (moves, n)
    returns: Tensor  # (moves, n)
    entropy_coef: float


def train_batch(
    config: CountingConfig,
    learner: Learner,
    split: Split,
    inputs: EpisodeInputs,
    done: int,
    each: Map = map,
    world: World = ALONE,
) -> BatchStats:
    """Episodes of a batch, which begins after so many, and several epochs of PPO over them.

    ``each`` is `map`, or one that uses several threads. Processes share the work, then tell each
    other how their episodes went: all of them know the whole batch.
    """
    model, _, oracle = learner
    map_all_ranks = world.map_all_ranks(each)
    labels = torch.from_numpy(split.labels[inputs.scenes]).to(model.device)

    # trajectory = rollout(policy, label)
    walks = list(map_all_ranks(lambda x: rollout(model, split, x), inputs.cut(config.parts)))
    trajectory = join(walks)

    # reward = shape(log q(y | trajectory), log p(y))
    log_count = trajectory.log_count
    if oracle is not None:
        judged = map_all_ranks(lambda walk: oracle_log_count(oracle, split, walk), walks)
        log_count = torch.cat(list(judged))
    rewards = final_rewards(config, log_count, labels)
    paid = with_bonus(config, rewards, trajectory.head_log_counts)

    # policy        <- trajectory, reward
    # discriminator <- trajectory, label     (in the same updates: they share a trunk)
    batch = ppo_batch(config, trajectory, paid, labels, done)
    updates = [
        update(config, learner, batch, world.share(parts), each, world)
        for parts in minibatches(config, trajectory, done)
    ]
    moves = trajectory.lengths - 1
    return BatchStats(trajectory.log_count, labels, rewards, paid, moves, updates)


# --- reward ---


def final_rewards(config: CountingConfig, log_count: Tensor, labels: Tensor) -> Tensor:
    """The reward of each episode, which comes at its end, (n,)."""
    log_prior = log_prior_of(config)
    reward_fn = config.reward_fn(validate=False)
    rewards = reward_fn(log_count, labels, torch.from_numpy(log_prior).to(log_count))
    return rewards / reward_unit(config.reward_unit, reward_fn, log_prior)


def with_bonus(config: CountingConfig, rewards: Tensor, head_log_counts: Tensor) -> Tensor:
    """Rewards (n,) and, where there is a bonus, that for how much heads (heads, n, 7) disagree."""
    if not config.has_bonus:
        return rewards
    gaps = disagreement(head_log_counts, config.bonus_kind, validate=False)
    return rewards + config.bonus_weight * gaps


def ppo_batch(
    config: CountingConfig, trajectory: Trajectory, rewards: Tensor, labels: Tensor, done: int
) -> PPOBatch:
    """How much better than expected each action was, and what followed it."""
    moved = trajectory.taken & (trajectory.actions != STOP)
    reward_t = torch.where(trajectory.ended, rewards, 0.0) - config.move_cost * moved
    discount_t = config.discount_at(done) * (trajectory.taken & ~trajectory.ended)
    values = torch.cat([trajectory.value, torch.zeros_like(trajectory.value[:1])])
    advantage = gae(reward_t, discount_t, values, config.lambda_)
    returns = advantage + trajectory.value
    advantage = normalise_advantage(advantage, trajectory.taken, config.normalise_advantage)
    return PPOBatch(trajectory, labels, advantage, returns, config.entropy_coef_at(done))


# --- policy and discriminator ---


def update(
    config: CountingConfig,
    learner: Learner,
    batch: PPOBatch,
    mine: Sequence[MinibatchPart],
    each: Map,
    world: World,
) -> Metrics:
    """One update from all parts of a minibatch; returns what this process's add to its metrics."""
    model, parameters = learner.model, learner.parameters
    found = list(each(lambda part: part_gradients(config, model, batch, part), mine))
    set_gradients(parameters, [gradients for gradients, _ in found], world)
    torch.nn.utils.clip_grad_norm_(parameters, config.max_grad_norm)
    learner.optimiser.step()
    return {
        name: sum(part.action_share * m[name] for part, (_, m) in zip(mine, found, strict=True))
        for name in (POLICY_METRICS if config.learns_policy else ())
    }


def part_gradients(
    config: CountingConfig, model: Model, batch: PPOBatch, part: MinibatchPart
) -> tuple[list[Tensor], Metrics]:
    """Gradients of all parameters from some of the episodes of a minibatch. Changes nothing."""
    states = states_of(model, batch.trajectory, part.chosen, part.generator)
    loss = states.new_zeros(())
    metrics: Metrics = {}

    # policy <- trajectory, reward
    if config.learns_policy:
        policy_loss, metrics = actor_critic_loss(config, model, states, batch, part.chosen)
        loss = loss + part.action_share * policy_loss

    # discriminator <- trajectory, label
    loss = loss + count_loss(config, model, states, batch, part)

    parameters = [p for p in model.parameters() if p.requires_grad]
    return list(torch.autograd.grad(loss, parameters, materialize_grads=True)), metrics


def actor_critic_loss(
    config: CountingConfig, model: Model, states: Tensor, batch: PPOBatch, chosen: Tensor
) -> tuple[Tensor, Metrics]:
    """PPO for policy and value head, means over the actions taken; and its metrics."""
    trajectory, steps = batch.trajectory, min(len(states), len(batch.returns))
    actions, old_log_prob, old_value, advantage, returns, taken = (
        x[:steps, chosen]
        for x in (
            trajectory.actions, trajectory.log_prob, trajectory.value,
            batch.advantage, batch.returns, trajectory.taken,
        )
    )  # fmt: skip
    outputs = model.outputs(states[:steps])
    log_prob = outputs.log_policy.gather(2, actions[..., None])[..., 0]
    policy_entropy = mean_over_taken(entropy(outputs.log_policy), taken)
    loss = (
        ppo_loss(log_prob, old_log_prob, advantage, taken, config.clip)
        + config.value_coef * value_loss(outputs.value, old_value, returns, taken, config.clip)
        - batch.entropy_coef * policy_entropy
    )
    with torch.no_grad():
        change = torch.where(taken, log_prob - old_log_prob, 0.0)
        clipped = ((change.exp() - 1.0).abs() > config.clip).float()
        metrics = {
            "policy_entropy": policy_entropy.item(),
            "policy_clip_fraction": mean_over_taken(clipped, taken).item(),
            "policy_kl": mean_over_taken(change.expm1() - change, taken).item(),
        }
    return loss, metrics


def count_loss(
    config: CountingConfig, model: Model, states: Tensor, batch: PPOBatch, part: MinibatchPart
) -> Tensor:
    """Cross-entropy of the count heads, as the setting ``supervision`` says."""
    labels, lengths = batch.labels[part.chosen], batch.trajectory.lengths[part.chosen]
    if config.supervision == "last":  # no other step need be looked at
        states = at_last_step(states, lengths)[None]
    return heads_loss(
        model.head_log_counts(states), labels, lengths, config.supervision,
        episode_share=part.episode_share, step_share=part.view_share,
    )  # fmt: skip


# --- around the loop ---


def train(run: CountingRun, prepared: Prepared) -> Metrics:
    """Train a run from where it stands to its end; return the summary."""
    world = current_world()
    with parts_in_parallel(prepared.device, prepared.config.parts) as each:
        train_batches(run, prepared, each, world)
    seconds = run.seconds
    rows, episodes = world.once(run.rows), prepared.config.episodes
    summary = {
        **{name: value for name, value in rows[-1].items() if name != "step"},
        "best_accuracy_percent": max(row["accuracy_percent"] for row in rows),
        "episodes": episodes,
        "seconds": seconds,
        "episodes_per_second": episodes / seconds,
    }
    return world.once(lambda: run.finish(summary))


def train_batches(run: CountingRun, prepared: Prepared, each: Map, world: World) -> None:
    """All batches that are left; a row of metrics and a checkpoint whenever they are due."""
    config, learner, done = prepared.config, prepared.learner, prepared.done
    recent: list[BatchStats] = []  # since the last row

    def log_and_save(before: int, now: int) -> None:
        if is_due(before, now, config.evaluate_every, config.episodes):
            map_all_ranks = world.map_all_ranks(each)
            evaluated = evaluate_model(learner.model, prepared.held_out, now, map_all_ranks)
            sampled = training_metrics(config, recent, world)
            recent.clear()
            if world.is_first:
                run.log({"step": now, **evaluated, **sampled})
        if world.is_first and is_due(before, now, config.checkpoint_every, config.episodes):
            run.save(now, *to_checkpoint(learner, prepared.training.sha256))

    if prepared.is_new:
        log_and_save(-1, 0)
    while done < config.episodes:
        for group in learner.optimiser.param_groups:
            group["lr"] = config.learning_rate_at(done)
        inputs = sample_batch(config, done, len(prepared.training))
        stats = train_batch(config, learner, prepared.training, inputs, done, each, world)
        before, done = done, done + len(inputs.scenes)
        require_finite(done, stats.log_count)
        recent.append(stats)
        log_and_save(before, done)
