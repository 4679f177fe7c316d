"""The unit of a reward."""

import math

import numpy as np
import pytest

import irrl
from irrl.rewards import REWARDS
from irrl.units import largest_reward, require_unit, reward_unit

WITH_UNIT = [name for name in REWARDS if name != "f-reverse-kl"]


@pytest.mark.parametrize("name", WITH_UNIT)
@pytest.mark.parametrize("prior", [[0.5, 0.5], [0.1, 0.2, 0.7]])
def test_nothing_is_paid_above_it(name, prior):
    """Certainty about the least likely label earns it; nothing on a grid of posteriors more."""
    log_prior = np.log(prior)
    largest = largest_reward(name, log_prior)
    q = np.linspace(1e-6, 1, 501)
    posteriors = np.repeat(((1 - q) / (len(prior) - 1))[:, None], len(prior), axis=1)
    found = []
    for label in range(len(prior)):
        posteriors[:] = ((1 - q) / (len(prior) - 1))[:, None]
        posteriors[:, label] = q
        with np.errstate(divide="ignore"):
            log_q = np.log(posteriors)
        labels = np.full(len(q), label)
        given = np.stack([log_q, log_q]) if REWARDS[name].needs_ensemble else log_q
        found.append(irrl.reward(name)(given, labels, log_prior).max())
    assert max(found) == pytest.approx(largest, rel=1e-9)


def test_a_number_of_labels_stands_for_equally_likely_ones():
    assert largest_reward("clipped-log", 7) == pytest.approx(math.log(7))
    assert largest_reward("clipped-log", 7) == largest_reward("log", np.full(7, -math.log(7)))


def test_a_label_that_cannot_be_sets_no_unit():
    with np.errstate(divide="ignore"):
        log_prior = np.log([0.5, 0.5, 0.0])
    assert largest_reward("clipped-log", log_prior) == pytest.approx(math.log(2))


def test_one_of_your_own():
    assert largest_reward(lambda q: 8 * q, 2) == 4.0


def test_absolute_is_one():
    assert reward_unit("absolute", "clipped-log", 10) == 1.0
    assert reward_unit("largest", "clipped-log", 10) == largest_reward("clipped-log", 10)


@pytest.mark.parametrize(
    "prior", [1, [0.0], [[0.5, 0.5]], [-math.inf, -math.inf], [0.5, -1.0], [math.nan, -1.0]]
)
def test_what_is_no_prior_is_told(prior):
    with pytest.raises(ValueError, match="log_prior must be"):
        largest_reward("linear", prior)


def test_a_reward_that_does_not_pay_for_certainty_has_none():
    require_unit("absolute", "f-reverse-kl")
    with pytest.raises(ValueError, match="'f-reverse-kl' has no unit"):
        require_unit("largest", "f-reverse-kl")


def test_an_unknown_unit_is_told():
    with pytest.raises(ValueError, match="unknown reward unit 'gold'"):
        reward_unit("gold", "linear", 2)
