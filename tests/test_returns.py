import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from irrl.returns import gae, lambda_returns, potential_differences

BACKENDS = {"numpy": np.asarray, "torch": torch.asarray, "jax": jnp.asarray}
numbers = st.lists(st.floats(-10, 10), min_size=1, max_size=12)
shares = st.floats(0, 1)


def by_hand(r_t, discount_t, v_t, lambda_):
    """The recursion, one number at a time."""
    found, later = np.zeros(r_t.shape), v_t[-1]
    for t in reversed(range(len(r_t))):
        later = r_t[t] + discount_t[t] * ((1 - lambda_) * v_t[t] + lambda_ * later)
        found[t] = later
    return found


def case(seed, steps, *batch):
    rng = np.random.default_rng(seed)
    r_t, v_t = rng.normal(size=(2, steps, *batch))
    return r_t, rng.random((steps, *batch)) * (rng.random((steps, *batch)) < 0.8), v_t


@given(numbers, shares, st.floats(-10, 10))
def test_with_lambda_one_they_are_discounted_sums_and_the_last_value(rewards, discount, last):
    r_t = np.array(rewards)
    v_t = np.append(np.ones(len(rewards) - 1), last)
    found = lambda_returns(r_t, np.full_like(r_t, discount), v_t)
    for t in range(len(rewards)):
        rest = [*rewards[t:], last]
        wanted = sum(discount**k * r for k, r in enumerate(rest))
        assert found[t] == pytest.approx(wanted, abs=1e-9)


@given(numbers, shares)
def test_with_lambda_zero_they_look_one_step_ahead(rewards, discount):
    r_t = np.array(rewards)
    v_t = np.arange(len(rewards)) + 1.0
    np.testing.assert_allclose(lambda_returns(r_t, discount, v_t, 0.0), r_t + discount * v_t)


@given(st.integers(0, 1000), st.integers(1, 7), shares, st.booleans())
def test_of_any_lambda_and_batch(seed, steps, lambda_, batched):
    r_t, discount_t, v_t = case(seed, steps, *([3, 2] if batched else []))
    wanted = by_hand(r_t, discount_t, v_t, lambda_)
    np.testing.assert_allclose(lambda_returns(r_t, discount_t, v_t, lambda_), wanted, atol=1e-12)


@given(numbers, shares, shares, st.floats(-10, 10))
def test_advantages_are_discounted_sums_of_errors(rewards, discount, lambda_, last):
    r_t = np.array(rewards)
    values = np.append(np.random.default_rng(0).random(len(rewards)), last)
    found = gae(r_t, discount, values, lambda_)
    errors = r_t + discount * values[1:] - values[:-1]
    for t in range(len(rewards)):
        wanted = sum((discount * lambda_) ** k * e for k, e in enumerate(errors[t:]))
        assert found[t] == pytest.approx(wanted, abs=1e-9)


