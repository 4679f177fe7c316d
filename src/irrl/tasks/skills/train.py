"""Skill discovery: a policy is paid for ending where a discriminator can tell its code.

The loop of the paper is `_learn`: rollout, reward, policy, discriminator. Everything around it
prepares the numbers it consumes, and looks at the tables it leaves behind.
"""

import hashlib
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit, types

from irrl.nn.distributed import current_world
from irrl.errors import UserError
from irrl.rewards import LOG_FLOOR, Reward, clip_at_prior, reward
from irrl.runs.run import Run
from irrl.runs.seeding import stream
from irrl.tasks.skills import kernels
from irrl.tasks.skills.config import SkillsConfig
from irrl.tasks.skills.evaluate import evaluate
from irrl.tasks.skills.kernels import (
    discriminator_step,
    ensemble_mean,
    greedy_moves,
    normalise,
    q_lambda_errors,
    refresh_greedy,
    rollout,
    step_q,
)
from irrl.tasks.skills.map import ACTIONS, RoomMap, read_map
from irrl.tasks.skills.tables import (
    Tables,
    bonus_weights,
    check_finite,
    initial_tables,
    restored_tables,
)

f32 = np.float32
BLOCK = 1_000  # iterations whose random numbers are drawn together

_row = types.float32[::1]
_table = types.float32[:, :, ::1]
_moves = types.uint32[:, ::1]
_cells = types.uint32[::1]
_RewardFunction = types.FunctionType(kernels.REWARD_SIGNATURE)


