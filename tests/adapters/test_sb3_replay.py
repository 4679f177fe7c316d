"""A replay buffer that pays each transition what the discriminator of now finds it worth."""

import copy
import io
import pickle
import zipfile

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3 import DQN, SAC, TD3
from stable_baselines3.common.buffers import NStepReplayBuffer, ReplayBuffer
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize

from irrl.adapters.sb3 import Rewarded
from irrl.adapters.sb3_replay import DictRelabellingBuffer, RelabellingBuffer, replay
from irrl.envs import Skills
from tests.adapters.worlds import BOX, CONTINUOUS, LABELS, SCRIPT, Scripted, model_for, played

KINDS = [(j, p) for j in ("state", "final") for p in ("end", "differences", "steps")]
KINDS.remove(("final", "steps"))


def small():
    return {
        "learning_starts": 8,
        "batch_size": 8,
        "device": "cpu",
        "policy_kwargs": {"net_arch": [8]},
    }


def rewarded(judge="state", pay="end", named=False, action_space=None, **options):
    envs = [Scripted(n, SCRIPT[n:], named, action_space=action_space) for n in range(2)]
    model = model_for(envs[0], judge=judge, pay=pay, batch_size=4, samples_per_episode=2, **options)
    return Rewarded(DummyVecEnv([lambda env=env: env for env in envs]), model)


def trained(agent_class, env, steps=40, policy="MlpPolicy", **options):
    agent = agent_class(policy, env, **small(), **options, **replay(env))
    return agent.learn(steps, callback=env.learner() if isinstance(env, Rewarded) else None)


def place_of(buffer, row, n):
    where = buffer.next_observations
    return (where["place"] if isinstance(where, dict) else where)[row, n]


def require_relabelled(buffer, envs, model):
    """Each transition is paid what the reward model pays for that step of the whole episode."""
    rows, columns = (x.ravel() for x in np.indices((buffer.size(), buffer.n_envs)))
    rewards = buffer.relabelled(rows, columns)
    for row, n, reward in zip(rows, columns, rewards, strict=True):
        number, episode, taken, label = place_of(buffer, row, n).astype(int)
        assert (number, label) == (n, buffer.labels[row, n])
        expected = model.rewards(*played(envs[n], episode))[taken - 1]
        np.testing.assert_allclose(reward, expected, atol=1e-5)
    return rewards


@pytest.mark.parametrize(("judge", "pay"), KINDS)
@pytest.mark.parametrize("named", [False, True])
def test_rewards_are_those_of_the_discriminator_of_now(judge, pay, named):
    env = rewarded(judge, pay, named)
    policy = "MultiInputPolicy" if named else "MlpPolicy"
    # A small ring: it has gone round, and cuts episodes where it begins.
    agent = trained(DQN, env, 60, policy, buffer_size=22)
    buffer = agent.replay_buffer
    assert type(buffer) is (DictRelabellingBuffer if named else RelabellingBuffer)
    assert buffer.full and buffer.pos
    before = require_relabelled(buffer, env.base.envs, env.model)
    for _ in range(3):
        env.model.add(*played(env.base.envs[0], 0))
        assert env.model.learn()
    after = require_relabelled(buffer, env.base.envs, env.model)
    assert np.abs(after - before).max() > 1e-4


def test_samples_are_relabelled_and_otherwise_those_of_stable_baselines():
    env = rewarded(pay="differences")
    buffer = trained(DQN, env, 40, buffer_size=100).replay_buffer
    buffer.rewards[:] = 99.0  # stale
    np.random.seed(3)
    samples = buffer.sample(16)
    plain = ReplayBuffer(100, BOX, spaces.Discrete(3), "cpu", n_envs=2)
    for name in ("observations", "next_observations", "actions", "dones", "timeouts", "rewards"):
        setattr(plain, name, getattr(buffer, name).copy())
    plain.pos, plain.full = buffer.pos, buffer.full
    np.random.seed(3)
    expected = plain.sample(16)
    for name in ("observations", "actions", "next_observations", "dones"):
        np.testing.assert_array_equal(getattr(samples, name), getattr(expected, name))
    for place, reward in zip(samples.next_observations.numpy(), samples.rewards, strict=True):
        number, episode, taken, _ = place.astype(int)
        paid = env.model.rewards(*played(env.base.envs[number], episode))[taken - 1]
        np.testing.assert_allclose(float(reward), paid, atol=1e-5)


