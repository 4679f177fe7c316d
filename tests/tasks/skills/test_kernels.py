import math

import numpy as np
import pytest
from numba import njit

from irrl.rewards import REWARDS, disagreement, reward
from irrl.tasks import make_config
from irrl.tasks.skills import arithmetic, kernels
from irrl.tasks.skills.map import read_map
from irrl.tasks.skills.reward import compiled_reward
from irrl.tasks.skills.tables import bonus_weights, initial_tables
from irrl.tasks.skills.train import learn_block, prepare, sample_block
from tests.tasks.skills import twin

f32 = np.float32


def both(config, iterations):
    """The same iterations by the compiled loop and by its twin."""
    learner = prepare(config, None)
    tables, room_map = learner.tables, learner.room_map
    q, logits, visits = (table.copy() for table in tables)
    q, logits = q.astype(float), logits.astype(float)
    samples = sample_block(config, 0)
    learn_block(learner, samples, 0, 7)
    learn_block(learner, samples, 7, iterations)
    explore = dict(zip(samples.explore_at.tolist(), samples.explore_action.tolist(), strict=True))
    twin.learn(config, room_map, q, logits, visits, samples.labels[:iterations], explore)
    return tables, (q, logits, visits)


SETTINGS = [
    {"reward": "clipped-linear"},
    {"reward": "linear", "epsilon": 0.2},
    {"reward": "clipped-log", "bonus": "visits"},
    {"reward": "log", "discount": 0.9, "lambda_": 0.3},
    {"reward": "accuracy", "learning_rate": 1.0},
    {"reward": "disdain"},
    {"reward": "clipped-root-2", "ensemble_size": 3, "bonus": "disagreement", "epsilon": 0.05},
    {"reward": "clipped-log", "bonus": "disagreement", "bonus_kind": "quadratic"},
    {"reward": "power-2", "ensemble_size": 2},
    {"reward": "f-jensen-shannon", "discriminator_learning_rate": 1.0},
    {"reward": "clipped-linear", "batch_size": 3, "horizon": 1},
    {"reward": "clipped-linear", "lambda_": 1.0, "epsilon": 1.0},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: "-".join(map(str, s.values())))
def test_the_compiled_loop_equals_its_twin(settings):
    config = make_config("skills", "smoke", **{"batch_size": 16, **settings})
    tables, (q, logits, visits) = both(config, 200)
    np.testing.assert_allclose(tables.q, q, atol=2e-4)
    np.testing.assert_allclose(twin.log_softmax(tables.log_q), twin.log_softmax(logits), atol=2e-4)
    np.testing.assert_array_equal(tables.visits, visits)


def test_the_compiled_loop_equals_its_twin_on_the_large_map():
    config = make_config("skills", "fast", epsilon=0.01)
    tables, (q, logits, _) = both(config, 40)
    np.testing.assert_allclose(tables.q, q, atol=1e-4)
    np.testing.assert_allclose(twin.log_softmax(tables.log_q), twin.log_softmax(logits), atol=1e-4)


def test_the_start_cell_keeps_its_uniform_posterior():
    config = make_config("skills", "smoke", horizon=1, epsilon=1.0)
    tables, _ = both(config, 100)
    np.testing.assert_allclose(tables.log_q[:, 0], -math.log(config.codes), atol=1e-6)


def test_greedy_moves_are_mended_exactly():
    """After any number of updates, the mended table is the recomputed one, ties included."""
    rng = np.random.default_rng(0)
    for channels in (1, 2):
        weights = np.array([1.0, 20.0], dtype=f32)[:channels]
        q = rng.integers(3, size=(channels, 4, 6 * 5)).astype(f32)  # many ties
        greedy = kernels.greedy_moves(q, weights)
        for _ in range(300):
            code = np.uint32(rng.integers(4))
            moves = rng.integers(30, size=(1, 8)).astype(np.uint32)
            for move in moves[0]:
                q[rng.integers(channels), code, move] = rng.integers(3)
            before = greedy.copy()
            changed = kernels.refresh_greedy(q, weights, code, moves, 0, greedy)
            np.testing.assert_array_equal(greedy, kernels.greedy_moves(q, weights))
            assert changed == (before != greedy).any()


