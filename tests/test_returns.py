import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from irrl.returns import gae, gains, lambda_returns

numbers = st.lists(st.floats(-10, 10), min_size=1, max_size=12)


@given(numbers, st.floats(0, 1))
def test_with_lambda_one_they_are_discounted_sums(rewards, discount):
    reward_t = np.array(rewards)
    found = lambda_returns(reward_t, np.full_like(reward_t, discount), np.ones_like(reward_t))
    for t in range(len(rewards)):
        by_hand = sum(discount**k * r for k, r in enumerate(rewards[t:]))
        assert found[t] == pytest.approx(by_hand, abs=1e-9)


@given(numbers, st.floats(0, 1), st.floats(0, 1))
def test_minus_values_they_are_the_generalised_advantage(rewards, discount, lambda_):
    reward_t = np.array(rewards)
    value_t = np.random.default_rng(0).random(len(rewards))
    found = lambda_returns(reward_t, np.full_like(reward_t, discount), value_t, lambda_) - value_t
    errors = reward_t + discount * np.append(value_t[1:], 0.0) - value_t
    for t in range(len(rewards)):
        by_hand = sum((discount * lambda_) ** k * e for k, e in enumerate(errors[t:]))
        assert found[t] == pytest.approx(by_hand, abs=1e-9)


@given(st.integers(0, 1000), st.integers(1, 7), st.floats(0, 1), st.floats(0, 1))
def test_gae_against_a_loop_over_episodes(seed, steps, discount, lambda_):
    """Episodes of different lengths side by side, paid at their ends."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, steps + 1, 4)
    rewards, values = rng.normal(size=(2, steps, 4))
    going_on = np.arange(steps)[:, None] < lengths - 1
    found = gae(rewards, discount * going_on, values, lambda_)
    for n, length in enumerate(lengths):
        advantage = 0.0
        for t in reversed(range(length)):
            later = values[t + 1, n] if t + 1 < length else 0.0
            error = rewards[t, n] + discount * later - values[t, n]
            advantage = error + discount * lambda_ * advantage
            assert found[t, n] == pytest.approx(advantage, abs=1e-9)


def test_nothing_crosses_the_end_of_an_episode():
    reward_t = np.array([1.0, 2.0, 100.0])
    found = lambda_returns(reward_t, np.array([1.0, 0.0, 1.0]), np.full(3, 50.0), 0.5)
    assert found.tolist() == [1.0 + 0.5 * 50.0 + 0.5 * 2.0, 2.0, 100.0]


def test_torch_and_batches_alike_and_the_input_stays():
    reward_t, discount_t, value_t = torch.rand(3, 5, 4, dtype=torch.float64)
    before = reward_t.clone()
    found = lambda_returns(reward_t, discount_t, value_t, 0.9)
    arrays = (x.numpy() for x in (reward_t, discount_t, value_t))
    np.testing.assert_allclose(found, lambda_returns(*arrays, 0.9))
    assert (reward_t == before).all()


def test_gains_add_up():
    worth = np.random.default_rng(0).random((6, 4))
    ones = np.ones((5, 4))
    np.testing.assert_allclose(lambda_returns(gains(worth), ones, ones)[0], worth[-1] - worth[0])


def test_bad_input():
    ones = np.ones(3)
    for lambda_ in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="lambda_"):
            lambda_returns(ones, ones, ones, lambda_)
    with pytest.raises(ValueError, match="one shape"):
        lambda_returns(ones, ones, np.ones(2))
