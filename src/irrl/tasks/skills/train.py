"""Skill discovery: a policy is rewarded for ending where a discriminator can tell its code.

The loop of the paper is `_learn`: rollout, reward, policy, discriminator. Everything around it
prepares the numbers it consumes, and looks at the tables it leaves behind.
"""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numba import njit, types

from irrl.diagnostics import require_finite
from irrl.errors import UserError
from irrl.nn.distributed import current_world
from irrl.runs.checkpoint import Checkpoint
from irrl.runs.run import Run
from irrl.runs.schedule import is_due, next_due
from irrl.runs.seeding import stream
from irrl.tasks.contract import Metrics
from irrl.tasks.skills import arithmetic, kernels
from irrl.tasks.skills.config import SkillsConfig
from irrl.tasks.skills.evaluate import evaluate_tables
from irrl.tasks.skills.kernels import (
    discriminator_step,
    ensemble_mean,
    greedy_moves,
    normalise,
    q_lambda_errors,
    quadratic_gap,
    refresh_greedy,
    rollout,
    step_q,
)
from irrl.tasks.skills.map import ACTIONS, RoomMap, read_map
from irrl.tasks.skills.reward import compiled_reward
from irrl.tasks.skills.tables import (
    Tables,
    bonus_weights,
    initial_tables,
    restored_tables,
    reward_unit,
)

f32 = np.float32
BLOCK = 1_000  # iterations whose random numbers are sampled together
STEPS_AT_ONCE = 20_000_000  # that the compiled loop takes in about a second
LOG_GAP, QUADRATIC_GAP, VISITS = range(3)  # what is paid into the bonus table, if there is one

_row = types.float32[::1]
_table = types.float32[:, :, ::1]
_moves = types.uint32[:, ::1]
_cells = types.uint32[::1]
_RewardFunction = types.FunctionType(kernels.REWARD_SIGNATURE)


def _compile_loop(kernels_digest: str) -> Callable:
    # Numba keys its cache of a function on that function's own file. Captured here, the digest
    # makes it look at kernels.py and arithmetic.py as well.
    @njit(
        types.void(
            _table, _table, types.int64[::1], _row, types.int64, _cells, types.uint32, _moves,
            types.int64, types.int64,
            types.int64[::1], _cells, types.int64, types.float32, types.float32, types.float32,
            types.float32, types.float32, _RewardFunction,
        ),
        cache=True,
    )  # fmt: skip
    def learn(
        q, log_q, visits, weights, bonus_is, next_cell, start, labels, first, last,
        explore_at, explore_action, horizon, discount, lambda_, policy_step,
        posterior_step, log_p, reward_fn,
    ):  # fmt: skip
        kernels_digest  # noqa: B018
        batch = labels.shape[1]
        channels, codes, _ = q.shape
        members, cells, _ = log_q.shape
        greedy = greedy_moves(q, weights)
        walks = np.empty((codes, horizon), np.uint32)
        walk_end = np.empty(codes, np.uint32)
        stale = np.ones(codes, np.bool_)
        moves = np.empty((batch, horizon), np.uint32)
        final = np.empty(batch, np.uint32)
        errors = np.empty((channels, batch, horizon), f32)
        posterior = np.empty(log_q.shape, f32)
        log_mean = np.empty((cells, codes), f32)
        terms = np.empty((1, 1, codes), f32)
        bonus = np.zeros(cells, f32)
        arrivals = np.zeros(cells, np.int64)
        is_normalised = np.zeros(cells, np.bool_)
        steps = first * batch * horizon
        explored = np.searchsorted(explore_at, steps)

        for i in range(first, last):
            # trajectory = rollout(policy, label)
            for b in range(batch):
                final[b], explored = rollout(
                    greedy, labels[i, b], next_cell, start, steps, explore_at, explored,
                    explore_action, walks, walk_end, stale, moves, b,
                )  # fmt: skip
                steps += horizon
                arrivals[final[b]] += 1
                visits[final[b]] += 1

            # reward = shape(log q(y | trajectory), log p(y))
            for b in range(batch):
                y, cell = labels[i, b], final[b]
                if not is_normalised[cell]:
                    is_normalised[cell] = True
                    for e in range(members):
                        normalise(log_q, posterior, e, cell)
                    if members > 1:
                        bonus[cell] = ensemble_mean(log_q, posterior, cell, log_mean, terms)
                    if bonus_is == QUADRATIC_GAP:
                        bonus[cell] = quadratic_gap(posterior, cell, terms)
                    if bonus_is == VISITS:
                        bonus[cell] = f32(1.0 / math.sqrt(visits[cell]))
                log_q_cell = log_q[0, cell] if members == 1 else log_mean[cell]
                skill_reward = reward_fn(log_q_cell, y, log_p)
                q_lambda_errors(
                    q, 0, y, greedy, next_cell, moves, b, skill_reward, discount, lambda_, errors
                )
                if channels == 2:
                    q_lambda_errors(
                        q, 1, y, greedy, next_cell, moves, b, bonus[cell], discount, lambda_, errors
                    )

            # policy <- trajectory, reward
            for b in range(batch):
                for channel in range(channels):
                    step_q(q, channel, labels[i, b], moves, b, errors, policy_step)
            for b in range(batch):
                stale[labels[i, b]] |= refresh_greedy(q, weights, labels[i, b], moves, b, greedy)

            # discriminator <- trajectory, label
            for b in range(batch):
                y, cell = labels[i, b], final[b]
                if cell != start:  # the start cell's posterior is held uniform, as the authors do
                    for e in range(members):
                        discriminator_step(
                            log_q, posterior, e, cell, y, posterior_step, arrivals[cell]
                        )
                arrivals[cell] = 0
                is_normalised[cell] = False

    return learn


