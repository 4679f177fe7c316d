import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from irrl.preferences import preference
from irrl.rewards import REWARDS, reward
from tests.helpers.posteriors import BACKENDS

SCORES = np.array([-30.0, -2.0, 0.0, 0.5, 3.0, 40.0])
REFERENCE = np.array([0.0, 1.0, 0.0, -0.25, 2.0, 1.0])
AHEAD = SCORES - REFERENCE
KNOWN = {
    "linear": 1 / (1 + np.exp(-AHEAD)) - 1 / 2,  # PAR
    "log": -np.logaddexp(0, -AHEAD) + math.log(2),  # LSC
    "f-chi2": np.tanh(AHEAD / 2),
}


@pytest.mark.parametrize("make", [np.asarray, torch.asarray], ids=["numpy", "torch"])
@pytest.mark.parametrize("name", KNOWN)
def test_rewards_of_preferences_that_have_names(name, make):
    log_probs = preference(make(SCORES), make(REFERENCE))
    got = reward(name)(log_probs, make(np.ones(6, dtype=int)))
    np.testing.assert_allclose(got, KNOWN[name], rtol=0, atol=1e-12)


def test_the_other_label_is_the_other_one():
    better = preference(SCORES, REFERENCE)
    np.testing.assert_allclose(preference(REFERENCE, SCORES), better[:, ::-1], atol=1e-12)
    np.testing.assert_allclose(np.exp(better).sum(-1), 1.0, atol=1e-15)


def test_of_several_references_one_is_drawn():
    rng = np.random.default_rng(0)
    scores, references = rng.normal(size=3), 2 * rng.normal(size=(3, 5))
    got = np.exp(preference(scores, references)[:, 1])
    each = 1 / (1 + np.exp(references - scores[:, None]))
    np.testing.assert_allclose(got, each.mean(-1), atol=1e-14)
    wins = rng.uniform(size=(3, 200_000)) < np.take_along_axis(
        each, rng.integers(5, size=(3, 200_000)), axis=1
    )
    np.testing.assert_allclose(got, wins.mean(-1), atol=0.006)
    linear = reward("linear")(preference(scores, references), np.ones(3, dtype=int))
    np.testing.assert_allclose(linear, (each - 0.5).mean(-1), atol=1e-14)  # PAR of several
    log = reward("log")(preference(scores, references), np.ones(3, dtype=int))
    assert np.all(log > np.log(2 * each).mean(-1))  # more than the mean of LSC, by Jensen


@pytest.mark.parametrize("backend", BACKENDS)
def test_backends_agree_and_every_reward_applies(backend):
    make = BACKENDS[backend]
    got = preference(make(SCORES), make(REFERENCE))
    assert type(got) is type(make(SCORES)) and tuple(got.shape) == (6, 2)
    np.testing.assert_allclose(np.asarray(got), preference(SCORES, REFERENCE), rtol=1e-5, atol=1e-6)
    for name, found in REWARDS.items():
        if not found.needs_ensemble:
            rewards = reward(name)(got, make(np.ones(6, dtype=int)))
            assert np.isfinite(np.asarray(rewards)).all()


def test_no_gradient_passes_and_it_can_be_compiled():
    scores = torch.tensor(SCORES, requires_grad=True)
    assert not preference(scores, scores).requires_grad
    assert not jnp.any(jax.grad(lambda r: preference(r, jnp.zeros(6)).sum())(jnp.asarray(SCORES)))
    jitted = jax.jit(preference)(jnp.asarray(SCORES), jnp.asarray(REFERENCE))
    np.testing.assert_allclose(jitted, preference(SCORES, REFERENCE), rtol=1e-5, atol=1e-6)


def test_scores_of_any_size_and_number():
    far = preference(np.array([-1e12, 1e12]), np.array([1e12, -1e12]))
    assert np.isfinite(far).all()
    assert preference(np.zeros(0), np.zeros((0, 3))).shape == (0, 2)
    assert preference(np.array(0.0), 0.0).tolist() == pytest.approx([-math.log(2)] * 2)
    assert preference(torch.zeros(2, dtype=torch.bfloat16), [0, 0]).dtype == torch.float32


@pytest.mark.parametrize(
    ("score", "references", "message"),
    [
        (np.array([np.nan]), np.zeros(1), "^score must be finite"),
        (np.array([np.inf]), np.zeros(1), "^score must be finite"),
        (np.zeros(1), np.array([np.nan]), "reference_scores must be finite"),
        (np.zeros(2), None, "reference_scores must hold at least one"),
        (np.zeros(2), np.zeros((2, 0)), "reference_scores must hold at least one"),
        (np.zeros(2), [], "reference_scores must"),
        (np.zeros(2), np.zeros(3), "reference_scores must have shape"),
        (np.zeros(2), np.zeros((3, 2)), "reference_scores must have shape"),
        (np.zeros(2), 0.0, "reference_scores must have shape"),
        (np.zeros(2), "low", "reference_scores must"),
        (np.zeros(2, dtype=int), np.zeros(2), "score must hold floating"),
        ([0.0], np.zeros(1), "score must be a NumPy, PyTorch or JAX array"),
    ],
)
def test_bad_arguments_are_named(score, references, message):
    with pytest.raises(ValueError, match=message):
        preference(score, references)
