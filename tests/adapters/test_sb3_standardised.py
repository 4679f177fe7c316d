"""A policy that standardises what it sees: by what it saw before the rollout, and nothing else."""

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv

from irrl.adapters.sb3_standardised import Standardised, standardised, take_in
from irrl.errors import UserError

LOW, HIGH = np.array([100.0, -3.0]), np.array([300.0, -1.0])


class Numbers(gymnasium.Env):
    """Far from zero, a category beside them."""

    observation_space = spaces.Dict(
        {"kind": spaces.Discrete(3), "numbers": spaces.Box(-np.inf, np.inf, (2,), np.float64)}
    )
    action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def _seen(self):
        numbers = self.np_random.uniform(LOW, HIGH)
        return {"kind": int(self.np_random.integers(3)), "numbers": numbers}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self._seen(), {}

    def step(self, action):
        return self._seen(), 0.0, False, bool(self.np_random.random() < 0.1), {}


def make_agent(env):
    return PPO(
        "MultiInputPolicy", env, n_steps=256, batch_size=64, n_epochs=1, device="cpu", seed=0,
        policy_kwargs=standardised(),
    )  # fmt: skip


def shown(agent, numbers, kind):
    seen = {"kind": np.array([kind]), "numbers": np.array([numbers])}
    tensors, _ = agent.policy.obs_to_tensor(seen)
    with torch.no_grad():
        return agent.policy.extract_features(tensors)[0].numpy()


def test_what_was_seen_has_mean_zero_and_std_one_from_the_next_rollout_on():
    agent = make_agent(DummyVecEnv([Numbers, Numbers]))
    agent.learn(512)
    before = shown(agent, [200.0, -2.0], 1)
    np.testing.assert_allclose(before, [0.0, 1.0, 0.0, 10.0, -2.0])  # as it is, within limits
    take_in(agent)
    numbers = agent.rollout_buffer.observations["numbers"].reshape(-1, 2)
    found = np.stack([shown(agent, row, 0)[3:] for row in numbers])
    np.testing.assert_allclose(found.mean(axis=0), 0.0, atol=1e-4)
    np.testing.assert_allclose(found.std(axis=0), 1.0, atol=1e-4)
    apart = shown(agent, numbers[0], 2)[:3] - shown(agent, numbers[0], 1)[:3]
    np.testing.assert_allclose(np.abs(apart), [0.0, 2.1, 2.1], atol=0.1)  # one over a root of 2/9


def test_an_update_sees_what_its_rollout_saw():
    agent = make_agent(DummyVecEnv([Numbers]))
    agent.learn(256)
    take_in(agent)
    _, callback = agent._setup_learn(256, None, reset_num_timesteps=False)
    agent.collect_rollouts(agent.env, callback, agent.rollout_buffer, 256)
    for batch in agent.rollout_buffer.get(64):
        _, log_prob, _ = agent.policy.evaluate_actions(batch.observations, batch.actions)
        np.testing.assert_allclose(log_prob.detach(), batch.old_log_prob, atol=1e-4)


def test_statistics_are_saved_with_the_weights():
    agent = make_agent(DummyVecEnv([Numbers]))
    agent.learn(256)
    take_in(agent)
    other = make_agent(DummyVecEnv([Numbers]))
    other.policy.load_state_dict(agent.policy.state_dict())
    np.testing.assert_array_equal(shown(other, [150.0, -2.5], 2), shown(agent, [150.0, -2.5], 2))
    assert int(other.policy.features_extractor.moments.count) == 256


def test_a_vector_without_names_does_as_well():
    agent = PPO("MlpPolicy", "Pendulum-v1", n_steps=64, device="cpu", policy_kwargs=standardised())
    agent.learn(64)
    take_in(agent)
    assert int(agent.policy.features_extractor.moments.count) == 64


def test_images_are_refused_in_one_line():
    with pytest.raises(UserError, match="for vectors, and camera is an image: leave it 'raw'"):
        Standardised(spaces.Dict({"camera": spaces.Box(0, 255, (40, 40, 3), np.uint8)}))
