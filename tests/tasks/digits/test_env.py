"""Cluttered MNIST as a Gymnasium environment, on digits of one's own and on MNIST."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env

import irrl.envs  # noqa: F401  registers the environments
from irrl.errors import UserError
from irrl.tasks.digits.config import RamConfig
from irrl.tasks.digits.data import Layout, sample_canvases
from irrl.tasks.digits.env import ClutteredDigits
from irrl.tasks.digits.mnist import Digits, read_mnist
from irrl.tasks.digits.retina import Retina

ID = "irrl/ClutteredDigits-v0"


@pytest.fixture(scope="module")
def own():
    """Twenty made-up digits."""
    rng = np.random.default_rng(0)
    return rng.integers(256, size=(20, 28, 28), dtype=np.uint8), np.arange(20) % 10


@pytest.mark.filterwarnings("ignore:.*render_mode.*")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"glimpses": 2, "glimpse_size": 5, "scales": 3, "render_mode": "rgb_array"},
        {"layout": {"canvas_size": 40, "clutter": 0, "placement": "uniform"}},
    ],
)
def test_it_passes_gymnasiums_own_check(own, options):
    env = gym.make(ID, digits=own, **options)
    check_env(env.unwrapped, skip_render_check="render_mode" not in options)


def test_an_episode_has_as_many_glimpses_as_it_says(own):
    env = gym.make(ID, digits=own, glimpses=4)
    observation, info = env.reset(seed=0)
    assert observation["glimpse"].shape == (1, 4, 4) and info == {"glimpses": 1}
    for taken in (2, 3):
        observation, *rest = env.step(np.array([0.5, -0.25], np.float32))
        assert rest == [0.0, False, False, {"glimpses": taken}]
        assert observation["location"].tolist() == [0.5, -0.25]
    observation, reward, terminated, truncated, info = env.step(np.zeros(2, np.float32))
    assert (reward, terminated, truncated) == (0.0, True, False)
    assert info == {"glimpses": 4, "label": env.unwrapped._label}
    assert set(observation) == {"glimpse", "location"}


@pytest.mark.parametrize("scales", [1, 2])
def test_glimpses_are_those_that_a_model_sees(own, scales):
    env = ClutteredDigits(digits=own, scales=scales, layout=Layout(canvas_size=50))
    observation, _ = env.reset(seed=3)
    rng = np.random.Generator(np.random.PCG64(3))
    canvas = sample_canvases(Digits(*own), 1, Layout(canvas_size=50), rng)
    images = torch.from_numpy(canvas.images)
    retina = Retina(RamConfig(canvas_size=50, scales=scales))
    for place in ([0.3, -0.7], [-1.0, 1.0], [0.0, 0.1]):
        observation, *_ = env.step(np.array(place, np.float32))
        out = torch.empty(1, scales * 16)
        expected = retina.look(images, torch.tensor([place]), out).view(scales, 4, 4)
        np.testing.assert_array_equal(observation["glimpse"], expected)


def test_the_first_location_is_uniform_and_the_label_follows_the_seed(own):
    env = ClutteredDigits(digits=own)
    firsts = np.array([env.reset(seed=n)[0]["location"] for n in range(400)])
    assert np.abs(firsts).max() <= 1
    np.testing.assert_allclose(firsts.mean(axis=0), 0.0, atol=0.1)
    np.testing.assert_allclose(firsts.std(axis=0), 3**-0.5, atol=0.05)

    def episode(seed):
        env.reset(seed=seed)
        env.action_space.seed(seed)
        steps = [env.step(env.action_space.sample()) for _ in range(17)]
        return [step[0]["glimpse"].tobytes() for step in steps], steps[-1][-1]["label"]

    assert episode(7) == episode(7) != episode(8)


def test_beyond_the_canvas_the_border_is_shown(own):
    env = ClutteredDigits(digits=own)
    env.reset(seed=0)
    beyond, *_ = env.step(np.array([3.0, -2.0]))
    border, *_ = env.step(np.array([1.0, -1.0]))
    assert beyond["location"].tolist() == [1.0, -1.0]
    np.testing.assert_array_equal(beyond["glimpse"], border["glimpse"])


def test_rendering_shows_the_canvas_and_a_square_for_each_glimpse(own):
    env = ClutteredDigits(digits=own, render_mode="rgb_array", layout={"canvas_size": 30})
    env.reset(seed=1)
    env.step(np.array([0.0, 0.0]))
    env.step(np.array([1.0, 0.0]))
    picture = env.render()
    assert picture.shape == (120, 120, 3) and picture.dtype == np.uint8
    path, here = (0, 200, 83), (255, 23, 68)
    square = picture[4 * 13 : 4 * 17, 4 * 13 : 4 * 17]  # around the middle, 4 x 4 pixels
    for edge in (square[0], square[-1], square[:, 0], square[:, -1]):
        assert (edge == path).all()
    image = env._image
    np.testing.assert_array_equal(square[8, 8], image[15, 15].repeat(3))
    assert (picture[4 * 13 : 4 * 17, 4 * 28] == here).all()  # its right half is off the canvas


def test_mnist_is_read_when_it_is_used(mnist_cache, tmp_path, monkeypatch):
    labels = []
    for split, part in (("train", "train"), ("test", "t10k")):
        env = gym.make(ID, split=split, glimpses=2)
        env.reset(seed=0)
        labels.append(env.step(np.zeros(2, np.float32))[-1]["label"])
        rng = np.random.Generator(np.random.PCG64(0))
        assert labels[-1] == sample_canvases(read_mnist(part), 1, Layout(), rng).labels[0]
    monkeypatch.setenv("IRRL_CACHE", str(tmp_path / "nothing"))
    env = gym.make(ID)  # spaces can be looked at without
    with pytest.raises(UserError, match=r"no MNIST in .*irrl data mnist"):
        env.reset()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"glimpses": 1}, "glimpses must be at least 2"),
        ({"glimpse_size": 0}, "glimpse-size must be at least 1"),
        ({"scales": 9}, "more than twice the canvas-size"),
        ({"layout": {"canvas_size": 20}}, "canvas-size must be at least 28"),
        ({"layout": {"placement": "left"}}, "unknown placement 'left'"),
        ({"layout": {"colour": 1}}, "layout has no colour"),
        ({"split": "validation"}, "split must be train or test"),
        ({"render_mode": "human"}, "render_mode must be rgb_array"),
        ({"digits": (np.zeros((2, 28, 28)), [0, 1])}, "of bytes, got float64"),
        ({"digits": (np.zeros((2, 20, 20), np.uint8), [0, 1])}, r"shape \(2, 20, 20\)"),
        ({"digits": (np.zeros((2, 28, 28), np.uint8), [0])}, "a label for each image"),
        ({"digits": (np.zeros((2, 28, 28), np.uint8), [0, 10])}, r"integers in 0\.\.9"),
    ],
)
def test_impossible_arguments(options, words):
    with pytest.raises(ValueError, match=words):
        ClutteredDigits(**options)


def test_impossible_actions(own):
    env = ClutteredDigits(digits=own)
    with pytest.raises(gym.error.ResetNeeded):
        env.step(np.zeros(2))
    env.reset()
    for action in (np.zeros(3), np.array([np.nan, 0.0]), 0.5):
        with pytest.raises(ValueError, match="two finite numbers"):
            env.step(action)
