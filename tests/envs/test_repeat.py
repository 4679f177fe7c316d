"""Actions that last for several steps."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import irrl.envs
from irrl.errors import UserError


class Counts(gymnasium.Env):
    """Pays its action; ends after seven steps."""

    observation_space = gymnasium.spaces.Box(0.0, 100.0, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self._seen(), {}

    def step(self, action):
        self.steps += 1
        return self._seen(), float(action), self.steps == 7, False, {"steps": self.steps}

    def _seen(self):
        return np.array([self.steps], np.float32)


def test_rewards_add_up_and_the_last_step_is_shown():
    env = irrl.envs.Repeat(Counts(), 3)
    env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(2)
    assert observation == [3.0] and reward == 6.0 and info == {"steps": 3}
    assert not terminated and not truncated


def test_an_episode_ends_where_it_ends():
    env = irrl.envs.Repeat(Counts(), 3)
    env.reset(seed=0)
    steps = [env.step(1) for _ in range(3)]
    assert [step[1] for step in steps] == [3.0, 3.0, 1.0]
    assert [step[2] for step in steps] == [False, False, True]
    limited = irrl.envs.Repeat(gymnasium.wrappers.TimeLimit(Counts(), 5), 3)
    limited.reset(seed=0)
    assert [limited.step(1)[3] for _ in range(2)] == [False, True]


def test_it_is_a_gymnasium_environment():
    check_env(irrl.envs.Repeat(gymnasium.make("irrl/PointMass-v0"), 5), skip_render_check=True)


@pytest.mark.parametrize("repeat", [0, 1.5, True, "two"])
def test_odd_numbers_of_steps_are_refused(repeat):
    with pytest.raises(UserError, match="repeat must be a whole number, at least 1"):
        irrl.envs.Repeat(Counts(), repeat)
