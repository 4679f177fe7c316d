import dataclasses
import math
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from irrl.rewards import (
    LOG_FLOOR,
    REWARDS,
    Reward,
    disagreement,
    power_shape,
    reward,
)
from irrl.shapes import linear_shape
from tests.helpers.posteriors import BACKENDS, batch, log_prior_of

POSTERIOR = [name for name, r in REWARDS.items() if r.shape is not None and not r.needs_ensemble]
INCREASING = [name for name in POSTERIOR if name != "f-reverse-kl"]

# q, p -> reward, written out once more by hand
BY_HAND = {
    "log": lambda q, p: math.log(q / p),
    "linear": lambda q, p: q - p,
    "root-4": lambda q, p: q**0.25 - p**0.25,
    "root-2": lambda q, p: q**0.5 - p**0.5,
    "log1p": lambda q, p: math.log((1 + q) / (1 + p)),
    "exp": lambda q, p: math.exp(q) - math.exp(p),
    "power-2": lambda q, p: q**2 - p**2,
    "power-3": lambda q, p: q**3 - p**3,
    "power-4": lambda q, p: q**4 - p**4,
    "power-6": lambda q, p: q**6 - p**6,
    "f-kl": lambda q, p: math.log(q / p),
    "f-chi2": lambda q, p: q / p - 1,
    "f-total-variation": lambda q, p: max(1 - p / q, 0),
    "f-hellinger": lambda q, p: 2 - 2 * math.sqrt(p / q),
    "f-le-cam": lambda q, p: (q - p) / (2 * q + 2 * p),
    "f-jensen-shannon": lambda q, p: (
        math.log(2 * q / (q + p)) + p / q * math.log(2 * p / (q + p)) + (1 - p / q) * math.log(2)
    ),
    "f-reverse-kl": lambda q, p: p / q * math.log(p / q),
}


@pytest.mark.parametrize("name", BY_HAND)
@pytest.mark.parametrize("posterior", [0.01, 0.2, 0.25, 0.6, 0.999])
@pytest.mark.parametrize("prior", [None, [0.1, 0.2, 0.3, 0.4]])
def test_each_reward_is_its_formula(name, posterior, prior):
    rest = (1 - posterior) / 3
    log_probs = np.log([rest, posterior, rest, rest])
    log_prior = None if prior is None else np.log(prior)
    p = 0.25 if prior is None else prior[1]
    expected = BY_HAND[name](posterior, p)
    assert reward(name)(log_probs, 1, log_prior) == pytest.approx(expected, abs=1e-12)
    if f"clipped-{name}" in REWARDS:
        clipped = reward(f"clipped-{name}")(log_probs, 1, log_prior)
        assert clipped == pytest.approx(max(expected, 0.0), abs=1e-12)


def test_every_posterior_reward_is_checked_by_hand():
    assert {name.removeprefix("clipped-") for name in POSTERIOR} == set(BY_HAND)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", REWARDS)
