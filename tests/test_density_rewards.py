import itertools
import math
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from scipy import integrate, stats

from irrl.densities import Binned, Normal, Uniform
from irrl.density_rewards import DENSITY_REWARDS, density_reward
from irrl.divergences import DIVERGENCES
from irrl.rewards import reward
from tests.helpers.posteriors import BACKENDS

EDGES = np.array([-4.0, -1.5, -0.5, 0.0, 0.3, 1.0, 2.5, 4.0])
WEIGHTS = np.array([0.05, 0.1, 0.15, 0.4, 0.15, 0.1, 0.05])
PRIORS = {"normal": Normal(0.2, 1.3), "uniform": Uniform(-4.0, 4.0),
          "binned": Binned(np.log([0.1, 0.1, 0.2, 0.2, 0.2, 0.1, 0.1]), EDGES)}  # fmt: skip


def frozen(density):
    """The same as a distribution of SciPy."""
    if isinstance(density, Normal):
        return stats.norm(np.squeeze(density.mean), np.squeeze(density.std))
    if isinstance(density, Uniform):
        return stats.uniform(density.low, density.high - density.low)
    probs = np.exp(np.reshape(density.log_probs, -1))
    return stats.rv_histogram((probs, density.edges), density=False)


def crps_of(distribution, y):
    ends = [-40.0, *sorted({*EDGES, y, -1.0, 1.0}), 40.0]
    f = lambda x: (distribution.cdf(x) - (x >= y)) ** 2  # noqa: E731
    return sum(integrate.quad(f, a, b)[0] for a, b in itertools.pairwise(ends))


def by_hand(name, posterior, prior, y):
    q, p = frozen(posterior), frozen(prior)
    ends = [y - 0.25 * p.std(), y + 0.25 * p.std()]
    ratio = q.pdf(y) / p.pdf(y)
    value = {
        "ball": lambda: np.diff(q.cdf(ends)) - np.diff(p.cdf(ends)),
        "crps": lambda: (crps_of(p, y) - crps_of(q, y)) / p.std(),
        "density-log": lambda: math.log(ratio),
        "f-le-cam": lambda: (ratio - 1) / (2 * ratio + 2),
        "f-total-variation": lambda: max(1 - 1 / ratio, 0),
    }[name.removeprefix("clipped-")]()  # fmt: skip
    return max(float(np.squeeze(value)), 0.0) if name.startswith("clipped-") else value


@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
@pytest.mark.parametrize("kind", ["normal", "binned"])
@pytest.mark.parametrize("name", DENSITY_REWARDS)
def test_each_reward_is_its_formula(name, kind, prior):
    posterior = {
        "normal": Normal(np.array([[0.4]]), np.array([[0.6]])),
        "binned": Binned(np.log(WEIGHTS)[None, None], EDGES),
    }[kind]
    for y in (-2.9, 0.1, 0.7):
        got = density_reward(name)(posterior, np.array([[y]]), prior)
        assert got.shape == (1,)
        assert got == pytest.approx(by_hand(name, posterior, prior, y), abs=1e-6)


def random_batch(rng, shape=(3, 4), dimensions=2):
    shape = (*shape, dimensions)
    labels = rng.uniform(-0.9, 0.9, size=shape)
    mean, std = labels + 0.3 * rng.normal(size=shape), np.exp(rng.normal(size=shape) - 1.0)
    return mean, std, labels


