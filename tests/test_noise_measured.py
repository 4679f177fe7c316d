import numpy as np
import pytest

from irrl import noise_measured
from irrl.noise_measured import describe_delta, measured_noise, predicted_noise
from irrl.runs.seeding import stream


def test_delta_of_known_moments():
    rng = np.random.default_rng(0)
    symmetric = rng.normal(0.0, 0.1, 2000)
    found = describe_delta(symmetric)
    assert found.samples == 2000
    assert found.mean == pytest.approx(symmetric.mean())
    assert found.std == pytest.approx(symmetric.std(ddof=1))
    assert found.p_zero_mean > 0.01 and found.p_symmetric > 0.01
    shifted = describe_delta(symmetric + 0.02)
    assert shifted.p_zero_mean < 1e-6 and shifted.p_symmetric < 0.001
    skewed = describe_delta(rng.exponential(0.1, 2000) - 0.1)
    assert skewed.skewness == pytest.approx(2.0, abs=0.4)
    assert skewed.p_symmetric < 0.001


def spike_with_outliers(rng):
    """What a nearly converged discriminator shows: mostly nothing, now and then all wrong."""
    far = rng.choice([-0.9, 0.9], 200) * (rng.random(200) < 0.1)
    return rng.normal(0.0, 0.01, 200) + far


@pytest.mark.parametrize("draw", [lambda rng: rng.laplace(0.0, 0.1, 200), spike_with_outliers])
def test_the_tests_of_delta_err_as_often_as_they_say(draw):
    """Under the hypotheses, a p value below 0.1 comes in about a tenth of all samples."""
    rng = np.random.default_rng(1)
    found = [describe_delta(draw(rng), resamples=200) for _ in range(300)]
    for p in ("p_zero_mean", "p_symmetric"):
        assert 0.04 < np.mean([getattr(f, p) < 0.1 for f in found]) < 0.17


def test_no_noise_is_no_noise():
    found = describe_delta(np.zeros(20))
    assert found.mean == found.std == 0.0 and found.p_zero_mean == found.p_symmetric == 1.0
    q = np.linspace(0.1, 0.9, 50)
    assert measured_noise("log", q, q).variance == 0.0
    assert predicted_noise("log", q, q).bias == 0.0


def test_for_the_linear_reward_noise_is_delta_and_so_is_the_prediction():
    rng = np.random.default_rng(2)
    oracle = rng.uniform(0.2, 0.8, 1000)
    online = np.clip(oracle + rng.normal(0.01, 0.05, 1000), 0, 1)
    delta = online - oracle
    measured = measured_noise("linear", online, oracle)
    assert measured.bias == pytest.approx(delta.mean())
    assert measured.variance == pytest.approx(delta.var())
    predicted = predicted_noise("linear", online, oracle)
    assert predicted.bias == pytest.approx(delta.mean(), abs=1e-6)
    assert predicted.variance == pytest.approx(delta.var(), rel=1e-4)


def test_small_noise_is_predicted_well_for_the_logarithm():
    rng = np.random.default_rng(3)
    oracle = rng.uniform(0.4, 0.8, 20_000)
    online = oracle + rng.normal(0.0, 0.04, 20_000)
    measured = measured_noise("log", online, oracle)
    predicted = predicted_noise("log", online, oracle)
    assert predicted.bias == pytest.approx(measured.bias, abs=3e-4)
    assert predicted.std == pytest.approx(measured.std, rel=0.03)


@pytest.mark.parametrize("noise", [measured_noise, predicted_noise])
@pytest.mark.parametrize("bad", [[[0.1, 0.2]], [0.5, 1.2], [0.5, float("nan")], []])
def test_posteriors_are_probabilities(noise, bad):
    with pytest.raises(ValueError, match="posteriors"):
        noise("linear", bad, bad)


@pytest.mark.parametrize("noise", [measured_noise, predicted_noise])
def test_posteriors_are_of_the_same_labels(noise):
    """Neither cut to the shorter row nor broadcast."""
    for online, oracle in (([0.5, 0.6, 0.7], [0.5, 0.6]), ([0.5], [0.5, 0.6]), ([0.5, 0.6], 0.5)):
        with pytest.raises(ValueError, match="posteriors must be two rows of one length"):
            noise("linear", online, oracle)
        with pytest.raises(ValueError, match="posteriors must be two rows of one length"):
            noise("linear", oracle, online)


@pytest.mark.parametrize(
    "call",
    [
        lambda: measured_noise("disdain", [0.5], [0.5]),
        lambda: predicted_noise("disdain", [0.5], [0.5]),
        lambda: measured_noise("log", [0.5], [0.5], prior=0.0),
        lambda: predicted_noise("log", [0.5], [0.5], bins=0),
        lambda: describe_delta([0.1] * 9),
        lambda: describe_delta([0.1] * 9 + [float("nan")]),
        lambda: describe_delta([0.1] * 9 + [float("inf")]),
    ],
)
def test_bad_arguments(call):
    with pytest.raises(ValueError):
        call()


def test_the_signs_are_those_of_the_stream_for_evaluation():
    """The numbers of published tables depend on them."""
    wanted = stream(0, "evaluation").random(8)
    assert noise_measured._generator().random(8).tolist() == wanted.tolist()
