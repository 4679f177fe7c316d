"""What a wrapper for Stable-Baselines3 must handle, one test for each point."""

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import (
    SubprocVecEnv,
    VecFrameStack,
    VecMonitor,
    VecNormalize,
    VecTransposeImage,
)

from irrl.adapters.sb3 import Rewarded
from irrl.adapters.sb3_replay import replay
from irrl.adapters.sb3_vector import GymnasiumVecEnv
from irrl.reward_model import RewardModel
from tests.adapters.rollouts import PAYS, actions_of, dummy, require_paid, rolled_out, two
from tests.adapters.worlds import (
    SCRIPT,
    Scene,
    Scripted,
    episodes_within,
    model_for,
    played,
    require_played,
)

# --- the terminal observation, and the infos of the new episode ---


@pytest.mark.parametrize("pay", PAYS)
@pytest.mark.parametrize("judge", ["state", "trajectory"])
@pytest.mark.parametrize("named", [False, True])
def test_the_end_is_judged_by_the_terminal_observation(pay, judge, named):
    envs = two(named=named)
    model = model_for(envs[0], judge=judge, pay=pay)
    paid, _ = rolled_out(Rewarded(dummy(envs), model), 23)
    require_played(model, envs, [episodes_within(env, 23) for env in envs])
    require_paid(model, envs, paid)


@pytest.mark.parametrize("layer", [None, VecMonitor, lambda venv: VecMonitor(VecMonitor(venv))])
@pytest.mark.parametrize("tells", ["reset", "steps", "end"])
def test_labels_of_new_episodes_come_with_the_reset(layer, tells):
    envs = two(tells=tells)
    venv = dummy(envs) if layer is None else layer(dummy(envs))
    model = model_for(pay="end")
    rolled_out(Rewarded(venv, model), 23)
    require_played(model, envs, [episodes_within(env, 23) for env in envs])


def test_environments_in_processes_of_their_own():
    envs = two(tells="reset")
    venv = SubprocVecEnv([lambda env=env: env for env in envs], start_method="fork")
    model = model_for(pay="differences")
    env = Rewarded(venv, model)
    paid, _ = rolled_out(env, 12)
    env.close()
    require_played(model, envs, [episodes_within(env, 12) for env in envs])
    require_paid(model, envs, paid)


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("named", [False, True])
def test_gymnasium_vector_environments(mode, named):
    envs = two(named=named)
    vector = SyncVectorEnv([lambda env=env: env for env in envs], autoreset_mode=mode)
    model = model_for(envs[0], pay="differences")
    paid, infos = rolled_out(Rewarded(GymnasiumVecEnv(vector), model), 23)
    require_played(model, envs, [episodes_within(env, 23) for env in envs])
    require_paid(model, envs, paid)
    assert infos[2][0]["label"] == SCRIPT[0].label


def test_frames_stacked_inside_are_judged_as_they_are():
    envs = [Scripted(0)]
    venv = VecFrameStack(dummy(envs), 2)
    model = model_for(venv.observation_space)
    rolled_out(Rewarded(venv, model), 4)
    first, label = model.given[0]
    whole, _ = played(envs[0], 0)
    before = np.concatenate([np.zeros((1, 4)), whole["observation"][:-1]])
    expected = np.concatenate([before, whole["observation"]], axis=1)
    np.testing.assert_array_equal(first["observation"], expected)
    assert label == SCRIPT[0].label


def test_frames_stacked_outside_are_for_the_policy_alone():
    envs = two()
    model = model_for()
    env = VecFrameStack(Rewarded(dummy(envs), model), 3)
    PPO("MlpPolicy", env, n_steps=8, batch_size=8, n_epochs=1, device="cpu").learn(16)
    require_played(model, envs, [episodes_within(env, 8) for env in envs])


class Pictures(gymnasium.ObservationWrapper):
    """Shows places as pictures, with channels last."""

    def __init__(self, env):
        super().__init__(env)
        self.observation_space = spaces.Box(0, 255, (36, 36, 3), np.uint8)

    def observation(self, place):
        picture = np.zeros((36, 36, 3), np.uint8)
        picture[0, :4, 0] = place
        return picture


