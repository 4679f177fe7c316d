import math

import numpy as np
import pytest

from irrl.diagnostics import calibration_error
from irrl.tasks import make_config
from irrl.tasks.skills.evaluate import evaluate_tables
from irrl.tasks.skills.map import read_map
from irrl.tasks.skills.tables import initial_tables


def corridor(codes=4, **settings):
    """A corridor of 5 cells and tables in which code k walks k + 1 cells to the right."""
    config = make_config(
        "skills", "smoke", map="S....\n", codes=codes, horizon=4, **{"epsilon": 0.0, **settings}
    )
    room_map = read_map(config.map)
    tables = initial_tables(config, room_map)
    tables.q[:] = 0.0
    for code in range(codes):
        for cell in range(5):
            tables.q[0, code, cell * 5 + (4 if cell <= code else 0)] = 1.0
    return config, room_map, tables


def test_perfect_skills_are_counted_fully():
    config, room_map, tables = corridor()
    tables.log_q[0] = -50.0
    for code in range(4):
        tables.log_q[0, code + 1, code] = 0.0
    metrics, occupancy = evaluate_tables(config, room_map, tables)
    assert metrics["n_skills"] == pytest.approx(4.0)
    assert metrics["cells_reached"] == 4
    assert metrics["discriminator_accuracy_percent"] == pytest.approx(100.0)
    assert metrics["discriminator_entropy"] == pytest.approx(0.0, abs=1e-9)
    assert metrics["discriminator_calibration_error"] == pytest.approx(0.0, abs=1e-9)
    assert metrics["reward_mean"] == pytest.approx(0.75)
    assert metrics["reward_std"] == pytest.approx(0.0, abs=1e-9)
    assert metrics["share_clipped"] == 0.0
    np.testing.assert_allclose(occupancy, [0, 0.25, 0.25, 0.25, 0.25])


def test_an_ignorant_discriminator_counts_one_skill():
    config, room_map, tables = corridor()
    tables.log_q[0] = -math.log(4)
    metrics, _ = evaluate_tables(config, room_map, tables)
    assert metrics["n_skills"] == pytest.approx(1.0)
    assert metrics["discriminator_entropy"] == pytest.approx(math.log(4))
    assert metrics["share_clipped"] == pytest.approx(1.0)


def test_the_metric_is_the_plain_log_whatever_the_reward():
    counts = set()
    for name in ("clipped-linear", "log", "accuracy"):
        config, room_map, tables = corridor(reward=name)
        counts.add(evaluate_tables(config, room_map, tables)[0]["n_skills"])
    assert len(counts) == 1


def test_exploration_costs_skills():
    config, room_map, tables = corridor(epsilon=0.1)
    tables.log_q[0] = -8.0
    for code in range(4):
        tables.log_q[0, code + 1, code] = 0.0
    metrics, occupancy = evaluate_tables(config, room_map, tables)
    assert metrics["n_skills"] < 0.9 * metrics["n_skills_greedy"]
    assert metrics["cells_reached"] == 4 and occupancy[0] > 0
    assert occupancy.sum() == pytest.approx(1.0)


def test_ensembles_report_their_disagreement():
    config, room_map, tables = corridor(ensemble_size=2)
    metrics, _ = evaluate_tables(config, room_map, tables)
    assert 0 < metrics["ensemble_disagreement"] < math.log(2)


def test_calibration_error():
    confidence, share = np.array([0.95, 0.55]), np.array([0.5, 0.5])
    assert calibration_error(confidence, confidence * share, share) == pytest.approx(0.0)
    assert calibration_error(confidence, 0.0 * share, share) == pytest.approx(0.75)


def test_evaluating_changes_nothing():
    config, room_map, tables = corridor()
    before = tables.q.copy(), tables.log_q.copy()
    first, second = (evaluate_tables(config, room_map, tables)[0] for _ in range(2))
    assert first == second
    np.testing.assert_array_equal(tables.q, before[0])
    np.testing.assert_array_equal(tables.log_q, before[1])
