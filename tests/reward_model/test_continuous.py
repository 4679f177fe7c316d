import numpy as np
import pytest
import torch
from gymnasium.spaces import Box

from irrl import Continuous, density_reward, reward
from irrl.bins import bin_labels, bin_log_prior, hl_gauss
from irrl.densities import Normal, Uniform
from irrl.density_rewards import DENSITY_REWARDS
from irrl.errors import UserError
from irrl.reward_model import Collector, RewardModel
from irrl.rewards import REWARDS
from tests.reward_model.episodes import SMALL, SPACE, Plain, episode

PLACE = Continuous((2,), Uniform(-1.0, 1.0))
MOVING = Continuous((2,), Uniform(-1.0, 1.0), moves=True)
BINS = Continuous((2,), Uniform(-1.0, 1.0), "bins", bins=8)
KINDS = {
    "normal": PLACE,
    "moving": MOVING,
    "bins": BINS,
    "moving bins": Continuous((2,), Normal([0.0, 0.5], 1.0), "bins", bins=8, moves=True),
    "a number": Continuous((), Normal(0.0, 1.0)),
}


def model_of(labels=PLACE, **options):
    return RewardModel(SPACE, labels, **{**SMALL, **options})


def label_of(labels, seed, steps=4):
    rng = np.random.default_rng([seed, 1])
    shape = (steps, *labels.shape) if labels.moves else labels.shape
    return rng.uniform(-0.9, 0.9, shape).astype(np.float32)


def fed(model, count=20, seed=0):
    for n in range(count):
        model.add(episode([seed, n]), label_of(model.labels, 100 * seed + n))
    return model


