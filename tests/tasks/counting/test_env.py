import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import irrl.envs  # noqa: F401  registers the environments
from irrl.tasks.counting.env import ROTATE_LEFT, ROTATE_RIGHT, STOP
from irrl.tasks.counting.render import shrink
from irrl.tasks.counting.scene import count_prior, sample_scene


@pytest.fixture
def env():
    env = gym.make("irrl/ObjectCounting-v0", resolution=64)
    yield env
    env.close()


@pytest.mark.filterwarnings("ignore:.*render_mode.*")
@pytest.mark.parametrize("options", [{}, {"resolution": 32, "render_mode": "rgb_array"}])
def test_it_passes_gymnasiums_own_check(options):
    env = gym.make("irrl/ObjectCounting-v0", **options)
    check_env(env.unwrapped, skip_render_check="render_mode" not in options)
    env.close()


def test_an_episode_ends_after_six_moves(env):
    observation, info = env.reset(seed=0)
    assert set(observation) == {"image", "goal"} and info == {"view": 0, "moves": 0}
    assert observation["image"].shape == (64, 64, 3) and 0 <= observation["goal"] < 4
    for moves in range(1, 6):
        _, reward, terminated, truncated, info = env.step(ROTATE_LEFT)
        assert (reward, terminated, truncated) == (0.0, False, False)
        assert info == {"view": 12 - moves, "moves": moves}
    observation, reward, terminated, truncated, info = env.step(ROTATE_LEFT)
    assert (reward, terminated, truncated) == (0.0, True, False)
    assert info["view"] == 6 and info["label"] == info["count"] == env.unwrapped._scene.label
    assert set(observation) == {"image", "goal"}


def test_stopping_ends_an_episode_where_it_is(env):
    first, _ = env.reset(seed=1)
    observation, reward, terminated, truncated, info = env.step(STOP)
    np.testing.assert_array_equal(observation["image"], first["image"])
    assert (reward, terminated, truncated) == (0.0, True, False)
    assert info["moves"] == 0 and 0 <= info["label"] <= 6


def test_right_and_left_go_around_the_table(env, renderer):
    first, _ = env.reset(seed=2)
    scene = sample_scene(np.random.Generator(np.random.PCG64(2)), renderer.visible)
    renderer.place(scene)
    np.testing.assert_array_equal(first["image"], shrink(renderer.render(0), 64))
    right = env.step(ROTATE_RIGHT)[0]
    np.testing.assert_array_equal(right["image"], shrink(renderer.render(1), 64))
    assert not np.array_equal(right["image"], first["image"])
    assert right["goal"] == first["goal"] == scene.goal
    back = env.step(ROTATE_LEFT)[0]
    np.testing.assert_array_equal(back["image"], first["image"])
    left = env.step(ROTATE_LEFT)[0]
    np.testing.assert_array_equal(left["image"], shrink(renderer.render(11), 64))


def test_it_is_deterministic():
    def walk(seed):
        env = gym.make("irrl/ObjectCounting-v0", resolution=16)
        seen = []
        for episode in range(3):
            observation, _ = env.reset(seed=seed if episode == 0 else None)
            seen += [observation["image"], *(env.step(ROTATE_RIGHT)[0]["image"] for _ in range(2))]
            seen.append(env.step(STOP)[4]["label"])
        env.close()
        return seen

    one, same, other = walk(7), walk(7), walk(8)
    assert all(np.array_equal(a, b) for a, b in zip(one, same, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_labels_come_from_the_prior(env):
    labels = []
    for episode in range(200):
        env.reset(seed=0 if episode == 0 else None)
        labels.append(env.step(STOP)[4]["label"])
    shares = np.bincount(labels, minlength=7) / len(labels)
    assert np.abs(shares - count_prior()).max() < 0.1


def test_rendering_shows_the_full_view():
    env = gym.make("irrl/ObjectCounting-v0", resolution=16, render_mode="rgb_array")
    observation, _ = env.reset(seed=3)
    picture = env.render()
    assert picture.shape == (256, 256, 3) and picture.dtype == np.uint8
    np.testing.assert_array_equal(shrink(picture, 16), observation["image"])
    env.close()


def test_impossible_settings(env):
    with pytest.raises(ValueError, match="resolution must divide 256"):
        gym.make("irrl/ObjectCounting-v0", resolution=100)
    with pytest.raises(ValueError, match="render_mode must be rgb_array"):
        env.unwrapped.__class__(render_mode="human")
    with pytest.raises(gym.error.ResetNeeded):
        env.unwrapped.step(STOP)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="action must be one of"):
        env.unwrapped.step(3)
