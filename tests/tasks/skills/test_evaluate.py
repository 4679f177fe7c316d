import math

import numpy as np
import pytest

from irrl.diagnostics import calibration_error
from irrl.tasks import make_config
from irrl.tasks.skills.evaluate import evaluate
from irrl.tasks.skills.map import read_map
from irrl.tasks.skills.tables import initial_tables


def corridor(codes=4, **settings):
    """A corridor of 5 cells and tables in which code k walks k + 1 cells to the right."""
    config = make_config(
        "skills", "smoke", map="S....\n", codes=codes, horizon=4, **{"epsilon": 0.0, **settings}
    )
    room_map = read_map(config.map)
    tables = initial_tables(config, room_map)
    q = np.zeros_like(tables.q)
    for code in range(codes):
        for cell in range(5):
            q[0, code, cell * 5 + (4 if cell <= code else 0)] = 1.0
    return config, room_map, q, tables.log_q


def test_perfect_skills_are_counted_fully():
    config, room_map, q, log_q = corridor()
    log_q[0] = -50.0
    for code in range(4):
        log_q[0, code + 1, code] = 0.0
    row, occupancy = evaluate(config, room_map, q, log_q)
    assert row["n_skills"] == pytest.approx(4.0)
    assert row["cells_reached"] == 4
    assert row["discriminator_accuracy"] == pytest.approx(1.0)
    assert row["discriminator_entropy"] == pytest.approx(0.0, abs=1e-9)
    assert row["discriminator_calibration_error"] == pytest.approx(0.0, abs=1e-9)
    assert row["reward_mean"] == pytest.approx(0.75)
    assert row["reward_deviation"] == pytest.approx(0.0, abs=1e-9)
    assert row["share_clipped"] == 0.0
    np.testing.assert_allclose(occupancy, [0, 0.25, 0.25, 0.25, 0.25])


def test_an_ignorant_discriminator_counts_one_skill():
    config, room_map, q, log_q = corridor()
    log_q[0] = -math.log(4)
    row, _ = evaluate(config, room_map, q, log_q)
    assert row["n_skills"] == pytest.approx(1.0)
    assert row["discriminator_entropy"] == pytest.approx(math.log(4))
    assert row["share_clipped"] == pytest.approx(1.0)


def test_the_metric_is_the_plain_log_whatever_reward_is_paid():
    counts = set()
    for name in ("clipped-linear", "log", "accuracy"):
        config, room_map, q, log_q = corridor(reward=name)
        counts.add(evaluate(config, room_map, q, log_q)[0]["n_skills"])
    assert len(counts) == 1


def test_exploration_costs_skills():
    config, room_map, q, log_q = corridor(epsilon=0.1)
    log_q[0] = -8.0
    for code in range(4):
        log_q[0, code + 1, code] = 0.0
    row, occupancy = evaluate(config, room_map, q, log_q)
    assert row["n_skills"] < 0.9 * row["n_skills_greedy"]
    assert row["cells_reached"] == 4 and occupancy[0] > 0
    assert occupancy.sum() == pytest.approx(1.0)


def test_ensembles_report_their_disagreement():
    config, room_map, q, log_q = corridor(ensemble_size=2)
    row, _ = evaluate(config, room_map, q, log_q)
    assert 0 < row["ensemble_disagreement"] < math.log(2)


def test_calibration_error():
    confidence, share = np.array([0.95, 0.55]), np.array([0.5, 0.5])
    assert calibration_error(confidence, confidence * share, share) == pytest.approx(0.0)
    assert calibration_error(confidence, 0.0 * share, share) == pytest.approx(0.75)


def test_evaluating_changes_nothing():
    config, room_map, q, log_q = corridor()
    before = q.copy(), log_q.copy()
    first, second = (evaluate(config, room_map, q, log_q)[0] for _ in range(2))
    assert first == second
    np.testing.assert_array_equal(q, before[0])
    np.testing.assert_array_equal(log_q, before[1])