@pytest.mark.parametrize("name", DENSITY_REWARDS)
def test_dimensions_are_independent(name):
    """Log-ratios and CRPS add up, masses multiply; units of the label do not matter."""
    mean, std, labels = random_batch(np.random.default_rng(0))
    prior = Normal(np.array([0.0, 0.5]), np.array([1.0, 2.0]))
    found = density_reward(name)
    single = [
        [density_reward(part)(Normal(mean[..., d : d + 1], std[..., d : d + 1]),
                              labels[..., d : d + 1], Normal(prior.mean[d], prior.std[d]))
         for d in (0, 1)]
        for part in ("density-log", "crps")
    ]  # fmt: skip
    ratio, crps = (sum(parts) for parts in single)
    q, p = stats.norm(mean, std), stats.norm(prior.mean, prior.std)
    ends = labels - 0.25 * prior.std, labels + 0.25 * prior.std
    masses = [np.prod(x.cdf(ends[1]) - x.cdf(ends[0]), axis=-1) for x in (q, p)]
    expected = {
        "ball": masses[0] - masses[1],
        "crps": crps,
        "density-log": ratio,
        "f-le-cam": 0.5 * np.tanh(0.5 * ratio),
        "f-total-variation": np.maximum(1 - np.exp(-ratio), 0),
    }[name.removeprefix("clipped-")]
    expected = np.maximum(expected, 0) if found.clipped else expected
    got = found(Normal(mean, std), labels, prior)
    np.testing.assert_allclose(got, expected, atol=1e-12)
    units = np.array([1e-3, 1e3])
    scaled = Normal(prior.mean * units, prior.std * units)
    again = found(Normal(mean * units, std * units), labels * units, scaled)
    np.testing.assert_allclose(again, got, atol=1e-9)


@pytest.mark.parametrize("name", DENSITY_REWARDS)
def test_the_prior_itself_earns_nothing(name):
    labels = np.linspace(-0.9, 0.9, 7)[:, None]
    normal = Normal(np.full((7, 1), 0.2), 1.3)
    np.testing.assert_allclose(
        density_reward(name)(normal, labels, Normal(0.2, 1.3)), 0, atol=1e-15
    )
    logs = np.log(WEIGHTS)
    binned = Binned(np.broadcast_to(logs, (7, 1, 7)), EDGES)
    np.testing.assert_allclose(
        density_reward(name)(binned, labels, Binned(logs, EDGES)), 0, atol=1e-15
    )


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", DENSITY_REWARDS)
def test_backends_agree(name, backend):
    mean, std, labels = random_batch(np.random.default_rng(1))
    logits = np.random.default_rng(2).normal(size=(3, 4, 2, 7))
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    make = BACKENDS[backend]
    for prior in PRIORS.values():
        for posterior, moved in (
            (Normal(mean, std), Normal(make(mean), make(std))),
            (Binned(log_probs, EDGES), Binned(make(log_probs), make(EDGES))),
        ):
            expected = density_reward(name)(posterior, labels, prior)
            got = density_reward(name)(moved, make(labels), prior)
            assert type(got) is type(make(labels)) and tuple(got.shape) == (3, 4)
            assert got.dtype == make(mean).dtype
            np.testing.assert_allclose(np.asarray(got), expected, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", DENSITY_REWARDS)
def test_extreme_posteriors_give_finite_rewards(name, backend):
    make = BACKENDS[backend]
    mean = np.array([[0.0], [1e12], [0.0], [-1e12], [0.5]], dtype=np.float32)
    std = np.array([[1e-12], [1e-12], [1e12], [1e12], [1e-6]], dtype=np.float32)
    labels = np.zeros((5, 1), dtype=np.float32)
    for prior in (Normal(0.0, 1.0), Normal(0.0, 1e-12), Normal(0.0, 1e12), Uniform(-1.0, 1.0)):
        got = np.asarray(density_reward(name)(Normal(make(mean), make(std)), make(labels), prior))
        assert np.isfinite(got).all() and got.dtype == np.float32
    sure = np.full((2, 1, 7), -np.inf, dtype=np.float32)
    sure[0, 0, 3] = sure[1, 0, 0] = 0.0
    got = density_reward(name)(Binned(make(sure), make(EDGES)), make(labels[:2]), Normal(0.0, 1.0))
    assert np.isfinite(np.asarray(got)).all() and got[0] >= got[1]
    off = density_reward(name, validate=False)
    wild = Normal(make(mean), make(0 * std))
    assert np.isfinite(np.asarray(off(wild, make(labels + 9), Uniform(-1.0, 1.0)))).all()


@pytest.mark.parametrize("name", DENSITY_REWARDS)
def test_no_gradient_passes_and_it_can_be_compiled(name):
    mean, std, labels = random_batch(np.random.default_rng(3))
    prior, found = Normal(0.0, 1.0), density_reward(name)
    expected = found(Normal(mean, std), labels, prior)
    x = torch.tensor(mean, requires_grad=True)
    s = torch.tensor(std, requires_grad=True)
    assert not found(Normal(x, s), torch.tensor(labels), prior).requires_grad

    def total(m, s):
        return found(Normal(m, s), jnp.asarray(labels), prior).sum()

    arrays = jnp.asarray(mean), jnp.asarray(std)
    assert not any(jnp.any(g) for g in jax.grad(total, argnums=(0, 1))(*arrays))
    jitted = jax.jit(lambda m, s, y: found(Normal(m, s), y, prior))(*arrays, jnp.asarray(labels))
    np.testing.assert_allclose(jitted, expected, rtol=1e-4, atol=1e-5)
    bins = jax.jit(lambda q, y: found(Binned(q, EDGES), y, prior))
    uniform = jnp.full((2, 1, 7), -math.log(7))
    assert bins(uniform, jnp.zeros((2, 1))).shape == (2,)


def test_half_precision_is_computed_in_single():
    posterior = Normal(torch.zeros(2, 1, dtype=torch.bfloat16), torch.ones(2, 1))
    got = density_reward("crps")(posterior, torch.zeros(2, 1), Normal(0.0, 1.0))
    assert got.dtype == torch.float32 and got.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("name", DENSITY_REWARDS)
def test_rewards_can_be_pickled(name):
    found = density_reward(name, validate=False)
    assert pickle.loads(pickle.dumps(found)) == found


def test_crps_is_the_quadratic_score_over_thresholds_and_an_expected_distance():
    y, density = 0.7, Normal(np.array([[0.4]]), np.array([[0.6]]))
    thresholds = np.linspace(-8, 8, 200_001)
    above = stats.norm(0.4, 0.6).sf(thresholds)
    probs, outcome = np.stack([1 - above, above]), (y > thresholds).astype(int)
    at_outcome = np.take_along_axis(probs, outcome[None], 0)[0]
    brier = 1 - 2 * at_outcome + (probs**2).sum(0)  # over two classes: twice (F - step)^2
    crps = float(density.crps(np, np.array([[y]])).squeeze())
    assert crps == pytest.approx(0.5 * integrate.trapezoid(brier, thresholds), abs=1e-4)
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.4, 0.6, size=(2, 1_000_000))
    assert crps == pytest.approx(np.mean(np.abs(a - y)) - np.mean(np.abs(a - b)) / 2, abs=3e-3)


