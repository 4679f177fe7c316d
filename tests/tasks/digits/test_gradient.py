"""Policy gradients of digits: those of training, judged by the run and by an oracle."""

import dataclasses
from itertools import islice

import numpy as np
import pytest
import torch

from irrl.errors import UserError
from irrl.gradient_measured import Arm, make_arms
from irrl.gradient_noise import (
    cosine,
    direction,
    noise_added,
    noise_kept,
    signal_kept,
    snr,
)
from irrl.losses import baseline_loss
from irrl.tasks import make_config, open_run
from irrl.tasks.digits import train
from irrl.tasks.digits.gradient import (
    Baseline,
    Models,
    batch_gradients,
    batches_of,
    fit_baseline,
    gradients_of,
    measure_gradient,
    outcomes,
    play,
    rewarded_parameters,
    upcoming_batches,
)
from irrl.tasks.digits.learner import initial_learner
from irrl.tasks.digits.losses import policy_loss, returns_of, reward_potential
from tests.tasks.digits.scene import CPU, MODELS, Scene

AS_IT_IS = Baseline(1.0, torch.zeros(5))  # the smoke preset has five actions


def ten_times(q):
    return 10.0 * q


def models_of(scene, seed=1):
    """Another discriminator as the oracle."""
    other = initial_learner(dataclasses.replace(scene.config, seed=seed), CPU).discriminator
    return Models(scene.learner.discriminator, scene.learner.policy, other)


def measured(scene, models, arms):
    def upcoming():
        return iter([(0.0, [part]) for part in scene.parts] * 3)

    return gradients_of(scene.config, models, arms, 0, upcoming, lambda done: None)


# --- the gradient is that of training ---


@pytest.mark.parametrize("normalise", ["none", "scale", "standardise"])
@pytest.mark.parametrize("settings", MODELS)
def test_it_is_the_gradient_that_training_takes(mnist_cache, settings, normalise):
    scene = Scene(parts=1, normalise_advantage=normalise, reward="clipped-log", **settings)
    config, (part,) = scene.config, scene.parts
    policy, trajectory = scene.learner.policy, scene.trajectory
    parameters = rewarded_parameters(policy)
    potential = reward_potential(config, scene.log_probs, scene.labels).detach()
    loss = policy_loss(config, policy, trajectory, potential, 0.0)
    expected = scene.actions().expected
    taken = trajectory.moved | (trajectory.stopped if config.stops else False)
    returns = returns_of(config, trajectory, potential, expected.detach())
    loss = loss - baseline_loss(expected, returns, taken)  # REINFORCE is what is left
    wanted = torch.autograd.grad(-loss / config.policy_coef, parameters, materialize_grads=True)
    wanted = torch.cat([g.flatten() for g in wanted])
    arm = Arm("clipped-log", "run", as_trained=True)
    (found,) = batch_gradients(config, models_of(scene), [arm], [AS_IT_IS], (0.0, [part]))
    assert wanted.abs().max() > 0
    torch.testing.assert_close(torch.from_numpy(found), wanted, rtol=1e-3, atol=1e-6)


