"""Rewards of one's own: a function g of the probability."""

import dataclasses
import math
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from irrl.rewards import (
    REWARDS,
    power_shape,
    reward,
)
from irrl.shapes import g_shape
from tests.helpers.posteriors import BACKENDS, batch, log_prior_of


def square(q):
    return q**2


class Doubled:
    def __call__(self, q):
        return 2 * q


OWN = f"{__name__}:square"


@given(st.floats(0.05, 8.0), st.floats(-50, 0), st.floats(0.01, 0.9), st.booleans())
def test_a_reward_of_ones_own_is_the_difference_of_g(exponent, log_q, prior, clipped):
    own = reward(lambda q: q**exponent, clipped=clipped)
    log_p = math.log(prior)
    expected = power_shape(exponent)(np, np.float64(log_q), log_p)
    expected = max(expected, 0.0) if clipped else expected
    assert own.of_log_posterior(np, np.float64(log_q), log_p) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("clipped", [False, True])
def test_a_reward_of_ones_own_is_checked_and_computed_like_the_named_ones(backend, clipped):
    log_probs, labels = batch(np.random.default_rng(4))
    make = BACKENDS[backend]
    own, named = (
        reward(square, clipped=clipped),
        reward("clipped-power-2" if clipped else "power-2"),
    )
    arguments = (make(log_probs), make(labels), make(log_prior_of([1, 2, 3, 4, 5])))
    got = own(*arguments)
    assert type(got) is type(named(*arguments))
    np.testing.assert_allclose(np.asarray(got), np.asarray(named(*arguments)), atol=1e-6)
    members = make(np.stack([log_probs, log_probs]))
    np.testing.assert_allclose(
        np.asarray(own(members, *arguments[1:], ensemble=True)), np.asarray(got), atol=1e-6
    )
    with pytest.raises(ValueError, match="labels must lie in"):
        own(make(log_probs), make(labels + 9))


def test_what_a_reward_of_ones_own_is_called():
    own = reward(square)
    assert (own.name, own.formula, own.range) == (OWN, "g(q) - g(p)", "[0-g(p), 1-g(p)]")
    clipped = reward(square, clipped=True)
    assert clipped.name == f"clipped-{OWN}" and clipped.formula == "max(g(q) - g(p), 0)"
    assert clipped.range == "[0, 1-g(p)]" and clipped.has_kink and not own.has_kink
    assert reward(np.log).range == "[-inf, 0-g(p)]"
    assert reward(lambda q: q).name == "g" and reward(Doubled()).name == "g"

    def local(q):
        return q

    assert reward(local).name == "local"
    assert own.g is square and REWARDS["linear"].g is None


def test_by_name():
    assert reward(OWN) == reward(square) and reward(f"clipped-{OWN}") == reward(
        square, clipped=True
    )
    assert reward(OWN, validate=False) == dataclasses.replace(reward(square), validate=False)
    assert reward("clipped-numpy:sqrt").clipped
    assert reward(reward(OWN)) is reward(OWN)  # found, checked and made once
    assert reward(reward("log", validate=False)).validate is False


def test_a_logarithm_of_ones_own_stays_finite():
    def g(q):
        return torch.log(q) if torch.is_tensor(q) else np.log(q)

    impossible = np.array([[0.0, -np.inf], [0.0, -1000.0]], dtype=np.float32)
    for make in (np.asarray, torch.asarray):
        got = reward(g)(make(impossible), make([1, 1]))
        np.testing.assert_allclose(np.asarray(got), -87.0 + math.log(2), rtol=1e-5)


def test_a_g_with_parameters_passes_no_gradient():
    scale = torch.tensor(2.0, requires_grad=True)

    def learned(q):
        return scale * q if torch.is_tensor(q) else 2.0 * q

    log_probs = torch.log_softmax(torch.randn(3, 4, requires_grad=True), -1)
    assert not reward(learned)(log_probs, torch.tensor([0, 1, 2])).requires_grad


@pytest.mark.parametrize("name", [OWN, f"clipped-{OWN}"])
def test_a_reward_of_ones_own_can_be_pickled(name):
    own = reward(name, validate=False)
    assert pickle.loads(pickle.dumps(own)) == own
    assert hash(pickle.loads(pickle.dumps(own))) == hash(own)
    renamed = dataclasses.replace(own, name="mine")
    assert pickle.loads(pickle.dumps(renamed)) == renamed


def test_what_a_module_calls_a_lambda_can_be_pickled_by_that_name(tmp_path, monkeypatch):
    (tmp_path / "my_rewards.py").write_text("cube = lambda q: q**3\nthree = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    own = reward("my_rewards:cube")
    assert own.name == "my_rewards:cube" and pickle.loads(pickle.dumps(own)) == own
    with pytest.raises(ValueError, match="must be a function of the probability, got int"):
        reward("my_rewards:three")


def test_a_reward_of_ones_own_can_be_compiled():
    shape = njit(g_shape(njit(reward(square).g)))
    compiled = njit(lambda log_q, log_p: shape(np, log_q, log_p))
    log_q, log_p = np.float32(math.log(0.5)), np.float32(math.log(0.1))
    assert compiled(log_q, log_p) == pytest.approx(0.25 - 0.01, rel=1e-5)


@pytest.mark.parametrize(
    ("g", "message"),
    [
        (lambda q: -q, "must increase with the probability: it falls at"),
        (lambda q: (q - 0.5) ** 2, "must increase with the probability: it falls at"),
        (lambda q: 0.0 * q + 1.0, "must increase with the probability: it is constant"),
        (lambda q: q.sum(), "must return an array of the shape it is given"),
        (lambda q: 1.0, "must return an array of the shape it is given"),
        (lambda q: q > 0.5, "must return floating numbers, got bool"),
        (lambda q: np.log(q - 0.5), "must be finite"),
        (lambda q: 1 / q, "must be finite"),
        (lambda q: -1.0 / q**2, "must be finite in single precision"),
        (lambda q: q / q.max(), "must be a function of each probability alone"),
        (lambda q: math.sqrt(q), "must take an array: TypeError"),
        (lambda q, p: q - p, "must take an array: TypeError"),
        (float, "must be a function of the probability, got type"),
        (3, "unknown reward 3"),
        (None, "unknown reward None"),
    ],
)
def test_a_function_that_is_no_g(g, message):
    with pytest.raises(ValueError, match=message) as raised:
        reward(g)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_module:g", "cannot import module 'no_such_module'.*PYTHONPATH"),
        ("clipped-no_such_module:g", "cannot import module 'no_such_module'"),
        ("math:no_such_function", "module 'math' has no function 'no_such_function'"),
        ("math:pi", "must be a function"),
        (":g", "cannot import module ''"),
        ("math:", "module 'math' has no function ''"),
        (".rewards:g", "cannot import module"),
    ],
)
def test_a_name_that_leads_nowhere(name, message):
    with pytest.raises(ValueError, match=message) as raised:
        reward(name)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("clipped", [True, False])
@pytest.mark.parametrize("source", ["linear", OWN, REWARDS["linear"]])
def test_a_name_says_itself_whether_it_is_clipped(source, clipped):
    with pytest.raises(ValueError, match="clipped goes with a function"):
        reward(source, clipped=clipped)


def test_callables_that_cannot_be_compared_are_refused():
    class Unhashable(Doubled):
        __hash__ = None

    with pytest.raises(ValueError, match="hashable"):
        reward(Unhashable())
