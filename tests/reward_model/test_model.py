import math

import numpy as np
import pytest
import torch

import irrl
from irrl.errors import UserError
from irrl.reward_model import Collector, RewardModel
from irrl.rewards import disagreement
from tests.reward_model.episodes import (
    SPACE,
    episode,
    fed,
    same,
    small_model,
    telling,
    weights,
)


def accuracy(model, count=30, seed=1):
    right = [
        model.log_probs(telling(n % model.labels, [seed, n], model.labels))[-1].argmax()
        == n % model.labels
        for n in range(count)
    ]
    return np.mean(right)


@pytest.mark.parametrize("judge", ["trajectory", "state", "final"])
@pytest.mark.parametrize("core", ["set", "gru"])
def test_what_can_be_told_is_learned(judge, core):
    model = small_model(judge=judge, core=core, learning_rate=0.02, samples_per_episode=60)
    for n in range(60):
        model.add(telling(n % 3, [0, n]), n % 3)
    assert accuracy(model) < 0.7
    model.learn()
    assert accuracy(model) == 1.0
    paid = model.rewards(telling(2, 9), 2)
    assert paid[:-1].tolist() == [0.0] * 3 and paid[-1] > 0.5


# --- priors ---


@pytest.mark.parametrize(
    ("prior", "wanted"),
    [
        ("uniform", [1 / 3] * 3),
        ([0.5, 0.3, 0.2], [0.5, 0.3, 0.2]),
        ("counted", [3 / 6, 2 / 6, 1 / 6]),
    ],
)
def test_priors_uniform_given_and_counted(prior, wanted):
    model = small_model(prior=prior, reward="linear", held_out=0.5)
    for label in (0, 0, 1):
        model.add(episode(label), label)
    np.testing.assert_allclose(np.exp(model.log_prior()), wanted, rtol=1e-5)
    seen = episode(5)
    q = np.exp(model.log_probs(seen)[-1])
    for label in range(3):
        assert model.rewards(seen, label)[-1] == pytest.approx(q[label] - wanted[label], abs=1e-5)


# --- ensembles ---


def test_an_ensemble_is_read_as_its_mixture():
    model, seen = small_model(ensemble=3, reward="linear"), episode(0)
    tensors = {"observation": torch.from_numpy(seen[:, None])}
    with torch.no_grad():
        members = model.discriminator(tensors)[:, -1, 0]
    q = members.exp().mean(dim=0).numpy()
    np.testing.assert_allclose(np.exp(model.log_probs(seen)[-1]), q, rtol=1e-5)
    assert model.rewards(seen, 1)[-1] == pytest.approx(q[1] - 1 / 3, abs=1e-6)
    assert members.std(dim=0).max() > 1e-3


@pytest.mark.parametrize("kind", ["log", "quadratic"])
def test_a_bonus_is_paid_for_disagreement(kind):
    plain = small_model(ensemble=2, reward="linear")
    with_bonus = small_model(ensemble=2, reward="linear", bonus=3.0, bonus_kind=kind)
    assert small_model(bonus=0.5).settings.ensemble == 2
    seen = episode(0)
    with torch.no_grad():
        members = plain.discriminator({"observation": torch.from_numpy(seen[:, None])})[:, -1, 0]
    apart = with_bonus.rewards(seen, 0)[-1] - plain.rewards(seen, 0)[-1]
    gap = float(disagreement(members, kind))
    assert apart == pytest.approx(3.0 * gap, rel=1e-3) and apart > 1e-5


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"bonus": 1.0, "bonus_kind": "linear"}, "unknown bonus_kind 'linear'"),
        ({"bonus_kind": "quadratic"}, "needs a bonus for 'disagreement'"),
        ({"bonus": 1.0, "bonus_kind": "quadratic", "bonus_for": "visits"}, "needs a bonus for"),
    ],
)
def test_a_kind_of_bonus_that_cannot_be_is_told(settings, words):
    with pytest.raises(UserError, match=words):
        small_model(**settings)


def test_disdain_pays_as_the_library_does():
    model, seen = small_model(reward="disdain"), episode(0)
    with torch.no_grad():
        members = model.discriminator({"observation": torch.from_numpy(seen[:, None])})[:, -1, 0]
    wanted = irrl.reward("disdain")(members[:, None], torch.tensor([2]), ensemble=True)
    assert model.rewards(seen, 2)[-1] == pytest.approx(float(wanted[0]), abs=1e-5)


# --- an oracle ---