def test_backends_agree(name, backend):
    rng = np.random.default_rng(0)
    log_probs, labels = batch(rng)
    if REWARDS[name].needs_ensemble:
        log_probs = np.stack([log_probs, batch(rng)[0], batch(rng)[0]])
    log_prior = log_prior_of([1, 2, 3, 4, 5])
    expected = reward(name)(log_probs, labels, log_prior)
    make = BACKENDS[backend]
    got = reward(name)(make(log_probs), make(labels), make(log_prior))
    assert type(got) is type(make(log_probs))
    assert tuple(got.shape) == (3, 4)
    np.testing.assert_allclose(np.asarray(got), expected, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", REWARDS)
def test_extreme_posteriors_give_finite_rewards(name, backend):
    with np.errstate(divide="ignore"):
        certain = np.log(np.array([[1.0, 0.0], [0.0, 1.0]], dtype=np.float32))
    unlikely = np.array([[0.0, -1000.0], [-1000.0, 0.0]], dtype=np.float32)
    log_probs = np.concatenate([certain, unlikely])
    if REWARDS[name].needs_ensemble:
        log_probs = np.stack([log_probs, log_probs[::-1]])
    labels = np.array([1, 1, 1, 1])
    make = BACKENDS[backend]
    got = np.asarray(reward(name)(make(log_probs), make(labels)))
    assert np.isfinite(got).all()
    if name in INCREASING:
        assert got[0] <= got[2] <= got[1]


def test_log_reward_keeps_finite_log_probabilities():
    assert reward("log")(np.array([0.0, -1000.0]), 1) == -1000.0 + math.log(2)
    assert reward("log")(np.array([0.0, -np.inf]), 1) == LOG_FLOOR + math.log(2)


@pytest.mark.parametrize("name", INCREASING)
@given(st.floats(-60, 0), st.floats(-60, 0), st.floats(1e-4, 0.9))
def test_rewards_grow_with_the_posterior_and_are_zero_at_the_prior(name, a, b, prior):
    low, high = (
        REWARDS[name].of_log_posterior(np, np.float64(x), math.log(prior)) for x in sorted((a, b))
    )
    assert low <= high
    assert REWARDS[name].of_log_posterior(np, np.float64(math.log(prior)), math.log(prior)) == 0.0


@pytest.mark.parametrize("name", [n for n in POSTERIOR if n.startswith("clipped-")])
@given(st.floats(-50, 0), st.floats(1e-3, 0.9))
def test_clipping_replaces_the_posterior_by_the_larger_of_it_and_the_prior(name, log_q, prior):
    log_p = math.log(prior)
    plain = REWARDS[name.removeprefix("clipped-")]
    expected = plain.of_log_posterior(np, np.float64(max(log_q, log_p)), log_p)
    assert REWARDS[name].of_log_posterior(np, np.float64(log_q), log_p) == pytest.approx(
        expected, abs=1e-12
    )


@pytest.mark.parametrize("name", REWARDS)
def test_no_gradient_passes(name):
    log_probs, labels = batch(np.random.default_rng(1))
    if REWARDS[name].needs_ensemble:
        log_probs = np.stack([log_probs, log_probs[::-1]])
    logits = torch.tensor(log_probs, requires_grad=True)
    assert not reward(name)(torch.log_softmax(logits, -1), torch.tensor(labels)).requires_grad

    def total(x):
        return reward(name)(jax.nn.log_softmax(x), jnp.asarray(labels)).sum()

    assert not jnp.any(jax.grad(total)(jnp.asarray(log_probs)))


def test_under_jit_and_compile():
    log_probs, labels = batch(np.random.default_rng(2))
    expected = reward("clipped-linear")(log_probs, labels)
    jitted = jax.jit(reward("clipped-linear"))(jnp.asarray(log_probs), jnp.asarray(labels))
    np.testing.assert_allclose(jitted, expected, atol=1e-6)
    compiled = torch.compile(reward("clipped-linear", validate=False).__call__, backend="eager")
    got = compiled(torch.tensor(log_probs), torch.tensor(labels))
    np.testing.assert_allclose(got, expected, atol=1e-12)


def test_labels_closed_over_by_a_jitted_function():
    log_probs, labels = batch(np.random.default_rng(2))
    y = jnp.asarray(labels)
    got = jax.jit(lambda x: reward("linear")(x, y))(jnp.asarray(log_probs))
    np.testing.assert_allclose(got, reward("linear")(log_probs, labels), atol=1e-6)


@pytest.mark.parametrize("name", REWARDS)
def test_rewards_can_be_pickled(name):
    changed = dataclasses.replace(REWARDS[name], bonus_weight=3.0, validate=False)
    assert pickle.loads(pickle.dumps(changed)) == changed


def test_rewards_of_ones_own_can_be_pickled():
    own = Reward("own", "q - p", "[-p, 1-p]", linear_shape)
    assert pickle.loads(pickle.dumps(own)) == own


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int32, torch.uint16])
def test_labels_of_any_integer_type(dtype):
    log_probs = torch.log_softmax(torch.randn(2, 200), -1)
    expected = reward("linear")(log_probs, torch.tensor([1, 2]))
    torch.testing.assert_close(
        reward("linear")(log_probs, torch.tensor([1, 2]).to(dtype)), expected
    )
    if dtype is torch.int8:
        jax_labels = jnp.asarray([1, 2], dtype=jnp.int8)
        got = reward("linear")(jnp.asarray(log_probs.numpy()), jax_labels)
        np.testing.assert_allclose(got, expected, atol=1e-6)


