import doctest

import gymnasium
import numpy as np
import pytest
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

import irrl
from irrl.adapters import sb3_preferences
from irrl.adapters.sb3_preferences import Preferred, ReturnTeacher, Segment, step_space

QUICK = {"width": 16, "samples_per_comparison": 20, "references": 8}


class Line(gymnasium.Env):
    """Right is good; an episode is as long as `length` says, its place is where it is."""

    observation_space = gymnasium.spaces.Box(-20.0, 20.0, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    length = 9

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.taken = int(self.np_random.integers(-5, 6)), 0
        return self.seen(), {}

    def step(self, action):
        self.place += 1 if action else -1
        self.taken += 1
        return self.seen(), float(action), self.taken == self.length, False, {}

    def seen(self):
        return np.array([self.place], np.float32)


def made(n=2, **options):
    envs = make_vec_env(Line, n_envs=n, seed=0)
    model = irrl.PreferenceModel(step_space(envs), **QUICK)
    return Preferred(envs, model, **options), model


def test_examples_run():
    tried = doctest.testmod(sb3_preferences)
    assert tried.failed == 0 and tried.attempted > 0


def test_a_step_is_what_was_seen_and_what_was_done_then():
    env, _ = made(segment=4)
    seen = [env.reset().copy()]
    actions = [np.array([1, 0]), np.array([0, 0]), np.array([1, 1]), np.array([0, 1])]
    for action in actions:
        observations, rewards, _, _ = env.step(action)
        seen.append(observations.copy())
        assert rewards.tolist() == [0.0, 0.0] and rewards.dtype == np.float32  # nothing learned yet
    for n, segment in enumerate(env.segments):
        np.testing.assert_array_equal(
            segment.steps["observation"], np.stack([s[n] for s in seen[:-1]])
        )
        assert segment.steps["action"].tolist() == [a[n] for a in actions]
        assert segment.rewards.tolist() == [float(a[n]) for a in actions]
    assert len(env.segments) == 2


def test_segments_do_not_cross_the_ends_of_episodes():
    env, _ = made(n=1, segment=4)
    env.reset()
    for _ in range(27):
        _, _, dones, infos = env.step(np.array([1]))
        if dones[0]:
            assert infos[0]["environment_episode"]["r"] == 9.0
            assert infos[0]["episode"]["l"] == 9
    # 9 steps are two segments of four, and one step that is too short for another
    assert [len(segment.rewards) for segment in env.segments] == [4] * 6
    for segment in env.segments:
        assert (np.diff(segment.steps["observation"][:, 0]) == 1.0).all()


def test_it_pays_what_the_model_finds():
    env, model = made(segment=3)
    observations = env.reset().copy()
    for _ in range(6):
        observations = env.step(np.array([1, 0]))[0]
    first, second = env.segments[:2]
    model.add(first.steps, second.steps, 1)
    model.learn()
    action = np.array([1, 1])
    expected = model.rewards({"observation": observations.copy(), "action": action})
    rewards = env.step(action)[1]
    np.testing.assert_array_equal(rewards, expected.astype(np.float32))


def test_an_agent_learns_from_comparisons_alone():
    env, model = made(n=8, segment=5)
    agent = PPO("MlpPolicy", env, n_steps=32, batch_size=64, n_epochs=4, learning_rate=3e-3, seed=0)
    agent.learn(6_000, callback=env.learner(ReturnTeacher(), comparisons=60))
    assert model.comparisons <= 60 and model.updates > 5
    assert model.health()["comparisons"] == model.comparisons
    chosen = agent.predict(np.arange(-5, 6, dtype=np.float32)[:, None], deterministic=True)[0]
    assert chosen.mean() > 0.9


def test_half_of_the_comparisons_are_asked_for_in_the_first_quarter():
    env, model = made(n=4, segment=3)
    counts = []

    def judge(first, second):
        counts.append(1)
        return 1.0

    agent = PPO("MlpPolicy", env, n_steps=25, batch_size=50, n_epochs=1, seed=0)
    asker = env.learner(judge, comparisons=40)
    asked_by = {}

    class Watch(sb3_preferences.BaseCallback):
        def _on_step(self):
            asked_by[self.num_timesteps] = len(counts)
            return True

    agent.learn(1_000, callback=[asker, Watch()])
    assert asked_by[100] == 0 and abs(asked_by[300] - 18) <= 2 and abs(asked_by[1000] - 38) <= 2
    assert model.comparisons == len(counts) <= 40


def test_evaluation_keeps_nothing():
    env, _ = made(training=False, segment=2)
    env.reset()
    for _ in range(10):
        env.step(np.array([1, 0]))
    assert env.segments == []


def test_the_teacher_errs_as_often_as_it_is_told():
    poor, rich = (Segment({}, np.full(3, r)) for r in (0.0, 1.0))
    teacher = ReturnTeacher(error_rate=0.25)
    wrong = [teacher(rich, poor) == 0.0 for _ in range(2000)]
    assert abs(np.mean(wrong) - 0.25) < 0.03
    assert ReturnTeacher()(poor, poor) == 0.5
    again = ReturnTeacher(error_rate=0.25)
    assert [again(rich, poor) == 0.0 for _ in range(2000)] == wrong


def test_what_does_not_fit_is_refused():
    envs = make_vec_env(Line, n_envs=1)
    model = irrl.PreferenceModel(Line.observation_space)
    with pytest.raises(ValueError, match=r"make it for irrl.adapters.sb3_preferences.step_space"):
        Preferred(envs, model)
    env, model = made()
    with pytest.raises(ValueError, match="a VecNormalize lies inside"):
        Preferred(VecNormalize(envs), model)
    with pytest.raises(ValueError, match="segment must be 2 steps or more, got 1"):
        Preferred(envs, model, segment=1)
    with pytest.raises(ValueError, match="comparisons must be a whole number"):
        env.learner(ReturnTeacher(), comparisons=0)
    with pytest.raises(ValueError, match="error_rate must be a share"):
        ReturnTeacher(error_rate=2.0)
    agent = DQN("MlpPolicy", env)
    with pytest.raises(ValueError, match="rewards in the buffer of DQN go stale"):
        agent.learn(10, callback=env.learner(ReturnTeacher(), comparisons=5))
