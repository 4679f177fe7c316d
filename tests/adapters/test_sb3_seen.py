"""What of an environment in Stable-Baselines3 is judged and shown, and what is refused."""

import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecMonitor

from irrl.adapters.sb3 import Rewarded
from irrl.adapters.sb3_vector import GymnasiumVecEnv, join_options
from irrl.envs import Skills, perceive
from irrl.errors import UserError
from irrl.reward_model import RewardModel
from tests.adapters.rollouts import PAYS, actions_of, dummy, require_paid, rolled_out, two
from tests.adapters.worlds import (
    BOX,
    CONTINUOUS,
    LABELS,
    Scene,
    Scripted,
    episodes_within,
    model_for,
    require_played,
)

# --- what is judged, and what the policy sees ---


def test_the_code_of_skills_does_not_reach_the_discriminator():
    venv = dummy([Skills(Scripted(tells="never"), LABELS)])
    model = model_for(BOX, mode="skills", judge="state")
    rolled_out(Rewarded(venv, model), 12)
    assert model.given
    assert all(set(seen) == {"observation"} for seen, _ in model.given)
    with pytest.raises(ValueError, match="would see the code"):
        Rewarded(venv, model_for(venv.observation_space))


def test_see_says_what_is_judged():
    envs = two()
    model = model_for(spaces.Box(-1.0, 100.0, (2,), np.float32))
    env = Rewarded(dummy(envs), model, see=lambda observations: observations[:, 1:3])
    rolled_out(env, 12)
    for seen, _ in model.given:
        episode = int(seen["observation"][0, 0])
        steps = np.arange(len(seen["observation"]))
        np.testing.assert_array_equal(seen["observation"][:, 0], np.full(len(steps), episode))
        np.testing.assert_array_equal(seen["observation"][:, 1], steps)


def test_inputs_are_the_features_and_the_rest_of_a_dictionary():
    venv = dummy([Skills(Scripted(tells="never"), LABELS)])
    model = model_for(BOX, mode="skills", judge="state", batch_size=4, pay="steps")
    env = Rewarded(venv, model, observe="inputs")
    judge = model.discriminator
    size = judge.features.size
    assert env.observation_space.shape == (size + LABELS,)

    def features(place):
        with torch.no_grad():
            return judge.features({"observation": torch.from_numpy(place[None])})[0][0].numpy()

    shown = [env.reset()[0]]
    while not model.given:
        observations, _, dones, infos = env.step(actions_of(env))
        shown.append(infos[0]["terminal_observation"] if dones[0] else observations[0])
    (whole, label) = model.given[0]
    for place, vector in zip(whole["observation"], shown, strict=True):
        assert vector.dtype == np.float32
        np.testing.assert_allclose(vector[:size], features(place), atol=1e-6)
        np.testing.assert_array_equal(vector[size:], np.eye(LABELS)[label])
    agent = PPO("MlpPolicy", env, n_steps=16, batch_size=16, n_epochs=1, device="cpu")
    agent.learn(32, callback=env.learner())
    assert model.updates > 0


def test_inputs_of_large_images_and_odd_settings_are_refused():
    picture = spaces.Box(0, 255, (32, 32, 3), np.uint8)
    env = Scripted()
    env.observation_space = picture
    with pytest.raises(ValueError, match="vectors and small images"):
        Rewarded(dummy([env]), model_for(picture), observe="inputs")
    with pytest.raises(ValueError, match="observe must be one of raw, inputs"):
        Rewarded(dummy(two()), model_for(), observe="feelings")
    with pytest.raises(ValueError, match="does not go with `see`"):
        Rewarded(dummy(two()), model_for(), see=lambda x: x, observe="inputs")


# --- predictions ---


def test_ap_gym_gets_what_is_believed_as_its_prediction():
    inner = perceive("ap_gym:CircleSquare-v0", num_envs=3)
    venv = GymnasiumVecEnv(inner)
    model = RewardModel(venv.observation_space, labels=2)
    env = Rewarded(VecMonitor(venv), model)
    env.seed(0)
    env.reset()
    for _ in range(17):
        believed = env.collector.log_probs
        _, _, dones, infos = env.step(np.random.default_rng(0).uniform(-1, 1, (3, 2)))
        np.testing.assert_allclose(inner.predictions, believed, atol=1e-6)
        if dones.all():
            right = believed.argmax(axis=1) == [info["label"] for info in infos]
            np.testing.assert_array_equal(right, [info["final_accuracy"] for info in infos])
    assert model.episodes == 3


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_labels_of_perceived_environments(mode):
    envs = two(tells="steps")
    vector = SyncVectorEnv([lambda env=env: env for env in envs], autoreset_mode=mode)
    model = model_for(pay="differences")
    env = Rewarded(GymnasiumVecEnv(perceive(vector, label="deep.label")), model)
    assert env.predict is None  # nobody asks
    paid, _ = rolled_out(env, 23)
    require_played(model, envs, [episodes_within(env, 23) for env in envs])
    require_paid(model, envs, paid)


# --- bad input ---


@pytest.mark.parametrize(
    "space",
    [spaces.Dict(a=CONTINUOUS, b=CONTINUOUS), spaces.Tuple((CONTINUOUS, CONTINUOUS))],
)
def test_actions_that_no_agent_can_do(space):
    with pytest.raises(ValueError, match="no agent can act in") as caught:
        Rewarded(dummy([Scripted(action_space=space)]), model_for())
    assert "\n" not in str(caught.value)


def test_actions_with_predictions_point_to_perceive():
    space = spaces.Dict(action=CONTINUOUS, prediction=CONTINUOUS)
    with pytest.raises(ValueError, match=r"irrl\.envs\.perceive"):
        Rewarded(dummy([Scripted(action_space=space)]), model_for())


@pytest.mark.parametrize(
    ("label", "said"),
    [(LABELS, "out of range"), (-1, "out of range"), (0.5, "whole number"), (True, "whole number")],
)
def test_a_wrong_label_is_one_line(label, said):
    env = Scripted(script=(Scene(2, True, label),))
    with pytest.raises(ValueError, match=said) as caught:
        rolled_out(Rewarded(dummy([env]), model_for()), 3)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("pay", PAYS)
def test_no_label_at_all_names_the_environment(pay):
    envs = [Scripted(0), Scripted(1, tells="never")]
    with pytest.raises(ValueError, match="environment 1 told no label"):
        rolled_out(Rewarded(dummy(envs), model_for(pay=pay)), 5)


def test_resets_with_the_next_step_need_environments_that_end_together():
    inner = perceive("ap_gym:CircleSquare-v0", num_envs=2)
    venv = GymnasiumVecEnv(inner)
    venv.reset()
    shown = inner.observation_space.sample()
    some = np.array([True, False])
    inner.step = lambda actions: (shown, np.zeros(2), some, np.zeros(2, bool), {})
    with pytest.raises(ValueError, match=r"AutoresetMode\.SAME_STEP"):
        venv.step(np.zeros((2, 2), np.float32))


def test_options_that_differ_reach_environments_that_are_stepped_together():
    assert join_options([{}, {}]) is None
    same = {"where": [1, 2]}
    assert join_options([same, same]) == {"where": [1, 2]}
    assert join_options([{"code": 3}, {"code": 1}])["code"].tolist() == [3, 1]
    with pytest.raises(UserError, match="must have the same names"):
        join_options([{"code": 3}, {}])
