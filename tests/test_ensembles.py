import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from irrl.ensembles import disagreement
from tests.helpers.posteriors import BACKENDS, batch

MEMBERS = np.stack([batch(np.random.default_rng(n))[0] for n in range(4)])
Q = np.exp(MEMBERS)
ENTROPY = {
    "log": lambda q: -(q * np.log(q)).sum(-1),
    "quadratic": lambda q: 1 - (q**2).sum(-1),
}


@pytest.mark.parametrize("kind", ENTROPY)
def test_disagreement_is_the_jensen_gap_of_the_entropy(kind):
    entropy = ENTROPY[kind]
    gap = entropy(Q.mean(0)) - entropy(Q).mean(0)
    np.testing.assert_allclose(disagreement(MEMBERS, kind), gap, atol=1e-14)


def test_the_quadratic_one_is_the_sum_of_variances():
    np.testing.assert_allclose(disagreement(MEMBERS, "quadratic"), Q.var(0).sum(-1), atol=1e-15)


def cost(g, q):
    """What a policy loses if it is paid for the mean of the members and one of them is true."""
    return (q * (g(q) - g(q.mean(0)))).sum(-1).mean(0)


def test_the_gap_is_what_an_immature_discriminator_costs_and_for_linear_it_is_not_zero():
    np.testing.assert_allclose(cost(np.log, Q), disagreement(MEMBERS), atol=1e-14)
    linear = cost(lambda q: q, Q)
    np.testing.assert_allclose(linear, disagreement(MEMBERS, "quadratic"), atol=1e-14)
    assert np.all(linear > 0.01)


@pytest.mark.parametrize("g", [np.log, lambda q: q, np.sqrt, np.square])
def test_the_cost_has_a_part_of_the_label_and_a_part_of_the_shape(g):
    """At a given label the linear reward of the mean is the mean of rewards; the log's is more."""
    of_label = (Q * (g(Q) - g(Q).mean(0))).mean(0).sum(-1)  # covariance of member and reward
    of_shape = (Q.mean(0) * (g(Q).mean(0) - g(Q.mean(0)))).sum(-1)
    np.testing.assert_allclose(of_label + of_shape, cost(g, Q), atol=1e-14)
    assert np.all(of_label > 0)
    at_labels = g(Q).mean(0) - g(Q.mean(0))
    if g(4.0) == 4.0:
        np.testing.assert_allclose(at_labels, 0.0, atol=1e-15)
    else:
        assert np.all((at_labels > 0) == (g is np.square))


def test_near_uniform_members_cost_the_log_more_of_its_range():
    """The ratio of both costs, each over its largest reward, is K / (2 log K) and a little."""
    K = 128
    probs = (1 + 0.05 * np.random.default_rng(0).normal(size=(2, 500, K))) / K
    probs /= probs.sum(-1, keepdims=True)
    log = disagreement(np.log(probs)).mean() / math.log(K)
    linear = disagreement(np.log(probs), "quadratic").mean() / (1 - 1 / K)
    assert log / linear == pytest.approx(K / (2 * math.log(K)), rel=0.02)


def test_the_largest_disagreement():
    certain = np.where(np.eye(3) > 0, 0.0, -np.inf)[:, None]
    assert disagreement(certain, "quadratic") == pytest.approx([1 - 1 / 3])
    assert disagreement(certain, "log") == pytest.approx([math.log(3)])
    same = np.repeat(MEMBERS[:1], 2, axis=0)
    assert disagreement(same, "quadratic") == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("kind", ENTROPY)
@pytest.mark.parametrize("backend", BACKENDS)
def test_backends_agree(kind, backend):
    got = disagreement(BACKENDS[backend](MEMBERS), kind)
    assert type(got) is type(BACKENDS[backend](MEMBERS))
    np.testing.assert_allclose(np.asarray(got), disagreement(MEMBERS, kind), atol=1e-5)


@pytest.mark.parametrize("kind", ENTROPY)
def test_no_gradient_passes_and_it_can_be_compiled(kind):
    assert not disagreement(torch.tensor(MEMBERS, requires_grad=True), kind).requires_grad
    gradient = jax.grad(lambda x: disagreement(x, kind).sum())(jnp.asarray(MEMBERS))
    assert not jnp.any(gradient)
    jitted = jax.jit(lambda x: disagreement(x, kind))(jnp.asarray(MEMBERS))
    np.testing.assert_allclose(jitted, disagreement(MEMBERS, kind), atol=1e-5)


@pytest.mark.parametrize("kind", ["brier", "", None])
def test_other_kinds_are_refused(kind):
    with pytest.raises(ValueError, match="unknown kind of disagreement"):
        disagreement(MEMBERS, kind)
    for name in ENTROPY:
        with pytest.raises(ValueError, match="log_probs contains NaN"):
            disagreement(np.nan * MEMBERS, name)
