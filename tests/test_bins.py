import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from scipy import stats

from irrl.bins import bin_labels, bin_log_prior, hl_gauss
from irrl.densities import Binned, Normal, Uniform
from irrl.rewards import REWARDS, reward
from tests.helpers.posteriors import BACKENDS

EDGES = np.linspace(-2.0, 2.0, 9)


@pytest.mark.parametrize("y", [-2.0, -0.3, 0.0, 1.99])
def test_targets_are_a_normal_cut_to_the_edges(y):
    cdf = stats.norm(y, 0.75 * 0.5).cdf(EDGES)
    expected = np.diff(cdf) / (cdf[-1] - cdf[0])
    got = hl_gauss(np.array([y]), EDGES)
    np.testing.assert_allclose(got, expected[None], atol=1e-14)
    assert got.sum() == pytest.approx(1.0, abs=1e-14)


def test_targets_in_the_tails_keep_their_digits():
    expected = np.exp(stats.norm(-1.9, 0.1).logsf(1.5)) / stats.norm(-1.9, 0.1).sf(-2.0)
    assert hl_gauss(np.array(-1.9), EDGES, 0.2)[-1] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_backends_agree(backend):
    make, labels = BACKENDS[backend], np.random.default_rng(0).uniform(-2, 2, size=(3, 4))
    got = hl_gauss(make(labels), make(EDGES))
    assert type(got) is type(make(labels)) and tuple(got.shape) == (3, 4, 8)
    np.testing.assert_allclose(np.asarray(got), hl_gauss(labels, EDGES), atol=1e-6)
    classes = np.asarray(bin_labels(make(labels), make(EDGES)))
    np.testing.assert_array_equal(classes, bin_labels(labels, EDGES))
    for prior in (Normal(0.3, 0.8), Uniform(-1.0, 1.0)):
        log_prior = np.exp(np.asarray(bin_log_prior(prior, make(EDGES))))
        np.testing.assert_allclose(log_prior, np.exp(bin_log_prior(prior, EDGES)), atol=1e-6)


def test_bins_make_every_reward_work():
    rng = np.random.default_rng(1)
    labels = rng.uniform(-2, 2, size=6)
    with np.errstate(divide="ignore"):
        log_probs = np.log(hl_gauss(labels + 0.1 * np.sign(-labels), EDGES))
    log_prior = bin_log_prior(Normal(0.0, 1.0), EDGES)
    for name, found in REWARDS.items():
        posterior = np.stack([log_probs, log_probs]) if found.needs_ensemble else log_probs
        rewards = reward(name)(posterior, bin_labels(labels, EDGES), log_prior)
        assert rewards.shape == (6,) and np.isfinite(rewards).all()


def test_the_mean_target_is_the_prior_of_an_uninformed_model():
    """Cross-entropy is least at the mean of the targets, which is smoother than the prior."""
    labels = np.random.default_rng(2).uniform(-2, 2, size=20_000)
    mean = hl_gauss(labels, EDGES).mean(0)
    uniform = np.exp(bin_log_prior(Uniform(-2.0, 2.0), EDGES))
    np.testing.assert_allclose(uniform, 0.125, atol=1e-15)
    assert abs(mean[0] - 0.125) > 0.002 and mean[3] == pytest.approx(0.125, abs=0.002)
    zero = reward("linear")(np.log(np.tile(mean, (8, 1))), np.arange(8), np.log(mean))
    np.testing.assert_allclose(zero, 0.0, atol=1e-15)


def test_labels_on_edges_and_under_jit():
    assert bin_labels(EDGES, EDGES).tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 7]
    jitted = jax.jit(lambda y: (hl_gauss(y, EDGES), bin_labels(y, EDGES)))
    targets, classes = jitted(jnp.zeros(3))
    assert targets.shape == (3, 8) and classes.tolist() == [4, 4, 4]
    assert not hl_gauss(torch.zeros(2, requires_grad=True), EDGES).requires_grad


Y = np.array([0.5])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hl_gauss(Y + 2, EDGES), "labels must lie within edges, -2 to 2"),
        (lambda: bin_labels(Y - 3, EDGES), "labels must lie within edges, -2 to 2"),
        (lambda: hl_gauss(np.nan * Y, EDGES), "labels must be finite"),
        (lambda: hl_gauss([0.5], EDGES), "labels must be a NumPy, PyTorch or JAX array"),
        (lambda: hl_gauss(np.array([1]), EDGES), "labels must be floating"),
        (lambda: hl_gauss(Y, EDGES[::-1]), "edges must increase"),
        (lambda: hl_gauss(Y, [0.0, np.nan, 1.0]), "edges must be finite"),
        (lambda: hl_gauss(Y, [0.0]), "edges must have shape"),
        (lambda: hl_gauss(Y, EDGES[None]), "edges must have shape"),
        (lambda: hl_gauss(Y, EDGES, 0.0), "smoothing must lie within"),
        (lambda: hl_gauss(Y, EDGES, np.nan), "smoothing must lie within"),
        (lambda: bin_log_prior(Uniform(5.0, 6.0), EDGES), "prior gives no mass"),
        (lambda: bin_log_prior(Normal(0.0, 0.0), EDGES), r"prior\.std must be positive"),
        (lambda: bin_log_prior(Normal(np.zeros(2), 1.0), EDGES), "prior must be of one dimension"),
        (lambda: bin_log_prior(Binned([0.0], [0.0, 1.0]), EDGES), "prior must be a Normal or a"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