def test_priors_in_half_precision_and_as_lists():
    log_probs = torch.log_softmax(torch.randn(3, 10), -1)
    labels = torch.tensor([0, 1, 2])
    prior = torch.full((10,), 0.1).log()
    expected = reward("log")(log_probs, labels)
    half = reward("log")(log_probs, labels, prior.bfloat16())
    torch.testing.assert_close(half, expected, atol=0.02, rtol=0)
    torch.testing.assert_close(reward("log")(log_probs, labels, prior.tolist()), expected)


def test_empty_batches():
    for labels in (np.zeros(0, dtype=int), []):
        assert reward("clipped-linear")(np.zeros((0, 4)), labels).shape == (0,)


def test_members_that_all_rule_a_label_out():
    certain = np.array([[[0.0, -np.inf]], [[0.0, -np.inf]]])
    for name in ("log", "disdain"):
        assert np.isfinite(reward(name)(certain, np.array([1]), ensemble=True)).all()


def test_half_precision_is_computed_in_single():
    log_probs = torch.log_softmax(torch.randn(8, 10), -1).bfloat16()
    got = reward("linear")(log_probs, torch.zeros(8, dtype=torch.long))
    assert got.dtype == torch.float32
    torch.testing.assert_close(got, log_probs[:, 0].float().exp() - 0.1)


def test_accuracy_looks_at_the_most_probable_label():
    log_probs = np.log([[0.2, 0.5, 0.3], [0.2, 0.5, 0.3], [1 / 3, 1 / 3, 1 / 3]])
    assert reward("accuracy")(log_probs, np.array([1, 2, 1])).tolist() == [1.0, 0.0, 0.0]


def test_an_ensemble_is_read_as_its_mixture():
    members = np.log([[[0.9, 0.1]], [[0.3, 0.7]]])
    assert reward("linear")(members, np.array([0]), ensemble=True) == pytest.approx([0.6 - 0.5])


def test_disdain_is_clipped_log_of_the_mean_plus_weighted_disagreement():
    q = np.array([[0.9, 0.1], [0.3, 0.7]])
    mean = q.mean(0)

    def entropy(x):
        return -(x * np.log(x)).sum(-1)

    bonus = entropy(mean) - entropy(q).mean()
    assert disagreement(np.log(q)[:, None]) == pytest.approx([bonus])
    for label in (0, 1):
        got = reward("disdain")(np.log(q)[:, None], np.array([label]))
        assert got == pytest.approx([max(math.log(mean[label] / 0.5), 0.0) + 20.0 * bonus])


def test_disagreement_lies_between_zero_and_log_members():
    certain = np.where(np.eye(3) > 0, 0.0, -np.inf)
    assert disagreement(certain[:, None]) == pytest.approx([math.log(3)])
    assert disagreement(np.zeros((3, 1, 1))) == pytest.approx([0.0])
    same = np.repeat(batch(np.random.default_rng(3))[0][None], 4, axis=0)
    assert np.all(disagreement(same) >= 0) and disagreement(same) == pytest.approx(0.0, abs=1e-12)


