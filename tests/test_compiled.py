"""Rewards under the compilers of PyTorch and JAX: one graph, and the numbers of the plain call."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from irrl.rewards import REWARDS, reward
from tests.test_rewards import batch

FEW = ("accuracy", "clipped-linear", "disdain", "f-jensen-shannon")
EVERY = [name if name in FEW else pytest.param(name, marks=pytest.mark.slow) for name in REWARDS]


def torch_batch(name):
    log_probs, labels = batch(np.random.default_rng(3))
    if REWARDS[name].needs_ensemble:
        log_probs = np.stack([log_probs, log_probs[::-1]])
    return torch.tensor(log_probs), torch.tensor(labels)


@pytest.mark.parametrize("name", EVERY)
def test_a_reward_is_one_graph(name):
    log_probs, labels = torch_batch(name)
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled = torch.compile(reward(name).__call__, backend="eager", fullgraph=True)
        got = compiled(log_probs, labels)
    torch.testing.assert_close(got, reward(name)(log_probs, labels))


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_a_training_step_with_a_reward_is_one_graph(backend):
    """Forward and backward: the discriminator learns, the policy is paid by it."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    discriminator, policy = torch.nn.Linear(4, 3), torch.nn.Linear(4, 5)
    seen, labels, actions = torch.randn(8, 4), torch.randint(3, (8,)), torch.randint(5, (8,))
    reward_fn = reward("clipped-linear")

    def loss(seen, labels, actions):
        log_probs = torch.log_softmax(discriminator(seen), -1)
        rewards = reward_fn(log_probs, labels)
        chosen = torch.log_softmax(policy(seen), -1).gather(1, actions[:, None])[:, 0]
        taught = log_probs.gather(1, labels[:, None]).mean()
        return -(chosen * rewards).mean() - taught

    def gradients(function):
        for parameter in (*discriminator.parameters(), *policy.parameters()):
            parameter.grad = None
        function(seen, labels, actions).backward()
        return [p.grad.clone() for p in (*discriminator.parameters(), *policy.parameters())]

    expected = gradients(loss)
    got = gradients(torch.compile(loss, backend=backend, fullgraph=True))
    for one, other in zip(got, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-7)
    assert any(grad.abs().sum() > 0 for grad in got)


def test_forward_only_by_inductor_is_one_graph():
    log_probs, labels = torch_batch("disdain")
    torch._dynamo.reset()
    with torch.no_grad():
        got = torch.compile(reward("disdain").__call__, fullgraph=True)(log_probs, labels)
    torch.testing.assert_close(got, reward("disdain")(log_probs, labels))


@pytest.mark.parametrize("name", EVERY)
def test_jit_and_vmap_give_the_numbers_of_the_plain_call(name):
    log_probs, labels = batch(np.random.default_rng(4))
    log_probs, labels = log_probs.reshape(-1, log_probs.shape[-1]), labels.reshape(-1)
    axis = 0
    if REWARDS[name].needs_ensemble:
        log_probs, axis = np.stack([log_probs, log_probs[::-1]]), 1
    log_probs, labels = jnp.asarray(log_probs), jnp.asarray(labels)
    expected = reward(name)(log_probs, labels)
    np.testing.assert_allclose(jax.jit(reward(name))(log_probs, labels), expected, atol=1e-6)
    each = jax.vmap(reward(name), in_axes=(axis, 0))
    np.testing.assert_allclose(each(log_probs, labels), expected, atol=1e-6)
    np.testing.assert_allclose(jax.jit(each)(log_probs, labels), expected, atol=1e-6)


# --- labels ---

LIBRARIES = {"numpy": np.asarray, "torch": torch.tensor, "jax": jnp.asarray}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", ["linear", "accuracy"])
def test_a_label_out_of_range_earns_nothing_where_values_are_not_checked(library, name):
    make = LIBRARIES[library]
    log_probs = make(np.log([[0.75, 0.25]] * 5))
    labels = make(np.array([0, -1, 2, -100, 0]))
    got = np.asarray(reward(name, validate=False)(log_probs, labels))
    np.testing.assert_allclose(got[1:4], 0.0)
    assert got[0] == got[4] > 0
    with pytest.raises(ValueError, match=r"labels must lie in 0..1"):
        reward(name)(log_probs, labels)


@pytest.mark.parametrize("library", LIBRARIES)
def test_labels_that_are_no_indices_are_refused_by_name(library):
    log_probs = LIBRARIES[library](np.log([[0.75, 0.25]]))
    others = [make(np.array([0])) for key, make in LIBRARIES.items() if key != library]
    masked = np.ma.masked_array([0], mask=[True])
    for labels in (*others, masked, [2**40], [2**70], [-(2**40)], ["0"], [[0, 1], [2]]):
        with pytest.raises(ValueError, match=r"^labels must"):
            reward("linear")(log_probs, labels)
    with pytest.raises(ValueError, match=r"^log_probs must"):
        reward("linear")(np.ma.masked_array(np.log([[0.75, 0.25]]), mask=[[True, False]]), [0])


def test_labels_beyond_32_bits_do_not_wrap_around_in_jax():
    log_probs = jnp.log(jnp.asarray([[0.75, 0.25]]))
    with pytest.raises(ValueError, match=r"^labels must"):
        reward("linear")(log_probs, [2**32])
    with jax.enable_x64(True), pytest.raises(ValueError, match=r"labels must lie in 0..1"):
        reward("linear")(jnp.asarray(log_probs), jnp.asarray([2**32], dtype=jnp.int64))


def test_a_scalar_label_is_not_taken_for_an_ensemble():
    log_probs = np.log([[0.75, 0.25], [0.5, 0.5]])
    with pytest.raises(ValueError, match=r"labels must have shape"):
        reward("linear")(log_probs, 0)
