"""The gradient that the authors' code leaks from the reward into the discriminator."""

from functools import partial

import numpy as np
import pytest
import torch
from array_api_compat import array_namespace

from irrl.losses import discriminator_loss
from irrl.rewards import reward
from irrl.tasks.digits.losses import policy_loss, reward_potential
from tests.tasks.digits.scene import BATCH, MODELS, Scene, names, touched


@pytest.mark.parametrize("settings", MODELS)
def test_the_authors_leak_reaches_the_discriminator(mnist_cache, settings):
    scene = Scene(reward="log", leak_reward_gradient=True, **settings)
    scene.policy_loss().backward()
    assert touched(scene.learner.discriminator) == names(scene.learner.discriminator)
    plain = Scene(reward="log", **settings)
    torch.testing.assert_close(scene.potential().detach(), plain.potential(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["log", "linear"])
def test_the_leak_turns_the_gradient_of_what_is_surer_than_expected(mnist_cache, name):
    """docs/method.md: what the leak adds to the slope of the cross-entropy in log q."""
    final = {"credit": "final", "supervision": "last"}
    scene = Scene(reward=name, leak_reward_gradient=True, **final)
    config, policy, trajectory = scene.config, scene.learner.policy, scene.trajectory
    log_probs = scene.log_probs.detach().requires_grad_()
    potential = reward_potential(config, log_probs, scene.labels)
    loss = policy_loss(config, policy, trajectory, potential, 0.0)
    loss = loss + discriminator_loss(log_probs, scene.labels, trajectory.lengths)
    (gradient,) = torch.autograd.grad(loss, log_probs)
    slope = BATCH * gradient[0, torch.arange(BATCH), scene.labels]

    actions = scene.actions()
    density = actions.location_log_prob
    q = log_probs[0, torch.arange(BATCH), scene.labels].exp().detach()
    steepness = torch.ones_like(q) if name == "log" else q  # dr / d log q
    surprise = potential[0].detach() - actions.expected.mean(0)
    leaked = 2.0 * surprise - config.policy_coef * density.sum(0)
    torch.testing.assert_close(slope, (-1.0 + steepness * leaked).detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name, turned", [("clipped-log", True), ("clipped-linear", False)])
def test_the_leak_costs_the_log_its_surest_posteriors(name, turned):
    """The authors' set-up, 0.25 expected: does the slope at q = 0.9 still point upwards?"""
    log_q = torch.tensor(0.9).log().requires_grad_()
    log_p = torch.tensor(0.1).log()
    reward_of = partial(reward(name).of_log_posterior, array_namespace(log_p), log_p=log_p)
    expected = reward_of(torch.tensor(0.25).log())
    density = 17 * (-2 * np.log(0.05 * np.sqrt(2 * np.pi)) - 1)  # of locations, in the mean
    surprise = reward_of(log_q) - expected
    loss = -log_q + surprise**2 - 0.01 * density * surprise
    loss.backward()
    assert (log_q.grad > 0) == turned
