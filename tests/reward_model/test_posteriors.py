import numpy as np
import pytest
import torch

from irrl.reward_model import Collector
from tests.reward_model.episodes import Plain, Stepwise, episode, fed, small_model

WAYS = {
    "set": {"core": "set"},
    "gru": {"core": "gru"},
    "ensemble": {"core": "gru", "ensemble": 2},
    "own": {"discriminator": Plain},
    "own by step": {"discriminator": Stepwise},
    "state": {"judge": "state"},
    "final": {"judge": "final"},
}


def read_by_steps(model, episodes, learn_at=None):
    """Posteriors after each observation of episodes side by side."""
    collector = Collector(model, episodes.shape[1], track=True)
    collector.begin(episodes[0])
    found = [collector.log_probs]
    for t, seen in enumerate(episodes[1:]):
        if t == learn_at:
            model.learn()
        collector.step(seen, np.zeros(episodes.shape[1], bool))
        found.append(collector.log_probs)
    return np.stack(found)


def side_by_side(n=3, steps=6):
    return np.stack([episode(i, steps) for i in range(n)], axis=1)


@pytest.mark.parametrize("way", WAYS)
def test_reading_step_by_step_is_reading_the_whole(way):
    model, episodes = small_model(**WAYS[way]), side_by_side()
    found = read_by_steps(model, episodes)
    for i in range(3):
        np.testing.assert_allclose(found[:, i], model.log_probs(episodes[:, i]), atol=1e-5)
    assert np.abs(np.diff(found, axis=0)).max() > 1e-3


@pytest.mark.parametrize("way", WAYS)
def test_after_learning_all_is_read_again(way):
    model, episodes = fed(small_model(learning_rate=0.05, **WAYS[way])), side_by_side()
    before = model.log_probs(episodes[:, 0])
    found = read_by_steps(model, episodes, learn_at=3)
    after = model.log_probs(episodes[:, 0])
    np.testing.assert_allclose(found[:4, 0], before[:4], atol=1e-5)
    np.testing.assert_allclose(found[4:, 0], after[4:], atol=1e-5)
    assert np.abs(before - after).max() > 1e-2


@pytest.mark.parametrize("way", [way for way in WAYS if way != "final"])
def test_after_learning_it_pays_by_all_that_was_read_again(way):
    options = {"learning_rate": 0.05, "reward": "log", "pay": "steps"} | WAYS[way]
    model, episodes = fed(small_model(**options)), side_by_side()
    collector = Collector(model, 3)
    collector.begin(episodes[0], [0, 1, 2])
    collector.step(episodes[1], np.zeros(3, bool))
    before = model.rewards(episodes[:3, 1], 1)[-1]
    model.learn()
    paid = collector.step(episodes[2], np.zeros(3, bool))
    now = [model.rewards(episodes[:3, i], i)[-1] for i in range(3)]
    np.testing.assert_allclose(paid, now, atol=1e-4)
    assert abs(now[1] - before) > 1e-2


@pytest.mark.parametrize("way", WAYS)
def test_posteriors_are_of_the_discriminator_of_now_before_the_next_step(way):
    model, other = small_model(**WAYS[way]), fed(small_model(learning_rate=0.05, **WAYS[way]))
    other.learn()
    saved = other.state_dict()
    collector, episodes = Collector(model, 3, track=True), side_by_side(steps=2)
    collector.begin(episodes[0])
    collector.step(episodes[1], np.array([False, False, True]), [0, 0, 0])
    ended = collector.log_probs[2]
    model.load_state_dict(saved)
    wanted = other.log_probs(episodes[:2, 0])[-1]
    np.testing.assert_allclose(collector.log_probs[0], wanted, atol=1e-5)
    np.testing.assert_array_equal(collector.log_probs[2], ended)


def test_an_own_module_is_read_by_steps_only_if_it_offers_both():
    assert small_model(discriminator=Stepwise).discriminator.reads_steps
    assert not small_model(discriminator=Plain).discriminator.reads_steps


def test_the_running_sum_is_the_same_for_short_and_long_episodes():
    member = small_model(core="set").discriminator.members[0]
    seen = {"observation": torch.from_numpy(episode(0, 99)[:, None])}
    with torch.no_grad():
        long = member(seen)[:20]
        short = member({"observation": seen["observation"][:20]})
    np.testing.assert_allclose(long, short, atol=1e-4)
