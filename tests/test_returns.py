import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from irrl.returns import gains, rewards_to_go


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=12), st.floats(0, 1))
def test_rewards_to_go_are_discounted_sums(rewards, discount):
    found = rewards_to_go(np.array(rewards), discount)
    for t in range(len(rewards)):
        by_hand = sum(discount**k * r for k, r in enumerate(rewards[t:]))
        assert found[t] == pytest.approx(by_hand, abs=1e-9)


def test_torch_and_batches_alike_and_the_input_stays():
    rewards = torch.rand(5, 3, dtype=torch.float64)
    before = rewards.clone()
    found = rewards_to_go(rewards, 0.9)
    np.testing.assert_allclose(found, rewards_to_go(rewards.numpy(), 0.9))
    assert (rewards == before).all()


def test_gains_add_up():
    worth = np.random.default_rng(0).random((6, 4))
    np.testing.assert_allclose(rewards_to_go(gains(worth))[0], worth[-1] - worth[0])


@pytest.mark.parametrize("discount", [-0.1, 1.1, float("nan")])
def test_a_discount_is_between_0_and_1(discount):
    with pytest.raises(ValueError, match="discount"):
        rewards_to_go(np.ones(3), discount)
