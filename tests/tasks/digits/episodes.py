"""Small models in double precision, and episodes of theirs."""

import torch

from irrl.tasks.digits.config import DigitsConfig
from irrl.tasks.digits.discriminator import make_discriminator
from irrl.tasks.digits.policy import Policy
from irrl.tasks.digits.rollout import Draws, rollout


def small(**settings):
    defaults = {"canvas_size": 30, "steps": 5, "width": 7, "glimpse_width": 6, "locator_width": 5}
    return DigitsConfig(**{**defaults, **settings})


def episode(config, batch=4, seed=0):
    """Models in double precision, and a sampled episode of random canvases."""
    torch.manual_seed(seed)
    return episode_of(config, make_discriminator(config).double(), Policy(config).double(), batch)


def episode_of(config, discriminator, policy, batch=4):
    images = torch.randint(256, (batch, 30, 30))
    noise = torch.randn(config.steps - 1, batch, 2).double()
    coins = torch.rand(config.steps - 1, batch).double()
    lots = torch.rand(config.steps - 1, batch).double()
    draws = Draws(torch.rand(batch, 2).double() * 2 - 1, noise, coins, lots)
    trajectory = rollout(discriminator, policy, images, draws.first, config.steps, draws, 0.2)
    return discriminator, policy, images, trajectory
