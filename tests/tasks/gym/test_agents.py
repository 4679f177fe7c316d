import numpy as np
import pytest
import torch

from irrl.errors import UserError
from irrl.runs.checkpoint import Checkpoint
from irrl.tasks import create_run, make_config
from irrl.tasks.gym import agents
from irrl.tasks.gym.learner import prepare
from irrl.tasks.gym.train import learn_once, train
from tests.tasks.gym import own

SMALL = {"envs": 4, "learning_starts": 20, "rollout": 8, "gradient_steps": 2}
KINDS = {
    "ppo": {}, "a2c": {}, "recurrent-ppo": {"widths": "8"}, "sac": {}, "td3": {},
    "dqn": {"env": f"{own.__name__}:Doors-v0", "mode": "labels", "labels": 2, "judge": "final"},
}  # fmt: skip


def learned(agent, **settings):
    config = make_config("gym", "smoke", agent=agent, **SMALL, **KINDS[agent], **settings)
    learner = prepare(config, None)
    learner.begin_segment()
    for _ in range(8):
        learn_once(learner)
    return config, learner


@pytest.mark.parametrize("agent", KINDS)
def test_an_agent_comes_back_as_it_was(agent):
    config, learner = learned(agent)
    arrays, counts = agents.to_arrays(learner.agent), agents.counters(learner.agent)
    other = prepare(config, None).agent
    agents.restore(other, {name: array.copy() for name, array in arrays.items()}, counts)
    again = agents.to_arrays(other)
    assert set(again) == set(arrays) and agents.counters(other) == counts
    for name, array in arrays.items():
        np.testing.assert_array_equal(again[name], array, err_msg=name)
    assert counts["num_timesteps"] == 8 * 8 * 4
    assert any("optimizer" in name for name in arrays)
    assert any(name.startswith("replay.") for name in arrays) == config.has_replay


@pytest.mark.parametrize("agent", ["ppo", "a2c", "recurrent-ppo"])
def test_values_whose_loss_has_no_weight_stay_as_they_are(agent):
    for weight, moved in ((0.5, True), (0.0, False)):
        config, learner = learned(agent, value_coef=weight)
        first = prepare(config, None).agent.policy.value_net.weight
        assert torch.equal(learner.agent.policy.value_net.weight, first) != moved


def test_what_does_not_fit_is_refused():
    config, learner = learned("ppo")
    arrays, counts = agents.to_arrays(learner.agent), agents.counters(learner.agent)
    fresh = prepare(config, None).agent
    name = next(n for n in arrays if n.startswith("policy.optimizer.0.exp_avg"))
    weights = "policy.log_std"
    for broken, said in (
        ({**arrays, name: np.zeros(3, np.float32)}, "optimizer.0"),
        ({**arrays, weights: np.zeros(7, np.float32)}, "policy.log_std has shape"),
        ({n: a for n, a in arrays.items() if n != weights}, "has no policy.log_std"),
        ({**arrays, "policy.optimizer.999.step": np.zeros(())}, "optimizer.999"),
        ({**arrays, "policy.optimizer.x": np.zeros(())}, "optimizer.x"),
        ({**arrays, name: np.zeros((), np.float32)}, "optimizer.0"),  # was taken for a scalar
        ({**arrays, name: arrays[name].astype(np.float64)}, "expected torch.float32"),
        ({**arrays, name: np.full_like(arrays[name], np.inf)}, "must be finite"),
        ({n: a for n, a in arrays.items() if n != name}, f"has no {name}"),
        ({**arrays, "policy.optimizer.0.step": np.zeros(2)}, "no count of steps"),
        ({**arrays, "policy.optimizer.0.step": np.array(-1.0)}, "no count of steps"),
        ({**arrays, "policy.optimizer.0.more": np.zeros(())}, "it has policy.optimizer.0.more"),
        ({**arrays, "policy.more": np.zeros(())}, "it has policy.more"),
        ({**arrays, weights: np.full_like(arrays[weights], np.nan)}, "finite numbers"),
    ):
        with pytest.raises(UserError, match=said):
            agents.restore(fresh, broken, counts)
    for count in ({}, {**counts, "num_timesteps": -1}, {**counts, "num_timesteps": True}, []):
        with pytest.raises(UserError, match="does not know the agent's num_timesteps"):
            agents.restore(fresh, arrays, count)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("log_ent_coef", np.zeros(2, np.float32)),
        ("log_ent_coef", np.full(1, np.inf, np.float32)),
        ("replay.place", np.zeros(3, np.int64)),
        ("replay.place", np.array([np.inf] * 4)),
        ("replay.place", np.array(3)),
        ("replay.labels", None),
    ],
)
def test_a_replay_buffer_that_does_not_fit_is_refused(name, value):
    config, learner = learned("sac")
    arrays, counts = agents.to_arrays(learner.agent), agents.counters(learner.agent)
    broken = {**arrays, name: arrays[name] + 99 if value is None else value}
    with pytest.raises(UserError, match=r"damaged|expected"):
        agents.restore(prepare(config, None).agent, broken, counts)