@pytest.mark.parametrize("agent_class", [PPO, DQN])
@pytest.mark.parametrize("inside", [False, True])
def test_pictures_are_turned_inside_or_outside(agent_class, inside):
    venv = dummy(map(Pictures, two()))
    venv = VecTransposeImage(venv) if inside else venv
    model = model_for(venv.observation_space)
    env = Rewarded(venv, model)
    options = {"n_steps": 8, "n_epochs": 1} if agent_class is PPO else replay(env)
    options |= {"batch_size": 8, "device": "cpu"}
    if agent_class is DQN:
        options |= {"buffer_size": 40, "learning_starts": 8}
    agent = agent_class("CnnPolicy", env, **options).learn(16)
    assert isinstance(agent.env, VecTransposeImage) is not inside  # by the agent itself
    assert [len(model.given), model.given[0][0]["observation"].shape[1:]] == [
        sum(episodes_within(env, 8) for env in two()),
        (3, 36, 36) if inside else (36, 36, 3),
    ]
    for seen, label in model.given:
        pictures = seen["observation"]
        places = pictures[:, 0, 0, :4] if inside else pictures[:, 0, :4, 0]
        number, episode, _, _ = places[0]
        expected, expected_label = played(two()[number], int(episode))
        np.testing.assert_array_equal(places, expected["observation"])
        assert label == expected_label


# --- rewards ---


def test_rewards_are_a_fresh_writable_float32_array():
    env = Rewarded(dummy(two()), model_for(pay="steps"))
    env.reset()
    found = [env.step(actions_of(env))[1] for _ in range(3)]
    for rewards in found:
        assert rewards.dtype == np.float32
        assert rewards.flags.writeable and rewards.flags.owndata
    assert not np.shares_memory(found[0], found[1])
    kept = found[1].copy()
    found[2][:] = 7.0
    env.step(actions_of(env))
    np.testing.assert_array_equal(found[1], kept)


def test_paid_before_advantages_are_computed():
    model = model_for(pay="steps")
    env = Rewarded(dummy(two()), model)
    agent = PPO("MlpPolicy", env, n_steps=9, batch_size=9, n_epochs=1, gamma=0.9, device="cpu")
    paid = []
    step_wait = env.step_wait
    env.step_wait = lambda: paid.append(step_wait()) or paid[-1]
    agent.policy.predict_values = lambda obs: torch.zeros(len(obs), 1)  # nothing to bootstrap from
    agent.learn(18)
    rewards = np.array([step[1] for step in paid])
    dones = np.array([step[2] for step in paid])
    assert np.abs(rewards).max() > 0
    buffer = agent.rollout_buffer
    values = buffer.values.reshape(2, 9).T
    advantages, after = np.zeros((9, 2)), 0.0
    for t in reversed(range(9)):
        going = 0.0 if t == 8 else 1.0 - dones[t]
        value = values[t + 1] if t < 8 else 0.0
        after = rewards[t] + 0.9 * going * value - values[t] + 0.9 * 0.95 * going * after
        advantages[t] = after
    np.testing.assert_allclose(buffer.advantages.reshape(2, 9).T, advantages, atol=1e-5)


@pytest.mark.parametrize("pay", PAYS)
def test_a_paid_end_is_a_termination(pay):
    script = (Scene(2, True, 0),)
    venv = dummy([Scripted(script=script)])
    _, infos = rolled_out(Rewarded(venv, model_for(pay=pay)), 2)
    assert infos[1][0]["TimeLimit.truncated"] is (pay == "steps")
    assert infos[0][0]["TimeLimit.truncated"] is False


def test_a_normaliser_inside_is_refused_and_one_outside_keeps_the_zero():
    with pytest.raises(ValueError, match="put it around Rewarded"):
        Rewarded(VecMonitor(VecNormalize(dummy(two()))), model_for())
    envs = two()
    model = model_for(pay="end")
    env = VecNormalize(Rewarded(dummy(envs), model))
    env.reset()
    for _ in range(23):
        _, rewards, dones, _ = env.step(actions_of(env))
        plain = env.get_original_reward()
        np.testing.assert_array_equal(np.sign(rewards), np.sign(plain))
        assert (rewards[~dones] == 0).all()
    require_played(model, envs, [episodes_within(env, 23) for env in envs])


