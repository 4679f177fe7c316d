"""Small models in double precision, and episodes of theirs."""

from typing import NamedTuple

import torch

from irrl.tasks.digits.chance import RandomNumbers
from irrl.tasks.digits.extensions.config import DigitsConfig
from irrl.tasks.digits.models import make_discriminator, make_policy
from irrl.tasks.digits.rollout import rollout


class Played(NamedTuple):
    """Models, and an episode of theirs with all that it depends on."""

    discriminator: object
    policy: object
    images: torch.Tensor
    numbers: RandomNumbers
    trajectory: object


def small(**settings):
    defaults = {
        "canvas_size": 30, "glimpses": 5, "width": 7, "glimpse_width": 6, "locator_width": 5,
    }  # fmt: skip
    return DigitsConfig(**{**defaults, **settings})


def episode(config, batch=4, seed=0, std=0.2):
    """Models in double precision, and a sampled episode of random canvases."""
    torch.manual_seed(seed)
    models = make_discriminator(config).double(), make_policy(config).double()
    return episode_of(config, *models, batch, std)


def episode_of(config, discriminator, policy, batch=4, std=0.2):
    images, actions = torch.randint(256, (batch, 30, 30)), config.glimpses - 1
    numbers = RandomNumbers(
        torch.rand(batch, 2).double() * 2 - 1,
        torch.randn(actions, batch, 2).double(),
        torch.rand(actions, batch).double(),
        torch.rand(actions, batch).double(),
    )
    start = (images, numbers.first, config.glimpses)
    trajectory = rollout(discriminator, policy, *start, numbers, std)
    return Played(discriminator, policy, images, numbers, trajectory)
