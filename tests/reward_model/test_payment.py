import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irrl.reward_model.payment import payments, payments_of_episode

POTENTIALS = np.array([9.0, 1.0, 3.0, 2.0])  # the first is of what no action led to


@pytest.mark.parametrize(
    ("pay", "wanted"),
    [("end", [0.0, 0.0, 2.0]), ("differences", [1.0, 2.0, -1.0]), ("steps", [1.0, 3.0, 2.0])],
)
def test_each_way_to_pay(pay, wanted):
    assert payments_of_episode(pay, POTENTIALS).tolist() == wanted


@given(st.lists(st.floats(-10, 10), min_size=2, max_size=20))
def test_differences_add_up_to_the_end(potentials):
    potentials = np.array(potentials)
    total = payments_of_episode("differences", potentials).sum()
    assert total == pytest.approx(potentials[-1])
    assert total == pytest.approx(payments_of_episode("end", potentials).sum())


@pytest.mark.parametrize("pay", ["end", "differences", "steps"])
def test_an_episode_is_paid_as_its_steps_are(pay):
    before, found = 0.0, []
    for t, potential in enumerate(POTENTIALS[1:]):
        ended = np.array([t == 2])
        found += payments(pay, np.array([potential]), np.array([before]), ended).tolist()
        before = potential
    assert found == payments_of_episode(pay, POTENTIALS).tolist()


def test_no_action_is_paid_nothing():
    assert payments_of_episode("differences", POTENTIALS[:1]).shape == (0,)