def test_an_oracle_pays_while_the_own_discriminator_learns():
    oracle = fed(small_model(seed=1, width=16))
    oracle.learn()
    model, seen = fed(small_model(oracle=oracle, reward="log")), episode(77)
    wanted = oracle.log_probs(seen)
    before, own = model.rewards(seen, 1), weights(model)
    oracle_before = weights(oracle)
    collector = Collector(model, 1)
    collector.begin(seen[:1], [1])
    model.learn()
    paid = [collector.step(x[None], np.array([t == 3]))[0] for t, x in enumerate(seen[1:])]
    assert not same(own, weights(model)) and same(oracle_before, weights(oracle))
    np.testing.assert_array_equal(model.rewards(seen, 1), before)
    assert paid[-1] == pytest.approx(before[-1], abs=1e-5)
    np.testing.assert_array_equal(model.log_probs(seen), wanted)
    fed(oracle, seed=4).learn()  # the model has a copy
    np.testing.assert_array_equal(model.log_probs(seen), wanted)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: small_model(4), "the oracle has 4 labels, expected 3"),
        (lambda: small_model(judge="state"), "the oracle judges 'state', this model 'trajectory'"),
        (
            lambda: small_model(space=irrl.envs.gymnasium.spaces.Discrete(4)),
            r"the oracle is of another observation space: observation \(\), expected",
        ),
        (lambda: 3, "oracle must be a RewardModel, got int"),
    ],
)
def test_an_oracle_that_does_not_fit_is_refused(made, said):
    with pytest.raises(ValueError, match=said):
        small_model(oracle=made())


# --- warm-up, what is held out, how much is learned ---


@pytest.mark.parametrize("pay", ["end", "differences"])
def test_nothing_is_paid_before_it_is_warm(pay):
    model, seen = small_model(warm_up=2, reward="log", pay=pay), episode(0)
    for label in range(2):
        assert not model.rewards(seen, 1).any()
        model.add(seen, label)
    assert model.rewards(seen, 1).sum() == pytest.approx(
        float(model.log_probs(seen)[-1, 1]) + math.log(3), abs=1e-4
    )


def test_held_out_episodes_are_never_learned_from():
    model = fed(small_model(held_out=0.4), 100)
    kept, out = (
        {tuple(a[0].ravel().tolist()) for a in _observations(store)}
        for store in (model.store, model.held_out)
    )
    assert len(kept) + len(out) == 100 and not kept & out
    assert 20 < len(out) < 60
    drawn = model._sample(np.random.default_rng(0)).observations["observation"]
    assert {tuple(x.tolist()) for x in drawn[0]} <= {key[:2] for key in kept}
    assert not len(fed(small_model(held_out=0.0), 30).held_out)


def _observations(store):
    batch = store.episodes(np.arange(len(store)))
    return [(batch.observations["observation"][: batch.lengths[i], i],) for i in range(len(store))]


def test_the_store_keeps_the_newest():
    model = fed(small_model(held_out=0.0, store=5), 12)
    assert len(model.store) == 5 and model.episodes == 12
    (first,) = _observations(model.store)[0]
    np.testing.assert_array_equal(first, episode([0, 7]))


@pytest.mark.parametrize(
    ("options", "batches"),
    [
        ({"samples_per_episode": 8}, 10),  # 20 episodes times 8, in batches of 16
        ({"judge": "state", "samples_per_episode": 2}, 13),  # 100 states times 2
        ({"judge": "final", "samples_per_episode": 1}, 2),
    ],
)
def test_new_episodes_call_for_as_many_batches(options, batches):
    model = fed(small_model(**options), 20)
    assert model.learn()["discriminator_batches"] == batches
    assert model.learn() == {} and model.updates == 1  # nothing new


def test_the_loss_of_a_fresh_discriminator_is_that_of_chance():
    model = fed(small_model(learning_rate=1e-9))
    assert model.learn()["discriminator_loss"] == pytest.approx(math.log(3), abs=0.2)


def test_a_discriminator_that_diverges_says_so():
    model = fed(small_model(learning_rate=1e30))
    with pytest.raises(ValueError, match="the discriminator diverged: lower its learning_rate"):
        for _ in range(5):
            fed(model).learn()
            model.rewards(episode(0), 0)


# --- what is refused ---


@pytest.mark.parametrize(
    ("label", "said"),
    [
        (3, "label 3 is out of range: 0..2"),
        (-1, "label -1 is out of range: 0..2"),
        (1.0, "label must be a whole number, got .*1.0"),
        (True, "label must be a whole number, got .*True"),
        (None, "label must be a whole number, got None"),
        ([1], "label must be a whole number"),
    ],
)
def test_labels_that_cannot_be(label, said):
    model = small_model()
    for call in (model.add, model.rewards):
        with pytest.raises(ValueError, match=said):
            call(episode(0), label)
    assert model.episodes == 0 and model.learn() == {}


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.uint64, np.int64, int])
def test_labels_may_be_whole_numbers_of_any_kind(kind):
    model = RewardModel(SPACE, np.int64(3), width=8)
    model.add(episode(0), kind(2))
    assert model.label_counts.tolist() == [0, 0, 1]
    assert model.rewards(episode(0), kind(2)).shape == (4,)


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (np.where(np.arange(5)[:, None] == 3, np.nan, episode(0)), "NaN or infinity, step 3"),
        (episode(0, size=3), r"has shape \(5, 3\), expected \(5, 2\)"),
        (episode(0)[:0], "must have observations along its first axis, got none"),
        (3.0, "must have observations along its first axis"),
        (episode(0)[:1], "its first and its last observation, got one"),
    ],
)
def test_episodes_that_cannot_be(seen, said):
    model = small_model()
    with pytest.raises(ValueError, match=said):
        model.add(seen, 0)
    assert model.episodes == 0