def _compile_loop(kernels_digest: str) -> Callable:
    # Numba keys its cache of a function on that function's own file. Captured here, the digest
    # makes it look at kernels.py as well.
    @njit(
        types.void(
            _table, _table, types.int64[::1], _row, types.boolean, _cells, types.uint32, _moves,
            types.int64, types.int64,
            types.int64[::1], _cells, types.int64, types.float32, types.float32, types.float32,
            types.float32, types.float32, _RewardFunction,
        ),
        cache=True,
    )  # fmt: skip
    def learn(
        q, log_q, visits, weights, visit_bonus, next_cell, start, labels, first, last,
        explore_at, explore_action, horizon, discount, lambda_, policy_step,
        posterior_step, log_p, pay,
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
        bonus = np.zeros(cells, f32)
        arrivals = np.zeros(cells, np.int64)
        judged = np.zeros(cells, np.bool_)
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
                if not judged[cell]:
                    judged[cell] = True
                    for e in range(members):
                        normalise(log_q, posterior, e, cell)
                    if members > 1:
                        bonus[cell] = ensemble_mean(log_q, posterior, cell, log_mean)
                    if visit_bonus:
                        bonus[cell] = f32(1.0 / math.sqrt(visits[cell]))
                log_q_cell = log_q[0, cell] if members == 1 else log_mean[cell]
                skill_reward = pay(log_q_cell, y, log_p)
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
                judged[cell] = False

    return learn


_learn = _compile_loop(hashlib.sha256(Path(kernels.__file__).read_bytes()).hexdigest())


def check(config: SkillsConfig) -> None:
    """A configuration that could be made can be trained, by one process."""
    if current_world().size > 1:
        raise UserError("skills has tables, and nothing to share; start it without torchrun")


def train(config: SkillsConfig, run: Run) -> dict[str, Any]:
    """Train, from the last checkpoint of the run if it has one; return the summary."""
    check(config)
    room_map = read_map(config.map)
    pay = compiled_reward(reward(config.reward))
    checkpoint = run.restore()
    if checkpoint is None:
        step, tables = 0, initial_tables(config, room_map)
        observe(config, room_map, run, step, tables)
    else:
        step, tables = checkpoint.step, restored_tables(config, room_map, checkpoint.arrays)

    while step < config.iterations:
        block, first = divmod(step, BLOCK)
        draws = draw_block(config, block)
        end_of_block = min((block + 1) * BLOCK, config.iterations)
        while step < end_of_block:
            stop = min(end_of_block, _next_observation(config, step))
            last = first + stop - step
            learn_block(config, room_map, pay, tables, draws, first, last)
            step, first = stop, last
            observe(config, room_map, run, step, tables)

    row, occupancy = evaluate(config, room_map, tables.q, tables.log_q)
    seconds = run.seconds
    return run.finish(
        {
            **row,
            "iterations": config.iterations,
            "seconds": seconds,
            "iterations_per_second": config.iterations / seconds,
            "occupancy": occupancy.tolist(),
        }
    )


def learn_block(
    config: SkillsConfig,
    room_map: RoomMap,
    pay: Callable,
    tables: Tables,
    draws: tuple[np.ndarray, np.ndarray, np.ndarray],
    first: int,
    last: int,
) -> None:
    """Iterations ``first`` to ``last`` of a block, on the tables in place."""
    labels, explore_at, explore_action = draws
    _learn(
        *tables, bonus_weights(config), config.bonus == "visits", room_map.next_cell,
        np.uint32(room_map.start), labels, first, last, explore_at, explore_action,
        config.horizon, f32(config.discount), f32(config.lambda_), f32(policy_step(config)),
        f32(posterior_step(config)), f32(-math.log(config.codes)), pay,
    )  # fmt: skip


def observe(config: SkillsConfig, room_map: RoomMap, run: Run, step: int, tables: Tables) -> None:
    """Log a row and write a checkpoint where they are due."""
    at_end = step == config.iterations
    due_row = at_end or step % config.evaluate_every == 0
    due_checkpoint = at_end or step % config.checkpoint_every == 0
    if due_row or due_checkpoint:
        check_finite(tables, step)
        row, occupancy = evaluate(config, room_map, tables.q, tables.log_q)
        if due_row:
            run.log({"step": step, **row})
        if due_checkpoint:
            run.save(step, tables._asdict(), {"occupancy": occupancy.tolist()})


def _next_observation(config: SkillsConfig, step: int) -> int:
    intervals = (config.evaluate_every, config.checkpoint_every)
    return min(every * (step // every + 1) for every in intervals)


def draw_block(config: SkillsConfig, block: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels of a block of iterations, and where in it which random actions are taken.

    Random actions are rare, so their places are drawn instead of a coin for each step. Places
    count the steps of the block; the last one is beyond its end.
    """
    labels = stream(config.seed, "environment", block).integers(
        config.codes, size=(BLOCK, config.batch_size), dtype=np.uint32
    )
    rng = stream(config.seed, "policy", 1, block)
    steps = labels.size * config.horizon
    places = rng.choice(steps, rng.binomial(steps, config.epsilon), replace=False, shuffle=False)
    explore_at = np.append(np.sort(places), steps).astype(np.int64)
    return labels, explore_at, rng.integers(len(ACTIONS), size=explore_at.size, dtype=np.uint32)


def policy_step(config: SkillsConfig) -> float:
    """Step of one trajectory in the loss of the Q tables, a mean of squared errors (no half)."""
    return 2.0 * config.learning_rate / config.batch_size


def posterior_step(config: SkillsConfig) -> float:
    """Step of one label in the discriminators' loss, a mean over ensemble and batch."""
    assert config.discriminator_learning_rate is not None and config.ensemble_size is not None
    return config.discriminator_learning_rate / (config.batch_size * config.ensemble_size)


@cache
def compiled_reward(paid: Reward) -> Callable:
    """The library's reward as a compiled function (log-probabilities, label, log prior).

    Compiled once in a process: workers of a sweep do many runs.
    """
    if paid.shape is None:

        @njit(kernels.REWARD_SIGNATURE)
        def accuracy(log_q, label, log_p):
            return f32(np.argmax(log_q) == label)

        return accuracy
    shape, clip, clipped = njit(paid.shape), njit(clip_at_prior), paid.clipped
    floor = f32(LOG_FLOOR)

    @njit(kernels.REWARD_SIGNATURE)
    def gain(log_q, label, log_p):
        value = shape(np, max(log_q[label], floor), log_p)
        return f32(clip(np, value)) if clipped else f32(value)

    return gain