_learn = _compile_loop(
    hashlib.sha256(Path(kernels.__file__).read_bytes()).hexdigest() + arithmetic.DIGEST
)


# --- the task ---


@dataclass
class Learner:
    """The tables, the compiled reward they learn from, and how far they have come."""

    config: SkillsConfig
    room_map: RoomMap
    reward_fn: Callable
    tables: Tables
    step: int = 0
    observed: int = -1  # the last step at which the tables were looked at; -1: none


def check(config: SkillsConfig) -> None:
    """A configuration that could be made can be trained, by one process."""
    if current_world().size > 1:
        raise UserError("skills has tables, and nothing to share; start it without torchrun")
    reward_unit(config)


def prepare(config: SkillsConfig, checkpoint: Checkpoint | None) -> Learner:
    """A learner at its start, or where a checkpoint left it."""
    check(config)
    room_map, reward_fn = read_map(config.map), compiled_reward(config.reward_fn())
    if checkpoint is None:
        return Learner(config, room_map, reward_fn, initial_tables(config, room_map))
    tables = restored_tables(config, room_map, checkpoint.arrays)
    return Learner(config, room_map, reward_fn, tables, checkpoint.step, checkpoint.step)


def train(run: Run, learner: Learner) -> Metrics:
    """Train from where the learner stands to the end; return the summary."""
    config = learner.config
    if learner.observed < 0:
        observe(run, learner)
    while learner.step < config.iterations:
        block = learner.step // BLOCK
        samples = sample_block(config, block)
        end_of_block = min((block + 1) * BLOCK, config.iterations)
        while learner.step < end_of_block:
            due = next_due(learner.step, config.evaluate_every, config.checkpoint_every)
            stop = min(end_of_block, due)
            learn_block(learner, samples, learner.step - block * BLOCK, stop - block * BLOCK)
            learner.step = stop
            observe(run, learner)

    metrics, occupancy = evaluate_tables(config, learner.room_map, learner.tables)
    seconds = run.seconds
    return run.finish(
        {
            **metrics,
            "iterations": config.iterations,
            "seconds": seconds,
            "iterations_per_second": config.iterations / seconds,
            "occupancy": occupancy.tolist(),
        }
    )


def observe(run: Run, learner: Learner) -> None:
    """Log a row and write a checkpoint where they are due."""
    config, step, tables = learner.config, learner.step, learner.tables
    row_is_due, checkpoint_is_due = (
        is_due(learner.observed, step, every, config.iterations)
        for every in (config.evaluate_every, config.checkpoint_every)
    )
    learner.observed = step
    if row_is_due or checkpoint_is_due:
        require_finite(step, tables.q, tables.log_q)
        metrics, occupancy = evaluate_tables(config, learner.room_map, tables)
        if row_is_due:
            run.log({"step": step, **metrics})
        if checkpoint_is_due:
            run.save(step, tables._asdict(), {"occupancy": occupancy.tolist()})


# --- what the compiled loop consumes ---


class Samples(NamedTuple):
    """All that chance has to say in a block of iterations.

    ``explore_at`` has the steps of the block at which an action is random, and ends with one that
    is beyond it; ``explore_action`` the action that is taken at each.
    """

    labels: np.ndarray  # (BLOCK, batch)
    explore_at: np.ndarray
    explore_action: np.ndarray


def sample_block(config: SkillsConfig, block: int) -> Samples:
    """Sample a block. Random actions are rare: their places are sampled, not a coin each step."""
    labels = stream(config.seed, "environment", block).integers(
        config.codes, size=(BLOCK, config.batch_size), dtype=np.uint32
    )
    rng = stream(config.seed, "policy", 1, block)
    steps = labels.size * config.horizon
    places = rng.choice(steps, rng.binomial(steps, config.epsilon), replace=False, shuffle=False)
    explore_at = np.append(np.sort(places), steps).astype(np.int64)
    explore_action = rng.integers(len(ACTIONS), size=explore_at.size, dtype=np.uint32)
    return Samples(labels, explore_at, explore_action)


def learn_block(learner: Learner, samples: Samples, first: int, last: int) -> None:
    """Iterations ``first`` to ``last`` of a block, on the tables in place.

    Compiled code hears no signal, so that it is left now and then.
    """
    config, room_map = learner.config, learner.room_map
    at_once = max(1, STEPS_AT_ONCE // (config.batch_size * config.horizon))
    for begin in range(first, last, at_once):
        _learn(
            *learner.tables, bonus_weights(config), what_bonus_is(config), room_map.next_cell,
            np.uint32(room_map.start), samples.labels, begin, min(begin + at_once, last),
            samples.explore_at, samples.explore_action, config.horizon, f32(config.discount),
            f32(config.lambda_), f32(policy_step(config)), f32(posterior_step(config)),
            f32(-arithmetic.log(config.codes)), learner.reward_fn,
        )  # fmt: skip


def what_bonus_is(config: SkillsConfig) -> int:
    """The bonus as the compiled loop is told of it."""
    if config.bonus == "visits":
        return VISITS
    return QUADRATIC_GAP if config.bonus_kind == "quadratic" else LOG_GAP


def policy_step(config: SkillsConfig) -> float:
    """Step of one trajectory in the loss of the Q tables, a mean of squared errors (no half)."""
    return 2.0 * config.learning_rate / config.batch_size


def posterior_step(config: SkillsConfig) -> float:
    """Step of one label in the discriminators' loss, a mean over ensemble and batch."""
    assert config.discriminator_learning_rate is not None and config.ensemble_size is not None
    return config.discriminator_learning_rate / (config.batch_size * config.ensemble_size)