@njit
def _exp_and_log(x):
    exps, logs = np.empty_like(x), np.empty_like(x)
    for i in range(x.size):
        exps[i] = arithmetic.exp32(x[i])
        logs[i] = arithmetic.log32(exps[i])
    return exps, logs


def test_exp_and_log_are_accurate_to_single_precision():
    x = np.linspace(-86, 86, 100_001).astype(f32)
    exps, logs = _exp_and_log(x)
    np.testing.assert_allclose(exps, np.exp(x.astype(float)), rtol=3e-7)
    np.testing.assert_allclose(logs, np.log(exps.astype(float)), rtol=3e-7, atol=3e-7)


def test_normalise_is_a_softmax_and_keeps_the_posterior():
    logits = (10 * np.random.default_rng(1).normal(size=(2, 3, 7))).astype(f32)
    log_q, posterior = logits.copy(), np.empty_like(logits)
    kernels.normalise(log_q, posterior, 1, 2)
    expected = twin.log_softmax(logits[1, 2].astype(float))
    np.testing.assert_allclose(log_q[1, 2], expected, atol=1e-5)
    np.testing.assert_allclose(posterior[1, 2], np.exp(expected), rtol=1e-5)
    np.testing.assert_array_equal(log_q[0], logits[0])


@pytest.mark.parametrize("members", [2, 5])
def test_ensemble_mean_and_disagreement_are_the_librarys(members):
    logits = np.random.default_rng(2).normal(size=(members, 4, 9)) * 3
    log_q = twin.log_softmax(logits).astype(f32)
    posterior, log_mean = np.exp(log_q), np.empty((4, 9), dtype=f32)
    got = kernels.ensemble_mean(log_q, posterior, 3, log_mean, np.empty((1, 1, 9), f32))
    assert got == pytest.approx(float(disagreement(log_q[:, 3].astype(float))), rel=1e-4)
    np.testing.assert_allclose(log_mean[3], np.log(posterior[:, 3].mean(0)), atol=1e-5)
    got = kernels.quadratic_gap(posterior, 3, np.empty((1, 1, 9), f32))
    expected = float(disagreement(log_q[:, 3].astype(float), "quadratic"))
    assert got == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("name", REWARDS)
def test_compiled_rewards_are_the_librarys(name):
    rng = np.random.default_rng(3)
    log_q = twin.log_softmax(4 * rng.normal(size=(20, 6))).astype(f32)
    log_q[0] = np.log(1 / 6)  # a tie for accuracy
    reward_fn = compiled_reward(REWARDS[name])
    labels = rng.integers(6, size=20)
    library = reward("clipped-log" if name == "disdain" else name)(log_q, labels)
    log_p = f32(-math.log(6))
    got = [reward_fn(row, np.uint32(y), log_p) for row, y in zip(log_q, labels, strict=True)]
    np.testing.assert_allclose(got, library, rtol=1e-4, atol=1e-6)


def test_occupancy_is_what_walking_gives():
    config = make_config("skills", "smoke", epsilon=0.3)
    room_map = read_map(config.map)
    tables = initial_tables(config, room_map)
    greedy = kernels.greedy_moves(tables.q, bonus_weights(config))
    exact = kernels.final_occupancy(
        greedy, room_map.next_cell, np.uint32(room_map.start), config.horizon, 0.3
    )
    np.testing.assert_allclose(exact.sum(axis=1), 1.0)
    rng = np.random.default_rng(4)
    walks = 20_000
    cells = np.full(walks, room_map.start)
    for _ in range(config.horizon):
        moves = greedy[5, cells].astype(int)
        random = cells * 5 + rng.integers(5, size=walks)
        cells = room_map.next_cell[np.where(rng.random(walks) < 0.3, random, moves)].astype(int)
    sampled = np.bincount(cells, minlength=len(room_map.cells)) / walks
    np.testing.assert_allclose(sampled, exact[5], atol=5 * np.sqrt(0.25 / walks))