def test_over_labels_a_ratio_earns_its_divergence():
    """As with classes: the expectation of F(q/p) over labels of q is the f-divergence."""
    q, p = stats.norm(0.4, 0.3), stats.norm(0, 1)
    posterior = Normal(np.full((1, 1), 0.4), 0.3)
    for name in ("le-cam", "total-variation"):
        found = density_reward(f"f-{name}")
        f = lambda y, found=found: q.pdf(y) * found(posterior, np.array([[y]]), Normal(0, 1))[0]  # noqa: E731
        earned = integrate.quad(f, -2, 3, limit=200)[0]
        divergence = DIVERGENCES[name].f
        g = lambda y, divergence=divergence: p.pdf(y) * divergence(q.pdf(y) / p.pdf(y))  # noqa: E731
        rest = DIVERGENCES[name].f_at_zero * (p.cdf(-2) + p.sf(3))
        assert earned == pytest.approx(integrate.quad(g, -2, 3, limit=200)[0] + rest, abs=1e-5)
    found = density_reward("density-log")
    f = lambda y: q.pdf(y) * found(posterior, np.array([[y]]), Normal(0, 1))[0]  # noqa: E731
    kl = math.log(1 / 0.3) + (0.3**2 + 0.4**2) / 2 - 0.5
    assert integrate.quad(f, -3, 4)[0] == pytest.approx(kl, abs=1e-9)