@pytest.mark.parametrize(
    "change",
    [
        {"segment": -2}, {"segment": "1"}, {"segment": 10**40}, {"since": []}, {"cpu_seconds": "1"},
        {"since": {"discriminator_loss": "low"}}, {"agent": None}, {"reward_model": []},
    ],
)  # fmt: skip
def test_a_state_that_cannot_be_is_refused(change):
    config, learner = learned("ppo")
    arrays, state = learner.to_checkpoint()
    assert prepare(config, Checkpoint(learner.step, arrays, state)).step == learner.step
    with pytest.raises(UserError, match="damaged"):
        prepare(config, Checkpoint(learner.step, arrays, {**state, **change}))
    with pytest.raises(UserError, match="how far it came"):
        prepare(config, Checkpoint(learner.step + 1, arrays, state))


def test_the_step_size_falls_over_the_whole_run():
    config = make_config("gym", "smoke", schedule="cosine", learning_rate=0.5)
    agent = prepare(config, None).agent
    agent.num_timesteps = config.steps // 2
    assert agent.lr_schedule(0.9) == pytest.approx(0.25)
    agent.num_timesteps = config.steps
    assert agent.lr_schedule(0.9) == pytest.approx(0.0)


def test_networks_do_not_depend_on_what_was_drawn_before():
    config = make_config("gym", "smoke")
    torch.manual_seed(1)
    first = agents.to_arrays(prepare(config, None).agent)
    torch.manual_seed(2)
    second = agents.to_arrays(prepare(config, None).agent)
    assert all(np.array_equal(first[name], second[name]) for name in first)


def test_a_policy_that_diverged_is_told_in_one_line(tmp_path):
    config = make_config("gym", "smoke", **SMALL)
    learner = prepare(config, None)
    with torch.no_grad():
        learner.agent.policy.action_net.weight.fill_(torch.nan)
    learner.observed = 0  # where a checkpoint is due, numbers are looked at before
    with pytest.raises(UserError, match=r"^training diverged before step 0: the policy gives no"):
        train(create_run(tmp_path / "run", config), learner)


def test_codes_act_apart_from_the_start_where_the_last_layer_is_large():
    def apart(**settings):
        learner = prepare(make_config("gym", "smoke", **settings), None)
        shape = learner.envs.observation_space["observation"].shape
        seen = {"observation": np.zeros((4, *shape), np.float32), "code": np.eye(4)}
        actions, _ = learner.agent.predict(seen, deterministic=True)
        return np.ptp(actions, axis=0).max()

    usual = apart()
    assert 0 < usual < 0.05
    assert apart(action_gain=1.0) == pytest.approx(100 * usual, rel=1e-3)
