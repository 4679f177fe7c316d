import math
import warnings

import numpy as np
import pytest

from irrl.reward_model.health import at_least
from tests.reward_model.episodes import episode, fed, same, small_model, telling, weights

KEYS = {
    "n_skills", "discriminator_accuracy_percent", "train_discriminator_accuracy_percent",
    "first_observation_accuracy_percent", "reward_mean", "reward_std", "share_clipped",
}  # fmt: skip


def test_without_episodes_there_is_nothing_to_say():
    assert small_model().health() == {}


@pytest.mark.parametrize("options", [{}, {"judge": "state"}, {"judge": "final"}, {"ensemble": 2},
                                     {"reward": "disdain"}, {"held_out": 0.0}])  # fmt: skip
def test_it_has_all_numbers_and_they_are_finite(options):
    model = fed(small_model(**options), 40)
    model.learn()
    health = model.health()
    assert health.keys() >= KEYS
    assert all(isinstance(value, float) and math.isfinite(value) for value in health.values())


def test_with_held_out_episodes_alone_it_has_what_it_can():
    model = small_model(held_out=0.999)
    model.add(episode(0), 1)
    assert len(model.held_out) == 1 and not len(model.store)
    health = model.health()
    assert health.keys() >= KEYS - {"train_discriminator_accuracy_percent"}
    assert "train_discriminator_accuracy_percent" not in health


def test_looking_changes_nothing():
    looked, other = (fed(small_model(), 30) for _ in range(2))
    for n in range(3):
        looked.learn()
        other.learn()
        looked.health()
        fed(looked, 10, n + 1)
        fed(other, 10, n + 1)
    assert same(weights(looked), weights(other))
    one, two = (m.to_checkpoint() for m in (looked, other))
    assert one[1] == two[1] and same(one[0].values(), two[0].values())


def test_n_skills_is_two_to_the_bits_that_are_told():
    model = fed(small_model(prior=[0.5, 0.25, 0.25], held_out=0.3), 60)
    model.learn()
    held = model.held_out.episodes(np.arange(len(model.held_out)))
    seen = held.observations["observation"]
    bits = [
        (model.log_probs(seen[: held.lengths[i], i])[-1, y] - model.log_prior()[y]) / math.log(2)
        for i, y in enumerate(held.labels)
    ]
    assert model.health()["n_skills"] == pytest.approx(2 ** np.mean(bits), rel=1e-4)


def test_all_labels_told_are_as_many_skills():
    model = small_model(learning_rate=0.02, samples_per_episode=100)
    for n in range(60):
        model.add(telling(n % 3, n), n % 3)
    model.learn()
    health = model.health()
    assert health["n_skills"] == pytest.approx(3.0, abs=0.1)
    assert health["discriminator_accuracy_percent"] == 100.0


def test_overfitting_shows():
    model = small_model(
        2, held_out=0.4, learning_rate=0.01, samples_per_episode=400, width=64, batch_size=64
    )
    rng = np.random.default_rng(0)
    for n in range(60):
        model.add(episode(n), int(rng.integers(2)))  # labels that say nothing
    model.learn()
    health = model.health()
    train, held = (health[f"{x}discriminator_accuracy_percent"] for x in ("train_", ""))
    assert train > 90.0 and held < 75.0


# --- a label that is given away ---


def learned(labels, leak, count=80, **options):
    model = small_model(3, learning_rate=0.02, samples_per_episode=60, held_out=0.5, **options)
    for n in range(count):
        label = labels(n)
        seen = episode([7, n])
        if leak:
            seen[:, 0] = label - 1.0
        model.add(seen, label)
    model.learn()
    return model


@pytest.mark.parametrize("judge", ["trajectory", "state", "final"])
def test_an_observation_that_gives_the_label_away_is_told_once(judge):
    model = learned(lambda n: n % 3, True, judge=judge)
    with pytest.warns(
        UserWarning, match=r"first observations already tell .*give it away\?"
    ) as told:
        assert model.health()["first_observation_accuracy_percent"] > 95.0
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.health()


@pytest.mark.parametrize("labels", [lambda n: n % 3, lambda n: 0 if n % 10 else 1])
def test_what_is_common_is_not_given_away(labels):
    """A discriminator that always says the commonest label is often right."""
    model = learned(labels, False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.health()


def test_one_lucky_guess_among_many_labels_is_no_leak():
    assert at_least(1, 4, 1 / 128) == pytest.approx(1 - (127 / 128) ** 4)
    assert at_least(0, 10, 0.3) == pytest.approx(1.0)
    assert at_least(10, 10, 0.5) == pytest.approx(2**-10)
    assert at_least(200, 256, 0.5) < 1e-15