def test_a_narrow_ball_is_the_linear_reward_of_densities():
    posterior, y, prior = Normal(np.full((1, 1), 0.4), 0.3), np.array([[0.6]]), Normal(0, 1)
    got = density_reward("ball", epsilon=1e-4)(posterior, y, prior) / 2e-4
    assert got == pytest.approx(stats.norm(0.4, 0.3).pdf(0.6) - stats.norm.pdf(0.6), rel=1e-6)


def test_bins_earn_what_classes_earn():
    rng = np.random.default_rng(5)
    logits = rng.normal(size=(6, 1, 7))
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    labels, prior = rng.uniform(-4, 4, size=(6, 1)), np.log(WEIGHTS)
    classes = np.searchsorted(EDGES, labels, side="right") - 1
    for name in ("f-le-cam", "f-total-variation"):
        got = density_reward(name)(Binned(log_probs, EDGES), labels, Binned(prior, EDGES))
        np.testing.assert_allclose(got, reward(name)(log_probs, classes, prior)[:, 0], atol=1e-12)
    got = density_reward("density-log")(Binned(log_probs, EDGES), labels, Binned(prior, EDGES))
    np.testing.assert_allclose(got, reward("log")(log_probs, classes, prior)[:, 0], atol=1e-12)


ONE = np.zeros((2, 1))
GOOD = Normal(ONE, np.ones((2, 1)))
BINS = Binned(np.log(np.full((2, 1, 2), 0.5)), np.array([-1.0, 0.0, 1.0]))