@given(st.integers(0, 1000), st.integers(1, 7), shares, shares)
def test_gae_against_a_loop_over_episodes(seed, steps, discount, lambda_):
    """Episodes of different lengths side by side, rewarded at their ends."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, steps + 1, 4)
    rewards, values = rng.normal(size=(2, steps, 4))
    going_on = np.arange(steps)[:, None] < lengths - 1
    found = gae(rewards, discount * going_on, np.append(values, np.zeros((1, 4)), 0), lambda_)
    for n, length in enumerate(lengths):
        advantage = 0.0
        for t in reversed(range(length)):
            later = values[t + 1, n] if t + 1 < length else 0.0
            error = rewards[t, n] + discount * later - values[t, n]
            advantage = error + discount * lambda_ * advantage
            assert found[t, n] == pytest.approx(advantage, abs=1e-9)


@given(st.integers(0, 1000), st.integers(1, 6), shares)
def test_a_rollout_cut_in_two_gives_the_same_as_a_whole_one(seed, steps, lambda_):
    """Where lambda is 1, the value at the cut stands for all that follows."""
    r_t, discount_t, v_t = case(seed, 2 * steps)
    whole = lambda_returns(r_t, discount_t, v_t)
    first = slice(0, steps)
    bootstrapped = np.append(v_t[: steps - 1], whole[steps])
    np.testing.assert_allclose(
        lambda_returns(r_t[first], discount_t[first], bootstrapped), whole[first], atol=1e-12
    )


def test_nothing_crosses_the_end_of_an_episode():
    r_t = np.array([1.0, 2.0, 100.0])
    found = lambda_returns(r_t, np.array([1.0, 0.0, 1.0]), np.array([50.0, 50.0, 0.0]), 0.5)
    assert found.tolist() == [1.0 + 0.5 * 50.0 + 0.5 * 2.0, 2.0, 100.0]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("discount", ["array", "number", "0-d"])
def test_libraries_agree_and_the_input_stays(backend, discount):
    make = BACKENDS[backend]
    r_t, discount_t, v_t = (x.astype(np.float32) for x in case(0, 5, 4))
    if discount != "array":
        discount_t = np.full_like(r_t, 0.9)
    wanted = by_hand(r_t, discount_t, v_t, 0.8)
    given = {"array": make(discount_t), "number": 0.9, "0-d": make(np.float64(0.9))}[discount]
    array = make(r_t)
    before = np.asarray(array).copy()
    found = lambda_returns(array, given, make(v_t), 0.8)
    assert type(found) is type(array) and found.dtype == array.dtype
    np.testing.assert_allclose(np.asarray(found), wanted, atol=1e-5)
    assert (np.asarray(array) == before).all()


def test_under_jit():
    r_t, discount_t, values = case(1, 6, 3)
    values = np.append(values, np.ones((1, 3)), 0)
    jitted = jax.jit(gae)(jnp.asarray(r_t), jnp.asarray(discount_t), jnp.asarray(values))
    np.testing.assert_allclose(jitted, gae(r_t, discount_t, values), atol=1e-5)
    traced = jax.jit(lambda d: lambda_returns(jnp.ones(3), d, jnp.zeros(3)))(0.5)
    np.testing.assert_allclose(traced, [1.75, 1.5, 1.0])


def test_gradients_pass():
    r_t, discount_t, v_t = (torch.tensor(x) for x in case(2, 4, 3))
    r_t.requires_grad_()
    assert torch.autograd.gradcheck(lambda r: lambda_returns(r, discount_t, v_t, 0.7), r_t)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["int32", "bool", "uint8"])
def test_whole_numbers_are_not_cut_off(backend, dtype):
    make = BACKENDS[backend]
    r_t, ones = make(np.array([1, 0, 1], dtype=dtype)), make(np.ones(3, dtype=dtype))
    halves = make(np.full(3, 0.5, dtype=np.float32))
    found = lambda_returns(r_t, halves, halves)
    assert found.dtype == halves.dtype
    np.testing.assert_allclose(np.asarray(found), [1.3125, 0.625, 1.25])
    np.testing.assert_allclose(np.asarray(lambda_returns(r_t, 0.5, ones)), [1.375, 0.75, 1.5])
    np.testing.assert_allclose(np.asarray(lambda_returns(halves, ones, r_t)), [2.5, 2.0, 1.5])
    default = make(0.0 * np.ones(1)).dtype if backend == "numpy" else make([0.5]).dtype
    assert lambda_returns(r_t, ones, ones).dtype == default
    values = make(np.array([1, 1, 1, 0], dtype=dtype))
    assert np.asarray(gae(make(np.zeros(3, dtype=dtype)), 1.0, values)).tolist() == [-1.0] * 3
    assert np.asarray(potential_differences(r_t)).tolist() == [-1.0, 1.0]


def test_no_steps_at_all():
    empty = torch.zeros(0, 4)
    assert lambda_returns(empty, empty, empty).shape == (0, 4)
    assert gae(empty, empty, torch.zeros(1, 4)).shape == (0, 4)


def test_potential_differences_add_up():
    potential = np.random.default_rng(0).random((6, 4))
    differences = potential_differences(potential)
    returns = lambda_returns(differences, 1.0, np.zeros((5, 4)))
    np.testing.assert_allclose(returns[0], potential[-1] - potential[0])


ONES = np.ones(3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lambda_returns(ONES, ONES, ONES, -0.1), "lambda_ must lie between 0 and 1"),
        (lambda: lambda_returns(ONES, ONES, ONES, 1.1), "lambda_ must lie between 0 and 1"),
        (lambda: lambda_returns(ONES, ONES, ONES, float("nan")), "lambda_ must lie between"),
        (lambda: lambda_returns(ONES, ONES, np.ones(2)), "one shape .*v_t \\(2,\\)"),
        (lambda: lambda_returns(ONES, np.ones(2), ONES), "one shape .*discount_t \\(2,\\)"),
        (lambda: lambda_returns(np.ones((3, 2)), ONES, np.ones((3, 2))), "one shape"),
        (lambda: lambda_returns(np.float64(1), 1.0, np.float64(1)), "one shape"),
        (lambda: lambda_returns([1.0], ONES, ONES), "r_t must be .* array, got list"),
        (lambda: lambda_returns(ONES, [1.0] * 3, ONES), "discount_t must be .* array, got list"),
        (lambda: lambda_returns(ONES, None, ONES), "discount_t must be .* array, got NoneType"),
        (lambda: lambda_returns(ONES, ONES, [1.0] * 3), "v_t must be .* array, got list"),
        (lambda: lambda_returns(ONES, ONES, torch.ones(3)), "one library"),
        (lambda: gae(ONES, ONES, ONES), r"values must have shape \(4,\), one step more"),
        (lambda: gae(ONES, ONES, [0.0] * 4), "values must be .* array, got list"),
        (lambda: gae(np.ones((3, 2)), 1.0, np.ones((4, 3))), r"values must have shape \(4, 2\)"),
        (lambda: potential_differences([0.0, 1.0]), "potential must be .* array, got list"),
        (lambda: potential_differences(np.float64(1.0)), "potential must have shape"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message) as raised:
        call()
    assert "\n" not in str(raised.value)
