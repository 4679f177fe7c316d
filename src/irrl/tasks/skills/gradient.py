"""The policy gradient of skill discovery, exactly, judged by the run and by the true posterior.

Q(lambda) has no policy gradient of its own. The gradient here is that of the behaviour policy,
epsilon-greedy in the tables, by its logits: what REINFORCE over the value of each state would
follow if the same episodes were given to it. With few random actions it is made of contrasts: the
reward for one other action once, and going on as always, less the reward for doing as always.
docs/method.md says why.

Nothing is sampled. Maps are deterministic, and a pair of visits to a cell is enough for a second
moment, so that all moments of the gradient of a batch are sums over cells and times. The true
posterior of a code, given the cell in which it ends, follows from the same tables by Bayes' rule.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from irrl.ensembles import log_mean_exp
from irrl.errors import UserError
from irrl.gradient_measured import ORACLE, RUN, Arm, MeasuredGradients, make_arms
from irrl.gradient_noise import GradientMoments, SampledMoments
from irrl.rewards import reward
from irrl.runs.run import Run
from irrl.tasks.skills.config import SkillsConfig
from irrl.tasks.skills.kernels import greedy_moves
from irrl.tasks.skills.map import ACTIONS, RoomMap, read_map
from irrl.tasks.skills.tables import Tables, bonus_weights, log_softmax, restored_tables

TIES = 9  # decimals in which log-posteriors of codes must differ for one to be the likelier

Progress = Callable[[int, int], None]
"""(done, of how many)"""


def measure_gradient(
    run: Run[SkillsConfig],
    oracle_folder: Path | None,
    rewards: Sequence[str],
    episodes: int | None,
    checkpoints: int,
    progress: Progress,
) -> list[MeasuredGradients]:
    """Exact gradients at some checkpoints of a run, early to late."""
    config = run.config
    if oracle_folder is not None:
        raise UserError(
            "skills need no oracle: the true posterior follows from the tables of the run, and "
            "that of another run is about other codes; leave out --oracle"
        )
    if episodes is not None:
        raise UserError("skills sample no episodes: gradients are exact; leave out --episodes")
    if config.epsilon == 0.0:
        raise UserError(
            f"{run.folder} takes no random actions (epsilon 0): its policy has no gradient"
        )
    arms = make_arms(tuple(rewards))
    room_map, found = read_map(config.map), []
    chosen = run.some_checkpoints(checkpoints)
    for number, checkpoint in enumerate(chosen):
        tables = restored_tables(config, room_map, checkpoint.arrays)

        def tell(code: int, done: int = number) -> None:
            progress(done * config.codes + code, len(chosen) * config.codes)

        found.append(exact_gradients(config, room_map, tables, arms, checkpoint.step, tell))
    return found


def exact_gradients(
    config: SkillsConfig,
    room_map: RoomMap,
    tables: Tables,
    arms: tuple[Arm, ...],
    step: int,
    progress: Callable[[int], None],
) -> MeasuredGradients:
    """Moments of the gradient of one batch, and posteriors of codes where they end."""
    actions = behaviour(config, tables)
    next_cell = room_map.next_cell.reshape(-1, len(ACTIONS)).astype(int)
    walks = [
        visits(policy, next_cell, room_map.start, config.horizon) for policy in actions
    ]  # of each code: (times + 1, cells)
    ends = np.array([walk[-1] for walk in walks])
    log_q = log_mean_exp(np, log_softmax(tables.log_q))  # (cells, codes)
    judged = {RUN: log_q.T, ORACLE: true_log_posterior(ends)}  # (codes, cells)
    rewards = np.array([rewards_of(arm.reward, judged[arm.judge]) for arm in arms])
    signal = np.zeros((len(arms), len(arms)))
    second = np.zeros_like(signal)
    for code, (policy, walk) in enumerate(zip(actions, walks, strict=True)):
        of_code = Episodes(policy, next_cell, walk, rewards[:, code])
        mean = of_code.expected_gradients()
        signal += (mean @ mean.T) / config.codes**2
        second += of_code.second_moments() / config.codes
        progress(code + 1)
    noise = (second - signal) / config.batch_size
    reached = ends > 0.0
    online, oracle = (np.exp(judged[judge][reached]) for judge in (RUN, ORACLE))
    return MeasuredGradients(
        step,
        config.batch_size,
        None,
        arms,
        SampledMoments(GradientMoments(signal, noise)),
        np.minimum(online, 1.0),
        np.minimum(oracle, 1.0),
        1.0 / config.codes,
        ends[reached],
    )


# --- policy, posterior, rewards ---


def behaviour(config: SkillsConfig, tables: Tables) -> np.ndarray:
    """Probability of each action: (codes, cells, actions)."""
    greedy = greedy_moves(tables.q, bonus_weights(config)).astype(int) % len(ACTIONS)
    chosen = np.eye(len(ACTIONS))[greedy]
    return (1.0 - config.epsilon) * chosen + config.epsilon / len(ACTIONS)


def visits(policy: np.ndarray, next_cell: np.ndarray, start: int, horizon: int) -> np.ndarray:
    """Where an episode is at each time: (horizon + 1, cells)."""
    there = np.zeros((horizon + 1, len(policy)))
    there[0, start] = 1.0
    for t in range(horizon):
        np.add.at(there[t + 1], next_cell, there[t][:, None] * policy)
    return there


def true_log_posterior(ends: np.ndarray) -> np.ndarray:
    """log p(code | last cell), (codes, cells), from p(last cell | code); the prior if none ends."""
    total = ends.sum(axis=0)
    posterior = np.where(total > 0.0, ends / np.where(total > 0.0, total, 1.0), 1.0 / len(ends))
    return np.log(np.maximum(posterior, np.finfo(float).tiny))


def rewards_of(name: str, log_posterior: np.ndarray) -> np.ndarray:
    """The reward of each code for ending in each cell, (codes, cells)."""
    reward_fn, codes = reward(name), len(log_posterior)
    if reward_fn.shape is None:
        guess = log_posterior.round(TIES).argmax(axis=0)  # of codes that are equal, the first
        return (np.arange(codes)[:, None] == guess).astype(float)
    log_p = np.full_like(log_posterior, -np.log(codes))
    rewards: np.ndarray = reward_fn.of_log_posterior(np, log_posterior, log_p)
    return rewards


# --- moments of the gradient of one episode ---


@dataclass(frozen=True)
class Episodes:
    """Those of one code: what it does, where it is, and what ends are worth under each reward.

    Steps are taken from cell to cell and not by matrices of all pairs of them: an action leads to
    one cell, and the threads of a matrix product cost more than what they do on so few cells.
    """

    policy: np.ndarray  # (cells, actions)
    next_cell: np.ndarray  # (cells, actions)
    there: np.ndarray  # (times + 1, cells)
    rewards: np.ndarray  # (arms, cells)

    @property
    def horizon(self) -> int:
        return len(self.there) - 1

    @cached_property
    def action_values(self) -> np.ndarray:
        """Expected reward after each action, (times, arms, cells, actions)."""
        found = np.empty((self.horizon, *self.rewards.shape, self.policy.shape[1]))
        value = self.rewards
        for t in reversed(range(self.horizon)):
            found[t] = value[:, self.next_cell]
            value = self.mean_over_actions(found[t])
        return found

    def mean_over_actions(self, q: np.ndarray) -> np.ndarray:
        found: np.ndarray = np.einsum("...sx,sx->...s", q, self.policy)
        return found

    def expected_gradients(self) -> np.ndarray:
        """By the logits of all cells: (arms, cells times actions)."""
        q = self.action_values
        advantage = q - self.mean_over_actions(q)[..., None]
        summed = np.einsum("ts,tasx->asx", self.there[:-1], advantage)
        return (summed * self.policy).reshape(len(self.rewards), -1)

    def second_moments(self) -> np.ndarray:
        """E<g_a, g_b> of one episode for each pair of arms.

        g is the sum over times of score times (reward - value). Scores of two times have a product
        only if both are of one cell, and what comes after the later one depends on that cell and
        its action alone. So does where it ends: products of two rewards are weighted there.
        """
        q = self.action_values
        v = self.mean_over_actions(q)  # (times, arms, cells)
        again = self.weights_of_returns()
        found = np.zeros((len(self.rewards),) * 2)
        on_the_way = np.zeros(len(self.policy))
        for late in range(self.horizon):
            weights = self.there[: late + 1, :, None] * again[late::-1]
            at_once, earlier = weights[late], weights[:late].sum(axis=0)
            found += _without_products(q[late], v[late], at_once, v[late][:, :, None] * at_once)
            then = np.einsum("tas,tsx->asx", v[:late], weights[:late])
            pairs = _without_products(q[late], v[late], earlier, then)
            found += pairs + pairs.T
            leaving = on_the_way[:, None] * self.policy + at_once + 2.0 * earlier
            on_the_way = self.arrivals(leaving)
        return found + (self.rewards * on_the_way) @ self.rewards.T

    def arrivals(self, leaving: np.ndarray) -> np.ndarray:
        """What leaves each cell by each action, where it arrives."""
        return np.bincount(self.next_cell.ravel(), leaving.ravel(), minlength=len(leaving))

    def weights_of_returns(self) -> np.ndarray:
        """For each delay, of being back in a cell and of the action there, times the product of
        the scores of the action left with and of that one: (times, cells, actions).
        """
        cells = np.arange(len(self.policy))
        score = np.eye(len(ACTIONS)) - self.policy[:, None, :]  # (cells, action, of logits)
        products = score @ score.transpose(0, 2, 1)
        found = np.empty((self.horizon, *self.policy.shape))
        found[0] = self.policy * np.diagonal(products, axis1=1, axis2=2)
        back = np.eye(len(cells))  # from a cell (rows) to another, after the delay less one
        for delay in range(1, self.horizon):
            left_with = self.policy * back[self.next_cell, cells[:, None]]
            found[delay] = np.einsum("sa,sab->sb", left_with, products) * self.policy
            back = np.einsum("sx,sxe->se", self.policy, back[self.next_cell])
        return found


def _without_products(
    q: np.ndarray, v: np.ndarray, weight: np.ndarray, v_then: np.ndarray
) -> np.ndarray:
    """Of the sum of E[(reward_a - value_a then) (reward_b - value_b now)] over pairs of visits all
    but that of reward_a reward_b.

    ``weight`` (cells, actions) of the pairs whose later one is by that action, ``v_then`` (arms,
    cells, actions) the same times the value at the earlier one.
    """
    arms = len(q)
    by_early = v_then.reshape(arms, -1) @ q.reshape(arms, -1).T
    by_late = (q * weight).sum(axis=-1) @ v.T
    found: np.ndarray = v_then.sum(axis=-1) @ v.T - by_early - by_late
    return found