def test_an_end_is_a_termination_in_the_buffer_too():
    for pay in ("end", "steps"):
        buffer = trained(DQN, rewarded(pay=pay)).replay_buffer
        assert buffer.dones.any()
        assert buffer.timeouts.any() == (pay == "steps")


@pytest.mark.parametrize("agent_class", [SAC, TD3])
@pytest.mark.parametrize("named", [False, True])
def test_continuous_agents(agent_class, named):
    env = rewarded("final", "differences", named, CONTINUOUS)
    agent = trained(agent_class, env, 60, "MultiInputPolicy" if named else "MlpPolicy")
    require_relabelled(agent.replay_buffer, env.base.envs, env.model)
    assert env.model.updates > 1


def test_skills_are_judged_without_their_code():
    venv = DummyVecEnv([lambda: Skills(Scripted(tells="never"), LABELS)] * 2)
    env = Rewarded(venv, model_for(BOX, mode="skills", judge="final"))
    agent = trained(DQN, env, 40, "MultiInputPolicy")
    assert set(agent.replay_buffer.judged) == {"observation"}
    codes = agent.replay_buffer.observations["code"][: agent.replay_buffer.pos]
    labels = agent.replay_buffer.labels[: agent.replay_buffer.pos]
    np.testing.assert_array_equal(codes.argmax(axis=-1), labels)


def test_wrappers_around_it():
    inner = rewarded(pay="steps")
    env = VecNormalize(VecMonitor(inner))
    agent = trained(DQN, env, 40)
    buffer = agent.replay_buffer
    np.random.seed(0)
    samples = buffer.sample(32, env)
    places = env.unnormalize_obs(samples.next_observations.numpy()).round().astype(int)
    for (number, episode, taken, _), reward in zip(places, samples.rewards, strict=True):
        plain = inner.model.rewards(*played(inner.base.envs[number], episode))[taken - 1]
        expected = env.normalize_reward(np.array([plain]))
        np.testing.assert_allclose(float(reward), expected[0], atol=1e-4)


def test_nothing_is_paid_before_the_warm_up_is_over():
    env = rewarded(pay="steps", warm_up=1_000)
    buffer = trained(DQN, env).replay_buffer
    assert not buffer.relabelled(np.arange(20), np.zeros(20, int)).any()


# --- copies and files ---


def test_copies_and_files_do_not_hold_the_reward_model(tmp_path):
    env = rewarded()
    agent = trained(DQN, env)
    link = agent.replay_buffer.link
    assert copy.deepcopy(agent.replay_buffer_kwargs)["link"] is link
    agent.save(tmp_path / "agent.zip")
    with zipfile.ZipFile(tmp_path / "agent.zip") as saved:
        assert b"Remembering" not in saved.read("data")
    loaded = DQN.load(tmp_path / "agent.zip", device="cpu")
    loaded.predict(env.reset())
    loaded.set_env(env)
    with pytest.raises(ValueError, match="comes from a file, without a reward model") as caught:
        loaded.learn(8, callback=env.learner())
    assert "\n" not in str(caught.value)
    again = DQN.load(tmp_path / "agent.zip", env=env, device="cpu", **replay(env))
    again.learn(20, callback=env.learner(), reset_num_timesteps=False)
    assert again.replay_buffer.link.env is env


