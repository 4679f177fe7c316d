"""Where the paper's policy goes, and when DT-RAM stops."""

import pytest
import torch

from irrl.tasks.digits.chance import RandomNumbers
from irrl.tasks.digits.models import make_discriminator, make_policy
from irrl.tasks.digits.rollout import rollout
from irrl.tasks.digits.stop import Bounded
from tests.tasks.digits.episodes import small


def test_dt_ram_stops_by_chance_and_at_the_end_by_force():
    config = small(model="dt-ram", glimpses=6)
    torch.manual_seed(1)
    discriminator, policy = make_discriminator(config), make_policy(config)
    with torch.no_grad():
        out = policy.locator.out
        out.weight[2], out.bias[2] = 0.0, 0.0  # a stop with probability one half
    images = torch.randint(256, (4, 30, 30))
    uniform = torch.full((5, 4), 0.9)
    uniform[0, 1], uniform[3, 2], uniform[4, 2] = 0.1, 0.1, 0.1
    numbers = RandomNumbers(torch.zeros(4, 2), torch.zeros(5, 4, 2), uniform, uniform[:, :0])
    trajectory = rollout(discriminator, policy, images, numbers.first, 6, numbers, 0.1)
    assert trajectory.lengths.tolist() == [6, 1, 4, 6]
    assert trajectory.stopped.sum(0).tolist() == [0, 1, 1, 0]
    assert trajectory.moved.sum(0).tolist() == [5, 0, 3, 5]
    picked = trajectory.last(torch.arange(6)[:, None].expand(6, 4))
    assert picked.tolist() == [5, 0, 3, 5]


def test_stop_probabilities_are_bounded():
    config = small(model="dt-ram")
    locator = make_policy(config).locator
    with torch.no_grad():
        locator.out.bias[2] = 1e6
        _, stop = locator(torch.zeros(3, config.width))
        assert stop.tolist() == pytest.approx([0.99] * 3)
        locator.out.bias[2] = -1e6
        _, stop = locator(torch.zeros(3, config.width))
        assert stop.tolist() == pytest.approx([0.01] * 3)


def test_what_reached_a_bound_can_return():
    value = torch.tensor([-5.0, -5.0, 5.0, 5.0, 1.0, 1.0], requires_grad=True)
    bounded = Bounded.apply(value, 2.0)
    assert bounded.tolist() == [-2.0, -2.0, 2.0, 2.0, 1.0, 1.0]
    loss = bounded @ torch.tensor([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])  # a step goes down and up
    loss.backward()
    assert value.grad.tolist() == [0.0, -1.0, 1.0, 0.0, 1.0, -1.0]
