import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict
from gymnasium.utils.env_checker import check_env

from irrl.envs import Skills


class Unseeded(gymnasium.Env):
    """An environment that never heard of seeds."""

    observation_space = Box(-1.0, 1.0, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.options = options
        return np.zeros(2, np.float32), {"label": "of its own", "more": 1}

    def step(self, action):
        return np.ones(2, np.float32), 2.5, False, True, {"more": 2}


def codes_of(env, seed, count=30):
    first = env.reset(seed=seed)[1]["label"]
    return [first, *(env.reset()[1]["label"] for _ in range(count))]


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1", "irrl/FourRooms-v0"])
def test_gymnasium_accepts_it(name):
    env = Skills(gymnasium.make(name).unwrapped, 5)
    check_env(env, skip_render_check=True)


def test_the_code_stands_beside_the_observation():
    env = Skills(gymnasium.make("CartPole-v1"), np.int64(4))
    plain = gymnasium.make("CartPole-v1")
    seen, info = env.reset(seed=3)
    np.testing.assert_array_equal(seen["observation"], plain.reset(seed=3)[0])
    assert isinstance(env.observation_space, Dict) and env.observation_space.contains(seen)
    for _ in range(5):
        assert seen["code"].tolist() == [float(k == info["label"]) for k in range(4)]
        before = info["label"]
        seen, reward, _, _, info = env.step(1)
        wanted = plain.step(1)
        np.testing.assert_array_equal(seen["observation"], wanted[0])
        assert info["label"] == before and reward == wanted[1]


@pytest.mark.parametrize("make", [Unseeded, lambda: gymnasium.make("CartPole-v1")])
def test_codes_are_drawn_by_the_seed(make):
    one, two, other = (codes_of(Skills(make(), 6), seed) for seed in (1, 1, 2))
    assert one == two != other
    assert set(one) == set(range(6))


def test_codes_do_not_change_what_the_environment_draws():
    env, plain = Skills(gymnasium.make("CartPole-v1"), 4), gymnasium.make("CartPole-v1")
    env.reset(seed=8)
    plain.reset(seed=8)
    np.testing.assert_array_equal(env.reset()[0]["observation"], plain.reset()[0])


def test_a_code_can_be_given():
    env = Skills(Unseeded(), 4)
    for code in (3, np.int32(1), 0):
        seen, info = env.reset(options={"code": code, "depth": 2})
        assert info["label"] == code and seen["code"].argmax() == code
        assert env.env.options == {"depth": 2}
        assert env.step(0)[4] == {"more": 2, "label": code}
    env.reset(options={"code": 2})
    assert env.env.options is None


@pytest.mark.parametrize("code", [4, -1, 1.0, "2", True])
def test_a_code_that_is_none_is_refused_before_anything_is_reset(code):
    env = Skills(Unseeded(), 4)
    env.reset(options={"code": 1})
    with pytest.raises(ValueError, match=r"code must lie in 0..3, got"):
        env.reset(options={"code": code})
    assert env.step(0)[4]["label"] == 1


@pytest.mark.parametrize("codes", [1, 0, True, 2.0, None])
def test_a_number_of_codes_that_cannot_be(codes):
    with pytest.raises(ValueError, match="codes must be a whole number, at least 2"):
        Skills(Unseeded(), codes)
