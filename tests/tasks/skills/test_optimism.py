"""Settings in units of the largest reward: exchanging rewards does not change exploration."""

import json
import math

import numpy as np
import pytest

from irrl.errors import UserError
from irrl.rewards import reward
from irrl.tasks import begin, make_config
from irrl.tasks.skills.map import read_map
from irrl.tasks.skills.reward import largest_reward
from irrl.tasks.skills.tables import bonus_weights, initial_tables
from tests.helpers.runs import content, run_in

OWN = """
def line(q):
    return q

def eightfold(q):
    return 8.0 * q
"""
LINE, EIGHTFOLD = "clipped-own_scales:line", "clipped-own_scales:eightfold"


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    (tmp_path / "own_scales.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)


def metrics_of(folder, **settings):
    """All that was logged, but for the reward itself."""
    logged = content(run_in(folder, "skills", **settings).folder)["metrics"]
    rows = [json.loads(line) for line in logged.splitlines()]
    return [
        {name: value for name, value in row.items() if not name.startswith("reward")}
        for row in rows
    ]


@pytest.mark.parametrize("bonus", ["none", "visits", "disagreement"])
def test_a_reward_of_eight_times_the_size_trains_the_same_policy(tmp_path, bonus):
    same = {"optimism": 1.5, "bonus": bonus, "epsilon": 0.01}
    one = metrics_of(tmp_path / "one", reward=LINE, **same)
    assert metrics_of(tmp_path / "eight", reward=EIGHTFOLD, **same) == one
    assert metrics_of(tmp_path / "less", reward=LINE, **{**same, "optimism": 0.2}) != one


@pytest.mark.parametrize("bonus", ["none", "visits"])
def test_with_initial_values_of_its_own_it_trains_another(tmp_path, bonus):
    same = {"initial_value": 1.5, "bonus": bonus, "epsilon": 0.01}
    one = metrics_of(tmp_path / "one", reward=LINE, **same)
    assert metrics_of(tmp_path / "eight", reward=EIGHTFOLD, **same) != one


@pytest.mark.parametrize(
    ("name", "largest"),
    [
        ("clipped-linear", 1 - 1 / 24),
        ("linear", 1 - 1 / 24),
        ("clipped-log", math.log(24)),
        ("clipped-root-2", 1 - 24**-0.5),
        ("accuracy", 1.0),
        ("disdain", math.log(24)),
        (EIGHTFOLD, 8 * (1 - 1 / 24)),
    ],
)
def test_the_unit_is_what_certainty_earns(name, largest):
    assert largest_reward(reward(name), 24) == pytest.approx(largest, rel=1e-6)
    config = make_config("skills", "smoke", reward=name, optimism=2.0)
    q = initial_tables(config, read_map(config.map)).q[0]
    assert 1.9 * largest < q.max() < 2 * largest
    assert q.min() >= 0


@pytest.mark.parametrize("where", [{"initial_value": 0.5}, {"optimism": 0.5}])
def test_the_bonus_table_may_start_elsewhere(where):
    def q_of(**settings):
        config = make_config("skills", "smoke", bonus="disagreement", **where, **settings)
        return initial_tables(config, read_map(config.map)).q

    same, other, zero = q_of(), q_of(bonus_initial_value=2.0), q_of(bonus_initial_value=0.0)
    np.testing.assert_array_equal(same[0], other[0])
    np.testing.assert_allclose(other[1] / same[1].max(), same[1] * 2.0 / 0.5 / same[1].max(), 1e-6)
    assert not zero[1].any() and (zero[0] == same[0]).all()


def test_the_bonus_has_units_of_its_own():
    config = make_config("skills", "smoke", reward="clipped-log", bonus="visits", optimism=0.5)
    assert bonus_weights(config) == pytest.approx([1, 20 * math.log(24)], rel=1e-6)
    assert 0.49 < initial_tables(config, read_map(config.map)).q[1].max() < 0.5


def test_the_authors_way_is_what_is_left_open():
    config = make_config("skills", "smoke", bonus="visits")
    assert (config.initial_value, config.optimism) == (1.0, None)
    assert bonus_weights(config).tolist() == [1, 100]
    assert make_config("skills", "paper").initial_value == 1.0


def test_without_optimism_at_all_every_value_is_zero():
    config = make_config("skills", "smoke", optimism=0.0)
    assert not np.any(initial_tables(config, read_map(config.map)).q)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"optimism": -0.5}, "optimism must be zero or positive, got -0.5"),
        ({"optimism": math.nan}, "optimism must be finite"),
        ({"optimism": 1.0, "initial_value": 1.0}, "initial-value and optimism both say"),
    ],
)
def test_what_makes_no_sense_is_told(settings, words):
    with pytest.raises(UserError, match=words):
        make_config("skills", "smoke", **settings)


def test_a_reward_that_does_not_pay_for_certainty_has_no_unit(tmp_path):
    config = make_config("skills", "smoke", reward="f-reverse-kl", optimism=1.0)
    with pytest.raises(UserError, match="optimism needs a reward that pays for certainty"):
        begin(tmp_path / "run", config)
    assert not (tmp_path / "run").exists()
