import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from irrl.divergences import DIVERGENCES, expected_reward, f_mutual_information
from irrl.rewards import REWARDS

FINITE_AT_ZERO = [name for name, d in DIVERGENCES.items() if np.isfinite(d.f_at_zero)]

sizes = st.tuples(st.integers(2, 5), st.integers(2, 5))
positive_joints = sizes.flatmap(lambda n: arrays(float, n, elements=st.floats(0.01, 1.0))).map(
    lambda a: a / a.sum()
)
joints_with_zeros = (
    sizes.flatmap(
        lambda n: arrays(float, n, elements=st.one_of(st.just(0.0), st.floats(0.01, 1.0)))
    )
    .filter(lambda a: a.sum() > 0)
    .map(lambda a: a / a.sum())
)


def reward_of(name, prior=0.05):
    """The library's reward as a function of the ratio of posterior and prior."""
    shape = REWARDS[f"f-{name}"]
    return lambda ratio: shape.of_log_posterior(np, np.log(ratio) + np.log(prior), np.log(prior))


@pytest.mark.parametrize("name", DIVERGENCES)
@given(positive_joints)
def test_the_expected_reward_is_the_divergence(name, joint):
    expected = f_mutual_information(joint, name)
    assert expected_reward(joint, reward_of(name)) == pytest.approx(expected, abs=1e-9)
    assert expected_reward(joint, DIVERGENCES[name].integrand) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", FINITE_AT_ZERO)
@given(joints_with_zeros)
def test_it_stays_so_where_the_joint_has_zeros(name, joint):
    expected = f_mutual_information(joint, name)
    assert expected_reward(joint, reward_of(name)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", DIVERGENCES)
@given(st.floats(1e-6, 1e6))
def test_the_closed_form_is_the_derived_one(name, ratio):
    derived = DIVERGENCES[name].integrand(ratio)
    assert reward_of(name)(ratio) == pytest.approx(derived, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("name", DIVERGENCES)
@given(positive_joints)
def test_divergences_are_not_negative_and_vanish_for_independent_variables(name, joint):
    assert f_mutual_information(joint, name) >= -1e-12
    independent = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
    assert f_mutual_information(independent, name) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("name", DIVERGENCES)
@given(st.floats(0.01, 10), st.floats(0.01, 10), st.floats(0, 1))
def test_each_f_is_convex_and_zero_at_one(name, a, b, t):
    f = DIVERGENCES[name].f
    assert f(np.float64(1.0)) == pytest.approx(0.0, abs=1e-15)
    assert f(t * a + (1 - t) * b) <= t * f(np.float64(a)) + (1 - t) * f(np.float64(b)) + 1e-9


def test_f_as_printed_misses_the_mass_that_the_joint_does_not_have():
    joint = np.array([[0.5, 0.0], [0.0, 0.5]])
    chi2 = DIVERGENCES["chi2"]
    assert f_mutual_information(joint, "chi2") == pytest.approx(1.0)
    assert expected_reward(joint, chi2.integrand) == pytest.approx(1.0)
    assert expected_reward(joint, chi2.printed_integrand) == pytest.approx(0.5)


def test_the_printed_le_cam_expectation_is_not_the_divergence():
    """Table 1 averages (q-p)^2/(2q+2p) over the joint; neither that nor half of it is D_f."""
    joint = np.array([[0.3, 0.1], [0.15, 0.45]])
    p_y = joint.sum(0, keepdims=True)
    posterior = joint / joint.sum(1, keepdims=True)
    squares = (posterior - p_y) ** 2 / (2 * posterior + 2 * p_y)
    printed = np.sum(joint * squares)
    derived = f_mutual_information(joint, "le-cam")
    assert abs(printed - derived) > 0.1 * derived
    # summed over y instead of averaged, it is twice the divergence of the printed f
    summed = np.sum(joint.sum(1, keepdims=True) * squares)
    assert summed == pytest.approx(2 * derived)


def test_the_linear_reward_is_chi2_only_under_a_uniform_prior():
    q = np.array([0.1, 0.4, 0.9])
    for p in (0.25, 0.5):
        linear = REWARDS["linear"].of_log_posterior(np, np.log(q), np.log(p))
        chi2 = REWARDS["f-chi2"].of_log_posterior(np, np.log(q), np.log(p))
        np.testing.assert_allclose(chi2, linear / p)  # the factor 1/p(y) depends on the label


@pytest.mark.parametrize(
    "joint", [np.ones((2, 2)), np.array([0.5, 0.5]), np.array([[1.5, -0.5]]), [[np.nan, 1.0]]]
)
def test_bad_joints_are_refused(joint):
    with pytest.raises(ValueError, match="joint must"):
        f_mutual_information(joint, "kl")


def test_unknown_names_and_ratios_are_refused():
    with pytest.raises(ValueError, match=r"unknown divergence 'kll'. Did you mean 'kl'"):
        f_mutual_information([[1.0]], "kll")
    for ratio in (0.0, -1.0, np.nan):
        with pytest.raises(ValueError, match="ratios must be positive"):
            DIVERGENCES["kl"].integrand(ratio)
