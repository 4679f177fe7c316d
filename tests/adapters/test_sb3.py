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
    DummyVecEnv,
    SubprocVecEnv,
    VecFrameStack,
    VecMonitor,
    VecNormalize,
    VecTransposeImage,
)

from irrl.adapters.sb3 import Rewarded
from irrl.adapters.sb3_replay import replay
from irrl.adapters.sb3_vector import GymnasiumVecEnv, join_options
from irrl.envs import Skills, perceive
from irrl.errors import UserError
from irrl.reward_model import RewardModel
from tests.adapters.worlds import (
    BOX,
    CONTINUOUS,
    LABELS,
    SCRIPT,
    Scene,
    Scripted,
    episodes_within,
    model_for,
    played,
    require_played,
)

PAYS = ("end", "differences", "steps")


def two(**options):
    return [Scripted(0, **options), Scripted(1, SCRIPT[1:], **options)]


def dummy(envs):
    return DummyVecEnv([lambda env=env: env for env in envs])


def actions_of(env):
    return np.zeros((env.num_envs, *env.action_space.shape), env.action_space.dtype)


def rolled_out(env, steps):
    """Rewards of each environment, episode by episode, and all infos."""
    env.reset()
    paid, infos = [[[]] for _ in range(env.num_envs)], []
    for _ in range(steps):
        _, rewards, dones, info = env.step(actions_of(env))
        infos.append(info)
        for n in range(env.num_envs):
            paid[n][-1].append(rewards[n])
            if dones[n]:
                paid[n].append([])
    return paid, infos


def require_paid(model, envs, paid):
    for env, episodes in zip(envs, paid, strict=True):
        for number, rewards in enumerate(episodes):
            expected = model.rewards(*played(env, number))[: len(rewards)]
            np.testing.assert_allclose(rewards, expected, atol=1e-5)


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