def test_a_buffer_from_a_file_can_be_linked_again():
    agent = trained(DQN, rewarded())
    file = io.BytesIO()
    pickle.dump(agent.replay_buffer, file)
    assert b"Remembering" not in file.getvalue()
    buffer = pickle.loads(file.getvalue())
    buffer.link.env = agent.replay_buffer.link.env
    rows, envs = np.arange(10), np.zeros(10, int)
    expected = agent.replay_buffer.relabelled(rows, envs)
    np.testing.assert_array_equal(buffer.relabelled(rows, envs), expected)


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("size", [22, 100])
def test_to_arrays_and_back(named, size):
    env = rewarded("state", "differences", named)
    policy = "MultiInputPolicy" if named else "MlpPolicy"
    buffer = trained(DQN, env, 40, policy, buffer_size=size).replay_buffer
    arrays = {name: np.array(array) for name, array in buffer.to_arrays().items()}
    assert all(array.dtype != object for array in arrays.values())
    fresh = DQN(policy, env, **small(), buffer_size=size, **replay(env)).replay_buffer
    fresh.restore(arrays)
    assert (fresh.pos, fresh.full) == (buffer.pos, buffer.full)
    for name, array in fresh.to_arrays().items():
        np.testing.assert_array_equal(array, arrays[name])
        assert array.dtype == arrays[name].dtype
    for each in (buffer, fresh):
        np.random.seed(1)
        each.drawn = each.sample(32)
    np.testing.assert_array_equal(buffer.drawn.rewards, fresh.drawn.rewards)
    np.testing.assert_array_equal(buffer.drawn.actions, fresh.drawn.actions)


def test_arrays_of_another_buffer_are_refused():
    env = rewarded()
    buffer = trained(DQN, env, 16, buffer_size=40).replay_buffer
    arrays = buffer.to_arrays()
    other = DQN("MlpPolicy", env, **small(), buffer_size=60, **replay(env)).replay_buffer
    with pytest.raises(ValueError, match="does not fit one of 30 of 2"):
        other.restore(arrays)
    with pytest.raises(ValueError, match="'labels' is missing"):
        buffer.restore({name: a for name, a in arrays.items() if name != "labels"})
    with pytest.raises(ValueError, match="'actions' does not fit"):
        buffer.restore({**arrays, "actions": arrays["actions"].astype(np.float32)})
    pos, _, size, n_envs = arrays["place"]
    for place in ([size, 0, size, n_envs], [-1, 1, size, n_envs], [pos, 2, size, n_envs], [pos]):
        with pytest.raises(ValueError, match="place"):
            buffer.restore({**arrays, "place": np.array(place)})
    with pytest.raises(ValueError, match="out of range"):
        buffer.restore({**arrays, "labels": arrays["labels"] + 99})
    with pytest.raises(ValueError, match="'rewards' must be finite"):
        buffer.restore({**arrays, "rewards": np.full_like(arrays["rewards"], np.inf)})


# --- what is refused ---


def test_a_judge_of_trajectories_is_refused():
    with pytest.raises(ValueError, match="holds transitions, not trajectories") as caught:
        replay(rewarded("trajectory"))
    assert "\n" not in str(caught.value)


def test_environments_without_a_reward_model_are_refused():
    with pytest.raises(ValueError, match="replay needs environments in"):
        replay(DummyVecEnv([Scripted]))


@pytest.mark.filterwarnings("ignore:.*n_steps=3:UserWarning")
def test_n_step_returns_are_refused():
    env = rewarded()
    with pytest.raises(ValueError, match="take n_steps=1") as caught:
        trained(DQN, env, n_steps=3)
    assert "\n" not in str(caught.value)
    settings = replay(env)
    settings["replay_buffer_kwargs"] |= {"n_steps": 3, "gamma": 0.9}
    with pytest.raises(ValueError, match="an n-step buffer adds up rewards"):
        DQN("MlpPolicy", env, **small(), **settings)
    stock = DQN("MlpPolicy", env, **small(), replay_buffer_class=NStepReplayBuffer)
    with pytest.raises(ValueError, match="an n-step buffer adds up rewards"):
        stock.learn(10, callback=env.learner())


def test_saving_memory_is_refused():
    env = rewarded()
    settings = replay(env)
    settings["replay_buffer_kwargs"]["handle_timeout_termination"] = False
    with pytest.raises(ValueError, match="optimize_memory_usage does not go with relabelling"):
        DQN("MlpPolicy", env, **small(), optimize_memory_usage=True, **settings)


def test_a_stock_buffer_would_go_stale_and_is_refused():
    env = rewarded()
    with pytest.raises(ValueError, match="go stale while the discriminator learns") as caught:
        DQN("MlpPolicy", env, **small()).learn(10, callback=env.learner())
    assert "\n" not in str(caught.value)