@pytest.mark.parametrize(
    ("posterior", "labels", "prior", "message"),
    [
        (Normal(ONE, 0.0 * ONE), ONE, Normal(0, 1), r"posterior\.std must be positive"),
        (Normal(ONE, -1 + ONE), ONE, Normal(0, 1), r"posterior\.std must be positive"),
        (Normal(ONE, np.inf + ONE), ONE, Normal(0, 1), r"posterior\.std must be finite"),
        (Normal(ONE, np.nan + ONE), ONE, Normal(0, 1), r"posterior\.std must be finite"),
        (Normal(np.nan + ONE, 1.0), ONE, Normal(0, 1), r"posterior\.mean must be finite"),
        (GOOD, np.nan + ONE, Normal(0, 1), "labels must be finite"),
        (GOOD, np.inf + ONE, Normal(0, 1), "labels must be finite"),
        (GOOD, ONE[0], Normal(0, 1), "labels must have shape"),
        (GOOD, np.array(0.0), Normal(0, 1), "labels must have shape"),
        (GOOD, "zero", Normal(0, 1), "labels must"),
        (GOOD, 1 + ONE, Uniform(-0.5, 0.5), "prior gives no mass to one of the labels"),
        (GOOD, 1 + ONE, Normal(0.0, 1e-3), "prior gives no mass to one of the labels"),
        (GOOD, 0.5 + ONE, Binned(np.array([0.0, -np.inf]), [0.0, 0.4, 1.0]), "prior gives no mass"),
        (GOOD, ONE, Normal(0.0, 0.0), r"prior\.std must be positive"),
        (GOOD, ONE, Normal(0.0, np.inf), r"prior\.std must be finite"),
        (GOOD, ONE, Uniform(1.0, 1.0), r"prior\.high must be above prior\.low"),
        (GOOD, ONE, Uniform(np.nan, 1.0), r"prior\.low must be finite"),
        (GOOD, ONE, Normal(np.zeros(2), 1.0), r"prior\.mean does not fit labels"),
        (GOOD, ONE, Normal(0.0, np.ones((2, 1))), r"prior\.std does not fit labels"),
        (GOOD, ONE, (0.0, 1.0), "prior must be a Normal, Uniform or Binned density, got tuple"),
        (Uniform(ONE, 1 + ONE), ONE, Normal(0, 1), "posterior must be a Normal or a Binned"),
        (Normal(0.0, 1.0), ONE, Normal(0, 1), r"posterior\.mean must be a NumPy, PyTorch or JAX"),
        (Normal(ONE, np.ones(3)), ONE, Normal(0, 1), r"posterior\.std does not fit labels"),
        (Normal(ONE, np.array("a")), ONE, Normal(0, 1), r"posterior\.std must"),
        (BINS, 2 + ONE, Normal(0, 1), r"labels must lie within posterior\.edges"),
        (Binned(BINS.log_probs, [0.0, 0.0, 1.0]), ONE, Normal(0, 1), r"posterior\.edges must incr"),
        (Binned(BINS.log_probs, [0.0, 1.0]), ONE, Normal(0, 1), r"posterior\.edges must have sh"),
        (Binned(0 * BINS.log_probs, BINS.edges), ONE, Normal(0, 1), r"posterior\.log_probs must"),
        (Binned(np.nan * BINS.log_probs, BINS.edges), ONE, Normal(0, 1), r"log_probs contains NaN"),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(posterior, labels, prior, message):
    with pytest.raises(ValueError, match=message):
        density_reward("ball")(posterior, labels, prior)


def test_a_label_on_the_border_is_inside():
    border = Normal(np.zeros((2, 1), dtype=np.float32), 1.0), np.array([[0.1], [0.3]])
    assert np.isfinite(density_reward("density-log")(*border, Uniform(0.1, 0.3))).all()


def test_names_and_epsilons_are_checked():
    with pytest.raises(ValueError, match="Did you mean 'crps'"):
        density_reward("crsp")
    with pytest.raises(ValueError, match="unknown reward of densities"):
        density_reward(3)
    for epsilon in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="epsilon must be a positive number"):
            density_reward("ball", epsilon=epsilon)
    with pytest.raises(ValueError, match="epsilon goes with ball, not with crps"):
        density_reward("crps", epsilon=0.1)
    assert density_reward(density_reward("ball", epsilon=0.5)).epsilon == 0.5


# Reward of an informative less that of an uninformative trajectory (posterior std 0.3 and 0.9 under
# a standard normal prior) in shares of what it is without noise, and over the pooled std.
KEPT = {
    "density-log": [(1, 1.48), (0.79, 0.76), (-0.84, -0.16), (-4.7, -0.43)],
    "clipped-density-log": [(1, 1.74), (0.85, 1.37), (0.50, 0.76), (0.32, 0.43)],
    "ball": [(1, 2.53), (0.86, 1.74), (0.51, 0.82), (0.50, 0.54)],
    "crps": [(1, 1.00), (0.94, 0.90), (0.75, 0.58), (0.74, 0.52)],
}
NOISES = [(0.0, 0.0, 0.0), (0.2, 0.5, 0.0), (0.5, 1.0, 0.0), (0.5, 0.5, -1.5)]


@pytest.mark.parametrize("name", KEPT)
def test_what_noise_leaves_of_the_contrast_between_trajectories(name):
    rng = np.random.default_rng(0)
    n, found, first = 60_000, density_reward(name, validate=False), None
    for (of_mean, of_log_var, bias), (share, ratio) in zip(NOISES, KEPT[name], strict=True):
        rewards = []
        for s in (0.3, 0.9):
            z = rng.normal(size=(4, n, 1))
            mean = math.sqrt(1 - s * s) * z[0]
            std = s * np.exp(0.5 * (bias + of_log_var * z[3]))
            reported = Normal(mean + of_mean * z[2], std)
            rewards.append(found(reported, mean + s * z[1], Normal(0.0, 1.0)))
        contrast = float(rewards[0].mean() - rewards[1].mean())
        first = first or contrast
        noise = math.sqrt(sum(float(r.var()) for r in rewards) / 2)
        assert contrast / first == pytest.approx(share, abs=0.02 + 0.03 * abs(share))
        assert contrast / noise == pytest.approx(ratio, abs=0.03)  # three standard errors
