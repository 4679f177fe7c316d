"""The gradient that the authors' code leaks from the reward into the discriminator."""

from functools import partial

import numpy as np
import pytest
import torch
from array_api_compat import array_namespace

from irrl.rewards import reward
from irrl.tasks.digits.train import loss_of_discriminator, loss_of_policy, worth_of

from tests.tasks.digits.scene import BATCH, MODELS, Scene, names, touched


@pytest.mark.parametrize("settings", MODELS)
def test_the_authors_leak_reaches_the_discriminator(mnist_cache, settings):
    scene = Scene(reward="log", leak_reward_gradient=True, **settings)
    scene.policy_loss().backward()
    assert touched(scene.learner.discriminator) == names(scene.learner.discriminator)
    paid = worth_of(scene.config, scene.log_probs, scene.labels)
    plain = Scene(reward="log", **settings)
    torch.testing.assert_close(
        paid.detach(), worth_of(plain.config, plain.log_probs, plain.labels), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("paid", ["log", "linear"])
def test_the_leak_turns_the_gradient_of_what_is_surer_than_expected(mnist_cache, paid):
    """docs/method.md: what the leak adds to the slope of the cross-entropy in log q."""
    final = {"credit": "final", "supervision": "last"}
    scene = Scene(reward=paid, leak_reward_gradient=True, **final)
    config, policy, trajectory = scene.config, scene.learner.policy, scene.trajectory
    log_probs = scene.log_probs.detach().requires_grad_()
    worth = worth_of(config, log_probs, scene.labels)
    loss = loss_of_policy(config, policy, trajectory, worth, 0.0)
    loss = loss + loss_of_discriminator(config, trajectory, log_probs, scene.labels)
    (gradient,) = torch.autograd.grad(loss, log_probs)
    slope = BATCH * gradient[0, torch.arange(BATCH), scene.labels]

    thought, foreseen = policy.recall(trajectory.mind, trajectory.memory.glimpses[:-1])
    aim, _ = policy(thought, trajectory.anchors)
    density = policy.log_prob(aim, trajectory.samples, trajectory.choices, config.location_std)
    q = log_probs[0, torch.arange(BATCH), scene.labels].exp().detach()
    steepness = torch.ones_like(q) if paid == "log" else q  # dr / d log q
    surprise = worth[0].detach() - policy.baseline(foreseen).mean(0)
    leaked = 2.0 * surprise - config.policy_weight * density.sum(0)
    torch.testing.assert_close(slope, (-1.0 + steepness * leaked).detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name, turned", [("clipped-log", True), ("clipped-linear", False)])
def test_the_leak_costs_the_log_its_surest_posteriors(name, turned):
    """The authors' set-up, 0.25 expected: does the slope at q = 0.9 still point upwards?"""
    log_q = torch.tensor(0.9).log().requires_grad_()
    log_p = torch.tensor(0.1).log()
    pay = partial(reward(name).gain, array_namespace(log_p), log_p=log_p)
    expected = pay(torch.tensor(0.25).log())
    density = 17 * (-2 * np.log(0.05 * np.sqrt(2 * np.pi)) - 1)  # of locations, in the mean
    paid = pay(log_q)
    loss = -log_q + (paid - expected) ** 2 - 0.01 * density * (paid - expected)
    loss.backward()
    assert (log_q.grad > 0) == turned
