"""Iterations per second of skills, beside the slow twin of the tests and the machine's limit."""

import statistics
from typing import Any

import numpy as np
from numba import njit
from timing import seconds

from irrl.tasks import make_config
from irrl.tasks.skills.evaluate import evaluate_tables
from irrl.tasks.skills.kernels import normalise
from irrl.tasks.skills.map import read_map
from irrl.tasks.skills.tables import initial_tables
from irrl.tasks.skills.train import BLOCK, learn_block, prepare, sample_block
from tests.tasks.skills import twin

WARM_UP, MEASURED, TWIN_ITERATIONS = 100, 100, 20


def iterations_per_second(config: Any) -> tuple[float, float]:
    """Median over blocks, after a hundred blocks of learning; and distinct final cells a batch."""
    learner = prepare(config, None)

    def block(number: int) -> float:
        samples = sample_block(config, number)
        return seconds(lambda: learn_block(learner, samples, 0, BLOCK))

    for number in range(WARM_UP):
        block(number)
    rate = BLOCK / statistics.median(block(WARM_UP + n) for n in range(MEASURED))
    _, occupancy = evaluate_tables(config, learner.room_map, learner.tables)
    return rate, float(np.sum(1.0 - (1.0 - occupancy) ** config.batch_size))


def twin_iterations_per_second(config: Any) -> float:
    room_map = read_map(config.map)
    q, logits, visits = initial_tables(config, room_map)
    q, logits = q.astype(float), logits.astype(float)
    labels = sample_block(config, 0).labels

    def learn(count: int) -> None:
        twin.learn(config, room_map, q, logits, visits, labels[:count], {})

    learn(1)  # PyTorch takes its time over its first step
    return TWIN_ITERATIONS / seconds(lambda: learn(TWIN_ITERATIONS))


@njit
def _softmaxes(log_q: np.ndarray, posterior: np.ndarray, count: int) -> None:
    for n in range(count):
        normalise(log_q, posterior, 0, n % log_q.shape[1])


def limit_iterations_per_second(config: Any, cells_per_batch: float) -> float:
    """If an iteration cost nothing but its softmaxes."""
    cells = len(read_map(config.map).cells)
    log_q = np.random.default_rng(0).random((1, cells, config.codes)).astype(np.float32)
    posterior = np.empty_like(log_q)
    count = 200_000
    _softmaxes(log_q, posterior, 1)
    best = min(seconds(lambda: _softmaxes(log_q, posterior, count)) for _ in range(5))
    return count / best / (cells_per_batch * config.ensemble_size)


def skills() -> dict[str, Any]:
    result = {}
    for name in ("clipped-linear", "clipped-log", "accuracy", "disdain"):
        for batch_size in (16, 32):
            config: Any = make_config("skills", "fast", reward=name, batch_size=batch_size)
            rate, cells = iterations_per_second(config)
            row = {
                "iterations_per_second": round(rate),
                "environment_steps_per_second": round(rate * batch_size * config.horizon),
                "times_the_twin": round(rate / twin_iterations_per_second(config)),
                "share_of_limit": round(rate / limit_iterations_per_second(config, cells), 3),
            }
            result[f"{name}, batch {batch_size}"] = row
            print(f"{name}, batch {batch_size}:", ", ".join(f"{k} {v:,}" for k, v in row.items()))
    return result
