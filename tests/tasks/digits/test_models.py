"""The models of a configuration: their sizes, and how they begin."""

import pytest
import torch

from irrl.tasks import make_config
from irrl.tasks.digits.models import initial_models, make_discriminator, make_policy
from tests.tasks.digits.scene import CPU, Scene


def test_the_papers_sizes():
    config = make_config("digits", "paper")
    discriminator, policy = make_discriminator(config), make_policy(config)
    shapes = {n: tuple(p.shape) for n, p in discriminator.named_parameters() if "weight" in n}
    assert shapes == {
        "glimpse_network.what.weight": (128, 16),
        "glimpse_network.where.weight": (128, 2),
        "glimpse_network.combine.weight": (256, 256),
        "core.from_glimpse.weight": (256, 256),
        "core.from_state.weight": (256, 256),
        "classifier.weight": (10, 256),
    }
    shapes = {n: tuple(p.shape) for n, p in policy.named_parameters() if "weight" in n}
    assert shapes == {
        "locator.hidden.weight": (128, 256), "locator.out.weight": (2, 128),
        "baseline.weight": (1, 256),
    }  # fmt: skip


def test_the_policy_begins_as_it_is_told(mnist_cache):
    scene = Scene(model="dt-ram", initial_policy=0.0, initial_stop=0.1)
    policy, cache = scene.learner.policy, scene.trajectory.policy_cache
    mean, stop = policy.aims(cache.outputs, scene.trajectory.locations[:-1])
    torch.testing.assert_close(mean, scene.trajectory.locations[:-1])
    torch.testing.assert_close(stop, torch.full_like(stop, 0.1))


def test_the_glimpse_layer_begins_as_the_papers_two_would():
    discriminator, _ = initial_models(make_config("digits", "paper"), CPU)
    combine, core = discriminator.glimpse_network.combine, discriminator.core
    assert combine.weight.abs().max().item() == pytest.approx(128**-0.5, rel=0.01)
    assert combine.bias.abs().max() > 128**-0.5
    assert core.from_state.weight.abs().max().item() == pytest.approx(1 / 16, rel=0.01)