GOOD = np.log(np.full((2, 4), 0.25))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.array([[0.0, 0.0]]), np.array([0])), "log_probs must be log-probabilities whose"),
        ((np.array([[2.0, 1.0]]), np.array([0])), "log_probs must be log-probabilities, at most"),
        ((np.full((2, 4), np.nan), np.array([0, 1])), "log_probs contains NaN"),
        ((GOOD, np.array([0, 4])), r"labels must lie in 0\.\.3"),
        ((GOOD, np.array([0, -1])), r"labels must lie in 0\.\.3"),
        ((GOOD, np.array([0.0, 1.0])), "labels must be integers"),
        (
            (GOOD, np.array([0, 1, 2])),
            r"labels must have shape \(2,\) .* got \(3,\); pass ensemble",
        ),
        ((GOOD, 0), r"labels must have shape \(2,\) .* got \(\); pass ensemble=True"),
        ((GOOD[:, None], np.array([0])), "pass ensemble=True"),
        ((GOOD, np.array([0, 1]), np.log(np.full(3, 1 / 3))), r"log_prior must have shape \(4,\)"),
        ((GOOD, np.array([0, 1]), np.full(4, 0.25)), "log_prior must be log-probabilities"),
        ((GOOD, np.array([0, 1]), np.array([-np.inf, 0.0, -np.inf, -np.inf])), "log_prior gives"),
        ((GOOD.astype(int), np.array([0, 1])), "log_probs must be a floating array"),
        (([[0.0]], np.array([0])), "log_probs must be a NumPy, PyTorch or JAX array"),
        ((np.zeros((2, 0)), np.array([0, 1])), "log_probs must be a floating array"),
        ((GOOD, "zero"), "labels must be"),
        ((GOOD, np.array([0, 1]), "uniform"), "log_prior must have shape"),
    ],
)
@pytest.mark.parametrize("name", ["clipped-linear", "accuracy"])
def test_bad_arguments_are_named(name, arguments, message):
    with pytest.raises(ValueError, match=message):
        reward(name)(*arguments)


def test_validation_can_be_switched_off():
    logits = np.array([[1.0, 2.0]])
    assert reward("log", validate=False)(logits, np.array([1])) == pytest.approx(2 + math.log(2))


def test_disdain_needs_an_ensemble():
    with pytest.raises(ValueError, match="leading ensemble axis"):
        reward("disdain")(GOOD, np.array([0, 1]))
    with pytest.raises(ValueError, match="leading ensemble axis"):
        reward("disdain")(GOOD, np.array([0, 1]), ensemble=False)


@pytest.mark.parametrize("name", ["linear", "accuracy"])
def test_an_ensemble_is_said_and_not_guessed(name):
    """Two members and two episodes of one label: the shapes alone do not tell which."""
    members, label = np.log([[0.9, 0.1], [0.3, 0.7]]), np.array(0)
    with pytest.raises(ValueError, match="ensemble=True"):
        reward(name)(members, label)
    mixed = reward(name)(members, label, ensemble=True)
    assert mixed == reward(name)(np.log([0.6, 0.4]), label)
    for bad in (np.array([0, 1]), np.zeros((2, 1), dtype=int)):
        with pytest.raises(ValueError, match="leading ensemble axis"):
            reward(name)(members, bad, ensemble=True)
    with pytest.raises(ValueError, match="leading ensemble axis"):
        reward(name)(np.zeros((0, 3, 2)), np.zeros(3, dtype=int), ensemble=True)


@pytest.mark.parametrize("log_probs", [[[0.0]], np.zeros(3), np.zeros((0, 2, 3))])
def test_disagreement_names_its_argument(log_probs):
    with pytest.raises(ValueError, match="log_probs must"):
        disagreement(log_probs)


def test_unknown_names_suggest_the_nearest():
    with pytest.raises(ValueError, match="Did you mean 'clipped-linear'"):
        reward("cliped-linear")
    with pytest.raises(ValueError, match="unknown reward"):
        reward(["log"])
    with pytest.raises(ValueError, match="exponent must be positive"):
        power_shape(0)