def telling(model, count, seed=0, noise=0.1):
    """Episodes whose observations are the label and noise; where labels move, each its own."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        labels = rng.uniform(-0.9, 0.9, (5, 2)) if model.kind.moves else rng.uniform(-0.9, 0.9, 2)
        seen = (np.zeros((5, 2)) + labels + rng.normal(0.0, noise, (5, 2))).clip(-1, 1)
        model.add(seen.astype(np.float32), labels[:4] if model.kind.moves else labels)
    return model


# --- what labels are ---


@pytest.mark.parametrize("name", KINDS)
def test_labels_lead_to_json_and_back(name):
    assert Continuous.from_json(KINDS[name].to_json()) == KINDS[name]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (((0,), Uniform(-1, 1)), "shape must have positive whole numbers"),
        (((2,), "uniform"), "prior must be a Normal or a Uniform"),
        (((2,), Normal(0.0, 0.0)), "prior.std must be positive"),
        (((2,), Normal(0.0, np.inf)), "prior.std must be finite"),
        (((2,), Normal(np.nan, 1.0)), "prior.mean must be finite"),
        (((2,), Uniform(1.0, 1.0)), "prior.high must be above prior.low"),
        (((2,), Uniform([0.0] * 3, 1.0)), "prior.low does not fit labels of shape (2,)"),
        (((2,), Uniform(-1, 1), "bin"), "Did you mean 'bins'"),
        (((2,), Uniform(-1, 1), "bins", 1), "bins must be a whole number"),
        (((2,), Uniform(-1, 1), "bins", 8, 0.0), "smoothing must lie within"),
        (((2,), Uniform(-1, 1), "bins", 8, 1.0, 1), "moves must be True or False"),
    ],
)
def test_labels_that_cannot_be_are_refused(given, said):
    with pytest.raises(ValueError, match=said.replace("(", r"\(").replace(")", r"\)")):
        Continuous(*given)


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ([0.0, 1.2], "has no mass under the prior"),
        ([0.0], r"label must have 2 numbers \(shape \(2,\)\)"),
        ([0.0, np.nan], "label must be finite"),
        ([0.0, np.inf], "label must be finite"),
        ("far", "label must have 2 numbers"),
    ],
)
def test_a_label_that_cannot_be_is_refused(label, said):
    model = model_of()
    with pytest.raises(UserError, match=said):
        model.add(episode(0), label)
    with pytest.raises(UserError, match=said):
        model.rewards(episode(0), label)
    collector = Collector(model, 2)
    collector.begin(np.zeros((2, 2), np.float32))
    with pytest.raises(UserError, match=said):
        collector.step(np.zeros((2, 2), np.float32), [False, True], [[0.0, 0.0], label])
    assert model.episodes == 0


def test_a_label_outside_of_its_bins_is_refused():
    model = model_of(Continuous((), Normal(0.0, 1.0), "bins"))
    with pytest.raises(UserError, match="outside of its bins"):
        model.add(episode(0), 6.0)


@pytest.mark.parametrize(
    ("labels", "settings", "said"),
    [
        (PLACE, {"reward": "clipped-linear"}, "is of classes: with continuous labels"),
        (PLACE, {"prior": "counted"}, "prior is for classes"),
        (MOVING, {"judge": "final"}, "judge 'final' does not go with labels that move"),
        (PLACE, {"reward": "crps", "epsilon": 0.5}, "epsilon goes with ball"),
        (PLACE, {"epsilon": 0.0}, "epsilon must be a positive number"),
        (BINS, {"reward": "log", "epsilon": 0.1}, "epsilon goes with ball"),
        (3, {"reward": "ball"}, "is for continuous labels"),
        (3, {"beta_nll": 0.5}, "beta_nll is for continuous labels"),
        (PLACE, {"beta_nll": 1.5}, "beta_nll must be between 0 and 1"),
        (BINS, {"beta_nll": 0.5}, "beta_nll goes with density 'normal'"),
        ("three", {}, "or an irrl.Continuous"),
        (PLACE, {"discriminator": Plain}, r"to logits \(T, B, 4\)"),
    ],
)
def test_settings_that_do_not_fit_are_refused(labels, settings, said):
    with pytest.raises(UserError, match=said):
        model_of(labels, **settings)


def test_other_labels_are_another_model(tmp_path):
    model_of().save(tmp_path / "model")
    arrays, state = model_of().to_checkpoint()
    with pytest.raises(UserError, match="the saved reward model has Continuous"):
        model_of(BINS).restore(arrays, state)
    with pytest.raises(UserError, match="the oracle has 3 labels"):
        model_of(oracle=RewardModel(SPACE, 3))


# --- what is learned ---


def test_the_loss_is_the_negative_log_likelihood():
    model = model_of()
    beliefs, labels = torch.randn(1, 3, 5, 4).abs() + 0.1, torch.rand(5, 2)
    twin = torch.distributions.Normal(beliefs[..., :2], beliefs[..., 2:])
    wanted = -(twin.log_prob(labels) + torch.tensor(1.0 / 3.0).sqrt().log()).sum(dim=-1)
    torch.testing.assert_close(model.kind.losses(beliefs, labels), wanted)


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
def test_beta_weighs_the_likelihood_by_the_predicted_variance(beta):
    model, plain = model_of(beta_nll=beta), model_of()
    beliefs = (torch.randn(1, 3, 5, 4).abs() + 0.1).requires_grad_()
    labels, prior_std = torch.rand(5, 2), (1.0 / 3.0) ** 0.5
    weighted = model.kind.losses(beliefs, labels).sum()
    (slope,) = torch.autograd.grad(weighted, beliefs)
    (of_likelihood,) = torch.autograd.grad(plain.kind.losses(beliefs, labels).sum(), beliefs)
    weights = (beliefs[..., 2:].detach() / prior_std) ** (2.0 * beta)  # without a gradient
    torch.testing.assert_close(slope, of_likelihood * weights.repeat(1, 1, 1, 2))
    if beta == 1.0:  # of the means that of half the squared error, in prior variances
        error = (beliefs[..., :2].detach() - labels) / prior_std**2
        torch.testing.assert_close(slope[..., :2], error)


def test_the_loss_of_bins_is_the_cross_entropy():
    model = model_of(BINS)
    beliefs = model.kind.normalised(torch.randn(1, 3, 5, 16))
    labels = torch.rand(5, 2) * 2 - 1
    targets = hl_gauss(labels, torch.linspace(-1, 1, 9))
    wanted = -(targets * beliefs.unflatten(-1, (2, 8))).sum(dim=(-1, -2))
    torch.testing.assert_close(model.kind.losses(beliefs, labels), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("normal", {}),
        ("bins", {}),
        ("moving", {"core": "gru"}),
        ("moving", {"judge": "state", "samples_per_episode": 2}),
    ],
)
def test_it_learns_what_observations_tell(name, options):
    model = model_of(KINDS[name], width=32, learning_rate=1e-2, **options)
    for seed in range(8):
        telling(model, 64, seed).learn()
    health = model.health()
    assert health["discriminator_squared_error"] < 0.2  # a blind guess has 1
    assert health["discriminator_crps"] < 0.3
    assert health["pit_calibration_error"] < 0.2
    assert {"train_discriminator_squared_error", "first_observation_squared_error"} <= set(health)


# --- what is paid ---


@pytest.mark.parametrize("name", DENSITY_REWARDS)
@pytest.mark.parametrize("labels", [PLACE, BINS], ids=["normal", "bins"])
def test_every_reward_of_densities_is_paid(name, labels):
    model = model_of(labels, reward=name, pay="steps")
    seen, label = episode(0), np.array([0.2, -0.4], np.float32)
    wanted = density_reward(name)(
        model.density(seen), torch.from_numpy(np.tile(label, (5, 1))), Uniform(-1.0, 1.0)
    )
    np.testing.assert_allclose(model.rewards(seen, label), wanted[1:], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", [n for n in REWARDS if n not in DENSITY_REWARDS])
def test_bins_take_every_reward_of_classes(name):
    model = model_of(BINS, reward=name, pay="steps")
    seen, label = episode(0), np.array([0.2, -0.4], np.float32)
    edges = np.linspace(-1, 1, 9, dtype=np.float32)
    members = model.judge.judge_steps(model._episode(seen)[0]).detach().unflatten(-1, (2, 8))
    prior, index = bin_log_prior(Uniform(-1.0, 1.0), edges), bin_labels(label, edges)
    each = [
        reward(name)(
            members[:, :, d].contiguous().numpy(), np.full(5, index[d]), prior, ensemble=True
        )
        for d in range(2)
    ]
    found = model.rewards(seen, label)
    np.testing.assert_allclose(found, np.mean(each, axis=0)[1:], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("pay", ["end", "differences", "steps"])
@pytest.mark.parametrize("judge", ["trajectory", "state", "final"])
@pytest.mark.parametrize("name", ["normal", "moving", "bins"])
@pytest.mark.parametrize("track", [False, True])
def test_a_collector_pays_what_the_model_pays(pay, judge, name, track):
    if (judge == "final" and pay == "steps") or (judge == "final" and name == "moving"):
        return
    labels = KINDS[name]
    model = fed(model_of(labels, pay=pay, judge=judge, core="gru", held_out=0.0))
    model.learn()
    episodes = [(episode([7, n]), label_of(labels, 50 + n)) for n in range(2)]
    wanted = [model.rewards(seen, label) for seen, label in episodes]
    collector, found = Collector(model, 2, track), []
    collector.begin(np.stack([seen[0] for seen, _ in episodes]))
    before, kept = model.episodes, model.store.steps
    for t in range(4):
        told = [label[t] if labels.moves else label for _, label in episodes]
        after = np.stack([seen[t + 1] for seen, _ in episodes])
        found.append(collector.step(after, [t == 3] * 2, told))
    np.testing.assert_allclose(np.stack(found, axis=1), wanted, rtol=1e-4, atol=1e-5)
    steps = 2 if judge == "final" else 4 if labels.moves else 5
    assert (model.episodes, model.store.steps) == (before + 2, kept + 2 * steps)


def test_learning_between_two_steps_changes_what_moving_labels_are_paid():
    model = fed(model_of(MOVING, pay="steps", core="gru", held_out=0.0))
    seen, label = episode(3), label_of(MOVING, 3)
    collector, found = Collector(model, 1), []
    collector.begin(seen[:1])
    for t in range(4):
        model.learn()
        wanted = model.rewards(seen, label)[t]
        found.append((collector.step(seen[t + 1 : t + 2], [t == 3], [label[t]])[0], wanted))
        fed(model, 4, seed=20 + t)
    np.testing.assert_allclose(*zip(*found, strict=True), rtol=1e-4, atol=1e-5)


def test_a_still_label_must_not_move_and_a_moving_one_must_be_told():
    blank = np.zeros((1, 2), np.float32)
    still, moving = Collector(model_of(), 1), Collector(model_of(MOVING), 1)
    still.begin(blank)
    still.step(blank, [False], [[0.0, 0.0]])
    with pytest.raises(UserError, match=r"changed within an episode.*moves=True"):
        still.step(blank, [False], [[0.0, 0.1]])
    moving.begin(blank)
    with pytest.raises(UserError, match="environment 0 told no label with a step"):
        moving.step(blank, [False])
    with pytest.raises(UserError, match="one for each of 4 actions, got 3"):
        model_of(MOVING).add(episode(0), np.zeros((3, 2)))


# --- ensembles ---


@pytest.mark.parametrize("name", ["normal", "bins"])
def test_a_bonus_is_paid_for_disagreement(name):
    plain, with_bonus = (
        model_of(KINDS[name], ensemble=2, bonus=b, pay="steps") for b in (0.0, 3.0)
    )
    seen, label = episode(0), [0.1, 0.2]
    members = plain.judge.judge_steps(plain._episode(seen)[0]).detach()
    gap = plain.kind.disagreement(members).numpy()[1:]
    assert (gap > 0).all()
    np.testing.assert_allclose(
        with_bonus.rewards(seen, label) - plain.rewards(seen, label), 3.0 * gap, rtol=1e-3,
        atol=1e-5,
    )  # fmt: skip
    quadratic = {"ensemble": 2, "bonus": 3.0, "bonus_kind": "quadratic"}
    if name == "normal":
        with pytest.raises(UserError, match="quadratic' is for classes and bins"):
            model_of(KINDS[name], **quadratic)
    else:
        assert (model_of(KINDS[name], **quadratic).kind.disagreement(members) < gap.max()).all()
    alike = members[:1].expand(2, *members.shape[1:])
    assert float(plain.kind.disagreement(alike).abs().max()) < 1e-5


def test_an_ensemble_of_normals_is_read_as_the_normal_with_its_moments():
    model = model_of(ensemble=2)
    members = torch.tensor([[[0.0, 0.0, 1.0, 1.0]], [[2.0, 0.0, 1.0, 1.0]]])
    found = model.kind.mixed(members)
    torch.testing.assert_close(found, torch.tensor([[1.0, 0.0, 2.0**0.5, 1.0]]))


# --- saved and loaded ---


@pytest.mark.parametrize("name", KINDS)
def test_saved_and_loaded_it_pays_and_learns_the_same(name, tmp_path):
    model = fed(model_of(KINDS[name], ensemble=2, bonus=0.1, store=12, core="gru"))
    model.learn()
    fed(model, 5, seed=3)
    model.save(tmp_path / "model")
    loaded = RewardModel.load(tmp_path / "model")
    assert loaded.labels == model.labels and loaded.settings == model.settings
    assert loaded.episodes == model.episodes
    label = label_of(KINDS[name], 5)
    for _ in range(2):
        np.testing.assert_array_equal(
            loaded.rewards(episode(5), label), model.rewards(episode(5), label)
        )
        assert loaded.health() == model.health()
        assert fed(loaded, 9, seed=8).learn() == fed(model, 9, seed=8).learn()


def test_a_stored_label_that_cannot_be_is_refused():
    model = fed(model_of())
    arrays, state = model.to_checkpoint()
    with pytest.raises(UserError, match="stored episodes are damaged: label"):
        model.restore({**arrays, "store.labels": arrays["store.labels"] + 3.0}, state)
    with pytest.raises(UserError, match="stored episodes are damaged"):
        model.restore({**arrays, "store.labels": np.zeros(len(model.store), np.int64)}, state)
    with pytest.raises(UserError, match="damaged: its labels"):
        model.restore(arrays, {**state, "labels": {"shape": [2]}})


def test_a_discriminator_of_ones_own_gives_means_and_log_deviations():
    model = model_of(discriminator=lambda: Plain(labels=4), normalise=False)
    raw = model.discriminator.members[0](torch.from_numpy(episode(0))[:, None])[:, 0].detach()
    density = model.density(episode(0))
    torch.testing.assert_close(density.mean, raw[:, :2] * (1 / 3) ** 0.5)
    torch.testing.assert_close(density.std, raw[:, 2:].exp() * (1 / 3) ** 0.5)
    assert model.predict(episode(0)).shape == (5, 2)
    with pytest.raises(UserError, match="see density and predict"):
        model.log_probs(episode(0))
    with pytest.raises(UserError, match="see log_probs"):
        RewardModel(Box(-1.0, 1.0, (2,)), 3).density(episode(0))
