"""Intervals over batches, rows and the figure."""

import math

import numpy as np
import pytest

from irrl.analysis.gradient import (
    AGREEMENT,
    NOT_NEGATIVE,
    PARTS,
    cell,
    gradient_rows,
    jackknife,
    plot_gradients,
    table,
    to_json,
)
from irrl.analysis.stats import Estimate, mean_estimate
from irrl.gradient_measured import MeasuredGradients, make_arms
from irrl.gradient_noise import (
    BatchGroup,
    GradientMoments,
    SampledMoments,
    sampled_moments,
    snr,
)


def sampled_from(g):
    return sampled_moments([BatchGroup.of(batch) for batch in g])


def test_of_a_mean_it_is_the_interval_of_the_mean():
    x = np.random.default_rng(0).normal(size=12)

    def holding(value):
        return GradientMoments(np.array([[value]]), np.eye(1))

    without = tuple(holding((x.sum() - each) / 11) for each in x)
    found = jackknife(SampledMoments(holding(x.mean()), without), lambda m: float(m.signal[0, 0]))
    assert found is not None
    np.testing.assert_allclose(found[:3], mean_estimate(x)[:3], rtol=1e-9)


def test_intervals_cover_what_they_promise():
    rng, mean, hits = np.random.default_rng(1), np.full(20, 0.3), 0
    true = float(mean @ mean) / 20.0
    for _ in range(200):
        sampled = sampled_from(rng.normal(mean, 1.0, (30, 1, 20)))
        found = jackknife(sampled, lambda m: snr(m, 0), NOT_NEGATIVE)
        hits += found.low <= true <= found.high
    assert 0.88 <= hits / 200 <= 0.995


def test_an_interval_does_not_leave_the_range_and_none_stays_none():
    sampled = sampled_from(np.random.default_rng(2).normal(size=(5, 1, 3)))
    found = jackknife(sampled, lambda m: snr(m, 0), NOT_NEGATIVE)
    assert found.low >= 0.0 and found.value >= 0.0
    assert jackknife(sampled, lambda m: None) is None
    exact = jackknife(SampledMoments(sampled.moments), lambda m: 0.5)
    assert exact == Estimate(0.5, None, None, 0)
    answers = iter([0.5, None, 0.4, 0.4, 0.4, 0.4])
    assert jackknife(sampled, lambda m: next(answers)) == Estimate(0.5, None, None, 5)


@pytest.fixture
def measured():
    rng = np.random.default_rng(3)
    arms = make_arms(("linear", "accuracy"), as_trained="linear")
    g = rng.normal(1.0, 1.0, (6, 1, 4)) + rng.normal(0.0, 0.3, (6, len(arms), 4))
    oracle = rng.uniform(0.2, 0.8, 50)
    return MeasuredGradients(7, 32, 6, arms, sampled_from(g), oracle + 0.1, oracle, 0.1)


def test_rows_have_what_tables_show(measured):
    rows = gradient_rows([measured], ["linear", "accuracy"])
    assert [(r["reward"], r["as_trained"]) for r in rows] == [
        ("linear", True), ("linear", False), ("accuracy", False),
    ]  # fmt: skip
    linear, accuracy = rows[1:]
    assert linear["eq5_bias"] == pytest.approx(0.1) and linear["bias"] == pytest.approx(0.1)
    assert accuracy["eq5_bias"] is accuracy["eq6_std"] is None
    assert linear["like_linear"].value == pytest.approx(1.0)
    own, oracle = measured.row("linear", "run"), measured.row("log", "oracle")
    m = measured.sampled.moments
    by_hand = m.signal[own, oracle] / math.sqrt(
        m.signal[oracle, oracle] * (m.signal[own, own] + m.noise[own, own])
    )
    assert linear["cosine_information"].value == pytest.approx(by_hand)
    for columns in (AGREEMENT, PARTS):
        header, shown = table(rows, columns)
        assert all(len(row) == len(header) for row in shown)
        assert shown[0][:2] == ["7", "linear (as trained)"] and shown[2][1] == "accuracy"
    assert set(to_json(linear)["snr"]) == {"value", "low", "high"}


def test_cells():
    assert cell(None) == "-" and cell(0.0004321) == "0.00043" and cell(0.1234) == "0.123"
    assert cell(Estimate(0.5, 0.25, 0.75, 9)) == "0.500 [0.250, 0.750]"
    assert cell(Estimate(0.5, 0.25, 0.75, 9), with_interval=False) == "0.500"


def test_the_figure_shows_every_reward(measured):
    rows = gradient_rows([measured, measured._replace(step=9)], ["linear", "accuracy"])
    figure = plot_gradients({"a $run": rows, "b": rows}, "epochs")
    assert len(figure.axes) == 6
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["linear", "accuracy"]
    assert [t.get_text() for t in figure.axes[0].get_xticklabels()] == ["7", "9"]
