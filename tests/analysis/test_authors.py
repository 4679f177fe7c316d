"""The authors' numbers stand beside ours after the same training, or not at all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irrl.analysis.authors import beside_authors, order_verdict, read_at, verdict, verdict_on
from irrl.analysis.stats import Estimate, mean_estimate
from irrl.tasks import find_task, make_config
from irrl.tasks.published import Anchor, Published, in_words
from irrl.tasks.registry import all_tasks

ANYWHERE = (-np.inf, np.inf)


def beside(task, preset="fast", last=None, **settings):
    """The authors beside a run of so many steps; of its whole length if that is left open."""
    config = make_config(task, preset, **settings)
    length = config.settings()[config.length]
    return beside_authors(find_task(task), config.reward, config.settings(), float(last or length))


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (beside("skills"), "85-90 at 20 to 30 million iterations"),
        (beside("skills", "paper"), "85-90 at 20 to 30 million iterations"),
        (beside("skills", reward="disdain"), "87-93 at 20 to 30 million iterations"),
        (beside("skills", iterations=790_000), None),  # 19.75 million of theirs
        (beside("skills", "small-map"), None),  # another map has another answer
        (beside("skills", "visits"), None),  # and a bonus is another method
        (beside("skills", reward="power-2"), None),
        (beside("digits"), "47.3 at 100 epochs; 89.8 at 1500 epochs"),
        (beside("digits", "paper"), "89.8 at 1500 epochs"),
        (beside("digits", "paper", epochs=1450), "89.8 at 1400 epochs; 89.8 at 1500 epochs"),
        (beside("digits", "paper", epochs=99), None),
        (beside("digits", "paper", train_images=27_000, epochs=199), None),  # half epochs
        (beside("digits", model="dt-ram", reward="accuracy", epochs=60), None),
        (
            beside("digits", "paper", model="dt-ram", reward="clipped-log", epochs=600),
            "55.3 at 600 epochs; ~75 at 1500 epochs",
        ),
        (beside("digits", placement="uniform"), None),
        (beside("digits", "smoke", epochs=1500, glimpses=18), None),  # 14 epochs of theirs
        (beside("counting"), "59.4 at 100,000 episodes; 91.4 at 2 million episodes"),
        (beside("counting", "smoke"), None),
        (beside("counting", "paper", reward="accuracy"), "77.8 at 2 million episodes"),
    ],
)  # fmt: skip
def test_a_number_of_theirs_carries_its_training_and_stands_where_ours_is_as_long(found, text):
    assert (found and found.text) == text


@pytest.mark.parametrize("task", [name for name, task in all_tasks().items() if task.published])
def test_a_smoke_run_is_not_compared_with_the_authors(task):
    for reward in {r for p in find_task(task).published.values() for r in p.numbers}:
        assert beside(task, "smoke", reward=reward) is None


@pytest.mark.parametrize(
    ("found", "same"),
    [
        (beside("digits"), False),  # another model, and fresh canvases
        (beside("digits", "paper", epochs=100), True),
        (beside("digits", "paper", epochs=100, fresh_canvases=True), False),
        (beside("digits", "paper", epochs=100, leak_reward_gradient=True), True),
        (beside("digits", "paper", epochs=100, batch_size=256), True),
        (beside("digits", "paper", epochs=100, core="gru"), False),
        (beside("skills"), True),
        (beside("skills", reward="disdain", epsilon=0.0), False),
        (beside("counting"), True),  # episodes are what counts
    ],
)
def test_a_verdict_needs_the_recipe(found, same):
    assert found.same_recipe is same
    said = verdict_on(found, np.array([0.0, found.step]), np.array([[0.0, 99.0]]), ANYWHERE)
    assert (said == "-") is not same


def test_lengths_agree_exactly_since_ours_is_read_off_our_curve():
    """20 to 30 million iterations with a step size of 0.004 are 1.2 million with 0.1."""
    found = beside("skills")
    assert found.step == pytest.approx(1_200_000) and found.length == "20 to 30 million iterations"
    assert beside("skills", last=1_000_000).step == 1_000_000  # 25 million: within theirs
    assert beside("skills", learning_rate=0.4).step == pytest.approx(300_000)
    assert beside("counting").step == 100_000
    steps, values = np.array([0.0, 1e6, 1.4e6, 1.6e6]), np.array([[0, 80, 90, 20], [0, 84, 94, 30]])
    said = verdict_on(found, steps, values.astype(float), ANYWHERE)
    assert said == "87.0 by then: agrees"
    assert verdict_on(None, steps, values, ANYWHERE) == "-"


def test_at_the_end_of_a_run_a_verdict_needs_no_more_words():
    found = beside("digits", "paper", epochs=100)
    steps = np.arange(101.0)
    assert verdict_on(found, steps, np.full((1, 101), 51.6), ANYWHERE) == "above by 4.0"
    assert verdict_on(found, steps, np.full((1, 101), 47.2), ANYWHERE) == "agrees"


@given(st.floats(-10, 60), st.lists(st.floats(-5, 5), min_size=3, max_size=8))
def test_between_evaluations_a_curve_is_a_straight_line(step, values):
    steps = 7.0 * np.arange(len(values))
    (found,) = read_at(steps, np.array([values]), step)
    inside = min(max(step, 0.0), steps[-1])
    n = min(int(inside // 7.0), len(values) - 2)
    share = inside / 7.0 - n
    assert found == pytest.approx((1 - share) * values[n] + share * values[n + 1], abs=1e-9)


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (Estimate(95.0, 91.0, 99.0, 5), "above by 5.0"),
        (Estimate(91.0, 89.0, 93.0, 5), "above by 1.0, within the spread"),
        (Estimate(86.0, 80.0, 92.0, 5), "agrees"),
        (Estimate(84.0, 80.0, 88.0, 5), "below by 1.0, within the spread"),
        (Estimate(80.0, 79.0, 81.0, 5), "below by 5.0"),
        (mean_estimate([80.0]), "below by 5.0"),
        (mean_estimate([90.1]), "above by 0.1"),
        (mean_estimate([80.0, 81.0, 82.0]), "below by 4.0"),  # of few, the seeds, not t
        (mean_estimate([80.0, 81.0, 85.0]), "below by 3.0, within the spread"),
        (mean_estimate([85.0]), "agrees"),
        (mean_estimate([90.0]), "agrees"),
    ],
)
def test_verdicts_follow_from_the_numbers(found, text):
    assert verdict(found, Anchor("85-90", 85.0, 90.0)) == text


def test_the_order_is_told_with_its_p():
    anchors = {"a": Anchor("9", 9, 9), "b": Anchor("5", 5, 5), "c": Anchor("~9", 8.5, 9.5)}
    one = beside("skills")
    theirs = {name: one._replace(anchor=anchor) for name, anchor in anchors.items()}
    values = {"a": [9.0, 9.1, 9.2], "b": [5.0, 5.1, 5.2], "c": [7.0, 7.1, 7.2]}
    told = order_verdict(values, theirs)  # a and c are not told apart by the authors
    assert told == "order as in the paper: yes (all 2 pairs, largest p = 0.05)"
    unsure = {**values, "b": [5.0, 5.1, 9.15]}
    assert "yes in the means, but not beyond chance" in order_verdict(unsure, theirs)
    told = order_verdict({**values, "b": [8.0, 8.1, 8.2]}, theirs)
    assert told == "order as in the paper: no (1 of 2 pairs; b above c)"
    assert order_verdict(values, {"a": theirs["a"], "b": None}) is None
    other = {name: its._replace(same_recipe=False) for name, its in theirs.items()}
    assert order_verdict(values, other) is None


def test_lengths_in_words():
    assert in_words(1500, 1500, "epochs") == "1500 epochs"
    assert in_words(100_000, 100_000, "episodes") == "100,000 episodes"
    assert in_words(1.5e6, 1.5e6, "episodes") == "1.5 million episodes"
    assert in_words(20e6, 30e6, "iterations") == "20 to 30 million iterations"


def test_points_come_in_order_and_the_number_last():
    found = Published(
        "epochs", (9.0, 9.0), {"a": Anchor("7", 6.0, 8.0)}, (3, 6), {"a": (1.0, 2.5)}, 0.5
    )
    points = [(p.anchor.text, p.anchor.low, p.anchor.high, p.first) for p in found.points("a")]
    assert points == [("1.0", 0.5, 1.5, 3), ("2.5", 2.0, 3.0, 6), ("7", 6.0, 8.0, 9.0)]
    assert found.points("b") == [] and found.texts() == {"a": "7 at 9 epochs"}