def test_the_discriminator_has_statistics_of_its_own():
    env = Rewarded(dummy(two()), model_for())
    agent = PPO("MlpPolicy", VecNormalize(env), n_steps=16, batch_size=16, device="cpu")
    agent.learn(32, callback=env.learner())
    (moments,) = env.model.discriminator.features.normaliser.values.values()
    seen = np.concatenate([whole["observation"] for whole, _ in env.model.given])
    np.testing.assert_allclose(moments.shift.numpy(), seen.mean(axis=0), atol=1e-5)


def test_rollouts_cut_episodes_and_nothing_is_lost():
    envs = two()
    model = model_for(judge="trajectory", pay="end", core="gru", batch_size=4)
    env = Rewarded(dummy(envs), model)
    paid = []
    step_wait = env.step_wait
    env.step_wait = lambda: paid.append(step_wait()) or paid[-1]
    PPO("MlpPolicy", env, n_steps=2, batch_size=4, n_epochs=1, device="cpu").learn(
        60, callback=env.learner()
    )
    require_played(model, envs, [episodes_within(env, 30) for env in envs])
    assert model.updates > 5
    at_ends = np.concatenate([rewards[dones] for _, rewards, dones, _ in paid])
    np.testing.assert_allclose(at_ends, model.worth, atol=1e-5)


def test_differences_over_cut_rollouts_add_up_to_the_end():
    model = model_for(judge="trajectory", pay="differences")
    env = Rewarded(dummy(two()), model)
    agent = PPO("MlpPolicy", env, n_steps=2, batch_size=4, n_epochs=1, device="cpu")
    agent.learn(40)
    sums = [episode["r"] for episode in agent.ep_info_buffer]
    assert len(sums) > 10
    np.testing.assert_allclose(sums, model.worth, atol=1e-5)


@pytest.mark.filterwarnings("ignore:The environment is already wrapped:UserWarning")
def test_monitors_inside_and_outside():
    envs = [Monitor(env) for env in two()]
    model = model_for(pay="end")
    env = VecMonitor(Rewarded(dummy(envs), model))
    paid, infos = rolled_out(env, 3)
    end = infos[2][0]
    assert end["environment_episode"]["r"] == 3.0
    assert end["episode"]["l"] == 3
    np.testing.assert_allclose(end["episode"]["r"], sum(paid[0][0]), atol=1e-5)
    _, infos = rolled_out(Rewarded(dummy(two()), model), 3)
    np.testing.assert_allclose(infos[2][0]["episode"]["r"], sum(paid[0][0]), atol=1e-5)
    assert infos[2][0]["episode"]["l"] == 3


def test_agents_log_what_was_paid():
    env = Rewarded(dummy([Monitor(env) for env in two()]), model_for(pay="end"))
    agent = A2C("MlpPolicy", env, device="cpu")
    agent.learn(40, callback=env.learner())
    rewards = [info["r"] for info in agent.ep_info_buffer]
    np.testing.assert_allclose(rewards, env.model.worth[: len(rewards)], atol=1e-5)


# --- files ---


def test_agent_and_reward_model_are_saved_each_by_itself(tmp_path):
    model = model_for(batch_size=4)
    env = Rewarded(dummy(two()), model)
    agent = PPO("MlpPolicy", env, n_steps=8, batch_size=8, n_epochs=1, device="cpu")
    agent.learn(64, callback=env.learner())
    agent.save(tmp_path / "agent")
    model.save(tmp_path / "reward_model")
    loaded = RewardModel.load(tmp_path / "reward_model")
    again = PPO.load(tmp_path / "agent", env=Rewarded(dummy(two()), loaded), device="cpu")
    episode = played(Scripted(), 2)
    np.testing.assert_array_equal(loaded.rewards(*episode), model.rewards(*episode))
    fresh = model_for(batch_size=4)
    assert np.abs(fresh.rewards(*episode) - model.rewards(*episode)).max() > 1e-4
    assert again.env.model is loaded
