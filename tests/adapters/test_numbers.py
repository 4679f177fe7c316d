"""Labels that are numbers, through the adapters: what is learned from is what happened."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.vec_env import DummyVecEnv

from irrl import Continuous, RewardModel
from irrl.adapters import gymnasium as of_gymnasium
from irrl.adapters import sb3
from irrl.adapters.sb3_replay import replay
from irrl.adapters.sb3_vector import GymnasiumVecEnv
from irrl.densities import Uniform
from irrl.envs import LastAction, perceive
from irrl.errors import UserError

SMALL = {"width": 8, "batch_size": 8, "samples_per_episode": 2, "core": "gru"}


class Walk(gymnasium.Env):
    """Shows where it stands. The label is that place, told when it is left; or where it began."""

    observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)

    def __init__(self, moves=True, steps=4):
        self.moves, self.steps = moves, steps

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.first = self.place = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        self.left = int(self.np_random.integers(1, self.steps + 1))
        return self.place, {}

    def step(self, action):
        label = self.place if self.moves else self.first
        self.place = np.clip(self.place + 0.1 * action, -1, 1).astype(np.float32)
        self.left -= 1
        return self.place, 0.5, self.left == 0, False, {"label": label}


def model_of(moves=True, **options):
    labels = Continuous((2,), Uniform(-1.0, 1.0), moves=moves)
    options = {"pay": "end", **SMALL, **options}
    return RewardModel(Walk.observation_space, labels, **options)


def require_true(model, moves):
    """What was shown is what the label is: of each observation, or of the first."""
    assert len(model.store) + len(model.held_out) > 10
    for store in (model.store, model.held_out):
        seen, lengths, labels = store.episodes(np.arange(len(store)))
        (seen,) = seen.values()
        for n, length in enumerate(lengths):
            label = labels[:length, n] if moves else labels[n]
            np.testing.assert_array_equal(seen[: length if moves else 1, n], np.atleast_2d(label))


@pytest.mark.parametrize("moves", [True, False])
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
@pytest.mark.parametrize("pay", ["end", "steps"])
def test_gymnasium_vector_environments_carry_them(moves, mode, pay):
    if pay == "steps" and not moves:
        return
    model = model_of(moves, pay=pay, varying_length=True)
    envs = SyncVectorEnv([lambda: Walk(moves)] * 3, autoreset_mode=mode)
    envs = of_gymnasium.Rewarded(envs, model)
    envs.reset(seed=0)
    envs.action_space.seed(0)
    for _ in range(30):
        _, rewards, ended, _, _ = envs.step(envs.action_space.sample())
        assert np.isfinite(rewards).all() and (pay == "steps" or not rewards[~ended].any())
    require_true(model, moves)
    assert envs.learn()["discriminator_loss"] > 0


@pytest.mark.parametrize("moves", [True, False])
@pytest.mark.parametrize("observe", ["raw", "inputs", "belief"])
def test_stable_baselines_learns_with_them(moves, observe):
    model = model_of(moves)
    env = sb3.Rewarded(DummyVecEnv([lambda: Walk(moves)] * 3), model, observe=observe)
    agent = PPO("MlpPolicy", env, n_steps=16, batch_size=24, n_epochs=1, seed=0)
    agent.learn(96, callback=env.learner(health_every=1))
    require_true(model, moves)
    assert model.updates > 0
    features = model.discriminator.features.size
    size = {"raw": 2, "inputs": features, "belief": features + 4}[observe]
    assert env.observation_space.shape == (size,)


def test_a_replay_buffer_pays_for_labels_that_stand_still_only():
    env = sb3.Rewarded(DummyVecEnv([lambda: Walk(False)] * 2), model_of(False, judge="final"))
    options = {"buffer_size": 100, "learning_starts": 20, "train_freq": 4, "seed": 0}
    agent = SAC("MlpPolicy", env, policy_kwargs={"net_arch": [8]}, **options, **replay(env))
    agent.learn(60, callback=env.learner())
    arrays = agent.replay_buffer.to_arrays()
    assert arrays["labels"].shape == (32, 2, 2) and arrays["labels"].dtype == np.float32
    agent.replay_buffer.restore(arrays)
    with pytest.raises(UserError, match="has no mass under the prior"):
        agent.replay_buffer.restore({**arrays, "labels": arrays["labels"] + 4.0})
    moving = sb3.Rewarded(DummyVecEnv([Walk]), model_of(judge="state", pay="steps"))
    with pytest.raises(UserError, match="labels that move do not go with a replay buffer"):
        replay(moving)


# --- ap_gym ---


def test_predictions_are_means_within_their_space():
    envs = perceive("ap_gym:LightDark-v0", 3)
    labels = Continuous((2,), Uniform(-1.0, 1.0), moves=True)
    model = RewardModel(envs.single_observation_space, labels, pay="environment", **SMALL)
    rewarded = of_gymnasium.Rewarded(envs, model)
    rewarded.reset(seed=0)
    for _ in range(3):
        predicted = rewarded.collector.predictions.clip(-1.0, 1.0)
        _, rewards, _, _, info = rewarded.step(np.zeros((3, 2), np.float32))
        error = np.mean((predicted - info["label"]) ** 2, axis=-1)
        np.testing.assert_allclose(rewards, 1.0 - 3.0 * error, rtol=1e-4)
    envs.predict(np.full((3, 2), 7.0))
    np.testing.assert_array_equal(envs.predictions, np.ones((3, 2)))


def test_the_last_action_is_shown_and_begins_with_zero():
    envs = LastAction(SyncVectorEnv([lambda: Walk(steps=2)] * 4))
    stable = GymnasiumVecEnv(envs)
    stable.seed(0)
    shown = stable.reset()
    assert not shown["last_action"].any() and set(shown) == {"observation", "last_action"}
    for n in range(1, 6):
        stable.step_async(np.full((4, 2), 0.1 * n, np.float32))
        shown, _, dones, infos = stable.step_wait()
        wanted = np.where(dones[:, None], 0.0, 0.1 * n)
        np.testing.assert_allclose(shown["last_action"], np.broadcast_to(wanted, (4, 2)))
        for info, done in zip(infos, dones, strict=True):
            if done:
                last = info["terminal_observation"]["last_action"]
                np.testing.assert_allclose(last, 0.1 * n, rtol=1e-6)


def test_the_last_action_cannot_be_shown_everywhere():
    with pytest.raises(UserError, match="reset in the same step"):
        LastAction(SyncVectorEnv([Walk], autoreset_mode=AutoresetMode.SAME_STEP))
    with pytest.raises(UserError, match="only actions that are vectors"):
        LastAction(gymnasium.make_vec("CartPole-v1", 1))
    with pytest.raises(UserError, match="already"):
        LastAction(LastAction(SyncVectorEnv([Walk])))