def test_parts_of_a_batch_count_by_their_episodes(mnist_cache):
    scene = Scene(parts=1)
    uneven = train.cut_batch(scene.images, scene.labels, scene.numbers, 3)
    arm = Arm("linear", "run")
    whole, cut = (
        batch_gradients(scene.config, models_of(scene), [arm], [AS_IT_IS], (0.0, parts))
        for parts in (scene.parts, uneven)
    )
    np.testing.assert_allclose(whole, cut, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("fresh", [False, True])
def test_batches_are_those_that_come_next(mnist_cache, monkeypatch, fresh):
    config = make_config(
        "digits", "smoke", fresh_canvases=fresh, train_images=100, batch_size=32, parts=2
    )
    data = train.sample_data(config)
    trained, ends = [], train.EpisodeEnds(*(torch.zeros(0) for _ in range(4)))

    def note(config, learner, parts, now, *engine):
        trained.append((now, parts))
        return [ends]

    monkeypatch.setattr(train, "learn_batch", note)
    monkeypatch.setattr(train, "training_metrics", lambda *_: {})
    learner = initial_learner(config, CPU)
    for epoch in (2, 3):
        canvases = train.canvases_of(config, data, epoch)
        engine = train.Engine(map, train.current_world())
        train.learn_epoch(config, learner, canvases, epoch, CPU, engine)
    whole = [t for t in trained if sum(len(p.labels) for p in t[1]) == 32]
    found = list(islice(upcoming_batches(config, data, 2, CPU), 6))
    assert len(whole) == len(found) == 6  # the four episodes left over of an epoch are left out
    for (now, parts), (then, others) in zip(found, whole, strict=True):
        assert now == then
        for part, other in zip(parts, others, strict=True):
            assert torch.equal(part.images, other.images) and part.share == other.share
            assert torch.equal(part.labels, other.labels)
            assert torch.equal(part.numbers.noise, other.numbers.noise)


@pytest.mark.parametrize("settings", [{}, {"baseline_width": 4}, {"policy_memory": 0}])
def test_what_is_left_out_learns_nothing_from_rewards(mnist_cache, settings):
    scene = Scene(parts=1, **settings)
    policy, rewarded = (
        scene.learner.policy,
        {id(p) for p in rewarded_parameters(scene.learner.policy)},
    )
    others = [p for p in policy.parameters() if id(p) not in rewarded]
    judged = play(scene.config, models_of(scene), scene.parts[0], [Arm("log", "run")], 0.0)
    total = judged.actions.log_prob.sum()
    assert others and len(rewarded) > 2
    for gradient in torch.autograd.grad(total, others, materialize_grads=True):
        assert gradient.abs().max() == 0


def test_more_batches_than_groups_are_all_used(mnist_cache, monkeypatch):
    scene = Scene(parts=1)
    batches = [(0.0, [p]) for p in train.cut_batch(scene.images, scene.labels, scene.numbers, 7)]
    arms, found = make_arms(("linear",)), []
    for groups in (4, 50):
        monkeypatch.setattr("irrl.tasks.digits.gradient.GROUPS", groups)
        inputs = (scene.config, models_of(scene), arms, 0, lambda: iter(batches))
        found.append(gradients_of(*inputs, lambda done: None))
    assert [f.batches for f in found] == [7, 7]
    assert [len(f.sampled.without) for f in found] == [4, 7]
    for a, b in zip(*(f.sampled.moments for f in found), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)


# --- baselines ---


def test_a_baseline_is_least_squares_with_a_level_for_each_action():
    rng = np.random.default_rng(0)
    expected, returns = rng.normal(size=(2, 4, 50))
    returns += 2.0 * expected + np.arange(4)[:, None]
    taken = rng.random((4, 50)) < np.array([1.0, 0.8, 0.5, 0.0])[:, None]
    found = fit_baseline(*map(torch.from_numpy, (expected, returns, taken)))
    levels = np.repeat(np.eye(4), 50, axis=0)[taken.ravel()]
    design = np.column_stack([expected[taken], levels[:, :3]])  # nobody takes the last action
    wanted = np.linalg.lstsq(design, returns[taken], rcond=None)[0]
    assert found.slope == pytest.approx(wanted[0])
    np.testing.assert_allclose(found.level, [*wanted[1:], 0.0], rtol=1e-5)


def test_a_baseline_that_says_nothing_has_a_level_only():
    returns = torch.arange(6.0).reshape(2, 3)
    found = fit_baseline(torch.full((2, 3), 0.3), returns, torch.ones(2, 3, dtype=torch.bool))
    assert found.slope == 0.0
    torch.testing.assert_close(found.level, torch.tensor([1.0, 4.0]))


def test_a_baseline_absorbs_an_affine_change_of_the_reward():
    rng = torch.Generator().manual_seed(0)
    expected, returns = torch.randn(2, 4, 50, generator=rng)
    taken = torch.rand(4, 50, generator=rng) < 0.7
    advantages = []
    for r in (returns, 10.0 * returns + 7.0):
        advantages.append((r - fit_baseline(expected, r, taken)(expected))[taken])
    torch.testing.assert_close(advantages[1], 10.0 * advantages[0], rtol=1e-4, atol=1e-4)


def test_what_follows_an_action_is_what_came_whatever_lambda_is(mnist_cache):
    seen = []
    for lambda_ in (0.3, 1.0):
        scene = Scene(parts=1, lambda_=lambda_)
        judged = play(scene.config, models_of(scene), scene.parts[0], [Arm("log", "run")], 0.0)
        seen.append(outcomes(scene.config, judged).returns)
    torch.testing.assert_close(*seen)


# --- judges ---


@pytest.mark.parametrize("settings", MODELS[:3])
def test_a_discriminator_that_is_the_oracle_adds_nothing(mnist_cache, settings):
    scene = Scene(**settings)
    discriminator, policy, *_ = scene.learner
    names = ("log", "clipped-linear", "accuracy")
    found = measured(scene, Models(discriminator, policy, discriminator), make_arms(names))
    np.testing.assert_allclose(found.online, found.oracle, rtol=1e-5)
    moments = found.sampled.moments
    for name in names:
        own, oracle = found.row(name, "run"), found.row(name, "oracle")
        assert noise_kept(moments, own, oracle) == pytest.approx(1.0, abs=1e-3)
        assert noise_added(moments, own, oracle) == pytest.approx(0.0, abs=1e-3)
        assert moments.signal[own, own] == pytest.approx(moments.signal[oracle, oracle], rel=1e-3)


def test_ten_times_the_reward_changes_no_ratio(mnist_cache):
    ten = f"{__name__}:ten_times"
    scene = Scene(model="dt-ram")
    found = measured(scene, models_of(scene), make_arms(("linear", ten)))
    moments, target = found.sampled.moments, found.row("log", "oracle")
    one, other = (found.row(name, "run") for name in ("linear", ten))
    assert moments.noise[other, other] == pytest.approx(100 * moments.noise[one, one], rel=1e-3)
    assert signal_kept(moments, other, one) in (None, pytest.approx(10.0, rel=1e-2))
    for statistic in (cosine, direction, noise_added):
        before = statistic(moments, one, target)
        close = None if before is None else pytest.approx(before, rel=1e-2, abs=1e-4)
        assert statistic(moments, other, target) == close
    assert snr(moments, other) == pytest.approx(snr(moments, one), rel=1e-2)


def test_posteriors_are_those_at_the_end(mnist_cache):
    scene = Scene(parts=1, model="dt-ram")
    models = models_of(scene)
    judged = play(scene.config, models, scene.parts[0], [Arm("log", "run")], 0.0)
    assert len(judged.trajectory.lengths.unique()) > 1
    everyone = torch.arange(len(scene.labels))
    log_probs = models.discriminator.log_probs(judged.trajectory.cache.states)
    ends = log_probs[judged.trajectory.lengths - 1, everyone, scene.labels]
    torch.testing.assert_close(judged.online, ends)
    assert (judged.oracle - judged.online).abs().max() > 1e-3


def test_a_reward_in_units_of_its_largest_is_compared_as_it_is(mnist_cache):
    scene = Scene(parts=1, reward_unit="largest", reward="clipped-log")
    arms = [Arm("clipped-log", "run", True), Arm("clipped-log", "run"), Arm("f-reverse-kl", "run")]
    potentials = play(scene.config, models_of(scene), scene.parts[0], arms, 0.0).potentials
    torch.testing.assert_close(potentials[1], potentials[0] * np.log(10.0), rtol=1e-5, atol=1e-6)


# --- limits ---


def test_so_many_batches():
    config = make_config("digits", "smoke")  # batches of 64
    assert batches_of(config, None) == 50 and batches_of(config, 300) == 4
    with pytest.raises(UserError, match=r"at least 4 batches of 64.*256 or more, got 255"):
        batches_of(config, 255)


def test_one_thread_measures_however_many_there_are(digits_run):
    run, seen, before = open_run(digits_run), [], torch.get_num_threads()

    def progress(done, total):
        seen.append(torch.get_num_threads())

    torch.set_num_threads(2)
    try:
        measure_gradient(run, digits_run, ("linear",), None, 1, progress)
        assert set(seen) == {1} and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
