import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import irrl.envs  # noqa: F401  registers the environments


@pytest.mark.parametrize("options", [{}, {"map": "small", "horizon": 8}])
@pytest.mark.parametrize("render_mode", [None, "ansi", "rgb_array"])
def test_it_passes_gymnasiums_own_check(options, render_mode):
    env = gym.make("irrl/FourRooms-v0", render_mode=render_mode, **options)
    check_env(env.unwrapped, skip_render_check=render_mode is None)


def test_an_episode_walks_the_map_and_ends_at_the_horizon():
    env = gym.make("irrl/FourRooms-v0", map="S..\n#.#\n", horizon=3)
    assert env.reset(seed=0)[0] == 0
    right, down = 4, 2
    assert env.step(right)[:4] == (1, 0.0, False, False)
    assert env.step(down)[:4] == (3, 0.0, False, False)
    cell, reward, terminated, truncated, info = env.step(down)
    assert (cell, reward, terminated, truncated) == (3, 0.0, True, False)
    assert info == {"row": 1, "column": 1}


def test_it_is_deterministic():
    def walk():
        env = gym.make("irrl/FourRooms-v0")
        env.reset(seed=7)
        env.action_space.seed(7)
        return [env.step(env.action_space.sample())[0] for _ in range(20)]

    assert walk() == walk()


def test_rendering():
    text = gym.make("irrl/FourRooms-v0", render_mode="ansi")
    text.reset()
    text.step(4)
    assert text.render().splitlines()[1].startswith("# @")
    picture = gym.make("irrl/FourRooms-v0", render_mode="rgb_array", map="small")
    picture.reset()
    image = picture.render()
    assert image.shape == (8 * 16, 7 * 16, 3) and image.dtype == np.uint8
    assert tuple(image[24, 24]) == (0, 114, 178)


def test_impossible_settings():
    with pytest.raises(ValueError, match="horizon must be at least 1"):
        gym.make("irrl/FourRooms-v0", horizon=0)
    with pytest.raises(ValueError, match="unknown map"):
        gym.make("irrl/FourRooms-v0", map="nowhere")
    env = gym.make("irrl/FourRooms-v0").unwrapped
    env.reset()
    with pytest.raises(ValueError, match="action must be one of"):
        env.step(5)
