"""Rewards, returns and the loss of the policy."""

from typing import NamedTuple

import numpy as np
import torch
from array_api_compat import array_namespace
from torch import Tensor

from irrl.ensembles import disagreement
from irrl.losses import baseline_loss, entropy, label_nll, normalise_advantage, reinforce_loss
from irrl.returns import lambda_returns, potential_differences
from irrl.tasks.digits.data import CLASSES
from irrl.tasks.digits.discriminator import Discriminator
from irrl.tasks.digits.extensions.config import DigitsConfig
from irrl.tasks.digits.policy import Policy
from irrl.tasks.digits.rollout import Trajectory
from irrl.units import reward_unit

# --- reward ---


def classified_glimpses(config: DigitsConfig) -> slice:
    """After which glimpses to classify: all, unless only the last is needed."""
    only_last = config.credit == "final" and config.supervision == "last" and not config.stops
    return slice(-1, None) if only_last else slice(None)


@torch.no_grad()
def oracle_log_probs(config: DigitsConfig, oracle: Discriminator, trajectory: Trajectory) -> Tensor:
    """What a frozen discriminator makes of the same glimpses."""
    cache = oracle.new_cache(trajectory.glimpses, len(trajectory.lengths))
    cache.glimpses.copy_(trajectory.cache.glimpses)
    for t in range(trajectory.glimpses):
        oracle.remember(cache, t, trajectory.locations[t])
    return oracle.log_probs(cache.states[classified_glimpses(config)])


def reward_potential(config: DigitsConfig, log_probs: Tensor, labels: Tensor) -> Tensor:
    """The reward of an episode if it ended at a glimpse, for the last or for each, (steps, batch).

    The paper's reward is that at the end; what a glimpse adds is a difference of potentials.
    """
    steps = len(log_probs)
    if config.leak_reward_gradient:
        log_q = -label_nll(log_probs, labels)
        log_p = torch.full_like(log_q, -np.log(CLASSES))
        reward_fn = config.reward_fn()
        rewards = reward_fn.of_log_posterior(array_namespace(log_q), log_q, log_p)
    else:
        rewards = config.reward_fn(validate=False)(log_probs, labels.expand(steps, -1))
    rewards = rewards / reward_unit(config.reward_unit, config.reward_fn(), CLASSES)
    return discounted(config, rewards)


def with_bonus(config: DigitsConfig, potential: Tensor, head_log_probs: Tensor) -> Tensor:
    """A potential (steps, batch) and, where there is a bonus, that of heads (heads, ..., classes).

    The bonus is a potential, too: paid at the end, or as what each glimpse adds. It has no
    gradient.
    """
    if not config.has_bonus:
        return potential
    gaps = disagreement(head_log_probs, config.bonus_kind, validate=False)
    return potential + discounted(config, config.bonus_weight * gaps)


def discounted(config: DigitsConfig, rewards: Tensor) -> Tensor:
    """What the glimpses of dt-ram leave of rewards (steps, batch)."""
    if not config.stops:
        return rewards
    glimpses = torch.arange(1, len(rewards) + 1, device=rewards.device)[:, None]
    return rewards * config.step_discount**glimpses


def returns_of(
    config: DigitsConfig, trajectory: Trajectory, potential: Tensor, expected: Tensor
) -> Tensor:
    """What followed each action, (glimpses - 1, batch); after a stop, nothing does."""
    if config.credit == "final":
        return trajectory.last(potential).expand(trajectory.glimpses - 1, -1)
    moved = trajectory.moved
    rewards = torch.where(moved, potential_differences(potential), 0.0)
    value_after = torch.cat([expected[1:], torch.zeros_like(expected[:1])])
    return lambda_returns(rewards, config.discount * moved, value_after, config.lambda_)


# --- policy ---


class TakenActions(NamedTuple):
    """What is said of all actions, (glimpses - 1, batch, ...), with gradient, and which count."""

    log_prob: Tensor
    taken: Tensor
    expected: Tensor  # by the baseline
    choice: Tensor | None  # log-probabilities of what it chose among, if it did


def taken_actions(
    config: DigitsConfig, policy: Policy, trajectory: Trajectory, epoch: float
) -> TakenActions:
    """Moves and, with DT-RAM, stops."""
    cache, samples = trajectory.policy_cache, trajectory.samples
    std = config.location_std_at(epoch)
    log_prob, stop, expected, choice = policy.actions(cache, trajectory.cache, samples, std)
    taken = trajectory.moved
    if stop is not None:
        log_prob = torch.where(taken, log_prob + torch.log1p(-stop), torch.log(stop))
        taken = taken | trajectory.stopped
    return TakenActions(log_prob, taken, expected, choice)


def policy_loss(
    config: DigitsConfig, policy: Policy, trajectory: Trajectory, potential: Tensor, epoch: float
) -> Tensor:
    """REINFORCE with a learned baseline, for moves and, with DT-RAM, for stops."""
    entropy_coef = config.entropy_coef_at(epoch)
    log_prob, taken, expected, choice = taken_actions(config, policy, trajectory, epoch)
    returns = returns_of(config, trajectory, potential, expected.detach())
    advantage = normalise_advantage(returns - expected.detach(), taken, config.normalise_advantage)
    leaks = config.leak_reward_gradient
    reinforce = reinforce_loss(log_prob, advantage, taken, detach=not leaks)
    if entropy_coef > 0 and choice is not None:
        undecided = torch.where(trajectory.moved, entropy(choice), 0.0).sum(dim=0).mean()
        reinforce = reinforce - entropy_coef * undecided
    return baseline_loss(expected, returns, taken) + config.policy_coef * reinforce
