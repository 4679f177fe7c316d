"""RLlib's env runner and learners, without a cluster: rewards are those of the reward model."""

import itertools

import numpy as np
import pytest

pytest.importorskip("ray.rllib")

from ray.rllib.algorithms.appo import APPOConfig
from ray.rllib.algorithms.dqn import DQNConfig
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.core.learner.training_data import TrainingData
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.tune.registry import register_env

from irrl.adapters.rllib import STATE, rewarded
from irrl.adapters.rllib_rows import END, STEP, of_columns
from irrl.errors import UserError
from tests.adapters.worlds import BOX, LABELS, SCRIPT, Scripted, model_for, played

ENVS, STEPS = 2, 7
MODEL = {"reward": "linear", "width": 8, "frequencies": 1, "seed": 3}


@pytest.fixture
def env_name():
    numbers = itertools.count(-1)  # RLlib makes one more, to look at
    register_env("scripted", lambda _: Scripted(next(numbers) % ENVS))
    return "scripted"


def config_of(kind, env_name, whole=False, lstm=False):
    network = DefaultModelConfig(fcnet_hiddens=[4], use_lstm=lstm, lstm_cell_size=4, max_seq_len=3)
    return (
        kind()
        .environment(env_name)
        .env_runners(
            num_env_runners=0,
            num_envs_per_env_runner=ENVS,
            rollout_fragment_length=STEPS,
            batch_mode="complete_episodes" if whole else "truncate_episodes",
        )
        .learners(num_learners=0)
        .rl_module(model_config=network)
        .training(minibatch_size=None)
    )


def batches(config, count=3):
    """Batches of a learner as it reads them, with their rewards in place."""
    runner = SingleAgentEnvRunner(config=config)
    learner = config.build_learner(env=runner.env)
    for _ in range(count):
        pieces = runner.sample()
        batch = learner._make_batch_if_necessary(TrainingData(episodes=pieces))
        yield learner, batch.policy_batches[DEFAULT_MODULE_ID]
    runner.stop()
    learner.shutdown()


def expected_reward(model, place):
    number, episode, taken, _ = (int(x) for x in place)
    whole, label = played(Scripted(number), episode)
    return model.rewards(whole, label)[taken]


@pytest.mark.parametrize("lstm", [False, True], ids=["flat", "lstm"])
@pytest.mark.parametrize(
    ("judge", "how"),
    [("final", "end"), ("state", "steps"), ("final", "differences"), ("trajectory", "differences")],
)
def test_appo_pays_what_the_reward_model_does(env_name, judge, how, lstm):
    whole = judge == "trajectory"
    settings = {**MODEL, "judge": judge, "pay": how, "varying_length": True}
    config = rewarded(config_of(APPOConfig, env_name, whole, lstm), BOX, LABELS, **settings)
    model = model_for(**settings)
    seen_steps = ends = 0
    for learner, columns in batches(config):
        rows, slots = of_columns(columns)
        for _ in range(2):  # a batch that is replayed is paid anew
            learner.pay(columns)
        paid = columns[Columns.REWARDS].numpy()
        assert (paid[~slots] == 0).all()
        for reward, kind, place in zip(paid[slots], rows.kinds, rows.seen["observation"],
                                       strict=True):  # fmt: skip
            wanted = expected_reward(model, place) if kind == STEP else 0.0
            assert reward == pytest.approx(wanted, abs=1e-6)
            seen_steps, ends = seen_steps + (kind == STEP), ends + (kind == END)
        terminated = columns[Columns.TERMINATEDS].numpy()[slots]
        last = np.roll(rows.kinds == END, -1) & (rows.kinds == STEP)
        if how != "steps":  # then a time limit is a reason to bootstrap
            assert (terminated == last).all()
        mask = columns[Columns.LOSS_MASK].numpy()
        assert (mask[slots] == (rows.kinds == STEP)).all()
    assert seen_steps >= 2 * STEPS and ends >= 6
    if judge != "state":
        assert learner.reward_model.episodes == ends


@pytest.mark.parametrize(("judge", "how"), [("final", "end"), ("trajectory", "steps")])
def test_ppo_has_the_same_rewards_before_advantages(env_name, judge, how, monkeypatch):
    whole = judge == "trajectory"
    settings = {**MODEL, "judge": judge, "pay": how, "varying_length": True}
    config = rewarded(config_of(PPOConfig, env_name, whole), BOX, LABELS, **settings)
    config.training(gamma=0.0, lambda_=0.0)  # value targets are rewards
    model = model_for(**settings)
    for learner, columns in batches(config):  # noqa: B007
        paid = columns[Columns.REWARDS].numpy()
        mask = columns[Columns.LOSS_MASK].numpy()
        wanted = [expected_reward(model, place) for place in columns[Columns.OBS].numpy()[mask]]
        np.testing.assert_allclose(paid[mask], wanted, atol=1e-6)
        np.testing.assert_allclose(columns["value_targets"].numpy()[mask], wanted, atol=1e-5)
        assert not any(name.startswith("irrl.") for name in columns)
    assert learner.reward_model.episodes >= 6


@pytest.mark.parametrize("tells", ["reset", "end"])
def test_labels_are_found_wherever_they_are_told(tells):
    register_env("tells", lambda _: Scripted(0, tells=tells))
    config = config_of(APPOConfig, "tells")
    config = rewarded(config, BOX, LABELS, label="deep.label", judge="final", **MODEL)
    for learner, columns in batches(config):  # noqa: B007
        rows, _ = of_columns(columns)
        ended = rows.kinds == END
        assert (rows.labels[ended] == rows.seen["observation"][ended, 3]).all()
    assert learner.reward_model.episodes > 0


def test_a_learner_learns_logs_and_is_saved_with_its_reward_model(env_name):
    config = rewarded(config_of(PPOConfig, env_name), BOX, LABELS, judge="final", **MODEL)
    config.training(num_epochs=1)
    runner = SingleAgentEnvRunner(config=config)
    learner = config.build_learner(env=runner.env)
    before = learner.reward_model.discriminator.to_arrays()
    for _ in range(4):
        learner.update(training_data=TrainingData(episodes=runner.sample()))
    found = learner.metrics.peek(STATE)
    assert {"discriminator_loss", "n_skills", "discriminator_accuracy_percent"} <= set(found)
    after = learner.reward_model.discriminator.to_arrays()
    assert any((before[name] != after[name]).any() for name in before)
    state = learner.get_state()
    assert STATE not in learner.get_state(components="rl_module")
    other = config.copy(copy_frozen=False).build_learner(env=runner.env)
    other.set_state(state)
    assert other.reward_model.episodes == learner.reward_model.episodes > 0
    for name, array in other.reward_model.discriminator.to_arrays().items():
        np.testing.assert_array_equal(array, after[name])


def test_environments_of_runners_have_seeds_of_their_own(env_name):
    config = rewarded(config_of(PPOConfig, env_name, whole=True), BOX, LABELS, **MODEL)
    config.debugging(seed=5)
    one, two = (SingleAgentEnvRunner(config=config, worker_index=n) for n in (1, 2))
    assert abs(one._seed - two._seed) > 1000
    one.sample()
    assert one._seed is None  # else every batch of whole episodes would have the same labels


def test_what_rllib_cannot_carry_is_refused_in_one_line(env_name):
    def refused(config, **settings):
        with pytest.raises(UserError) as error:
            rewarded(config, BOX, LABELS, **{**MODEL, **settings})
        assert "\n" not in str(error.value)
        return str(error.value)

    assert "PPO and APPO" in refused(DQNConfig())
    assert "complete_episodes" in refused(config_of(PPOConfig, env_name), judge="trajectory")
    assert "num_learners=2" in refused(config_of(PPOConfig, env_name).learners(num_learners=2))
    assert "minibatch_size" in refused(
        config_of(APPOConfig, env_name, whole=True).training(minibatch_size=10), judge="trajectory"
    )
    several = config_of(PPOConfig, env_name).multi_agent(
        policies={"a", "b"}, policy_mapping_fn=lambda *_: "a"
    )
    assert "one agent" in refused(several)


def test_lengths_that_differ_are_not_paid_by_the_step(env_name):
    config = rewarded(config_of(APPOConfig, env_name), BOX, LABELS, judge="state", pay="steps",
                      **MODEL)  # fmt: skip
    assert len({scene.steps for scene in SCRIPT}) > 1
    with pytest.raises(UserError, match="dawdling"):
        list(batches(config))


def test_what_fails_in_the_learners_thread_is_told(env_name, local_ray):
    config = rewarded(config_of(APPOConfig, env_name), BOX, LABELS, judge="final", **MODEL)
    runner = SingleAgentEnvRunner(config=config)
    learner = config.build_learner(env=runner.env)

    def diverge(*_):
        raise UserError("the discriminator diverged")

    learner.reward_model.potential = diverge
    with pytest.raises(UserError, match="diverged"):
        for _ in range(4):
            learner.update(TrainingData(episodes=runner.sample()), timesteps={})
    learner.shutdown()
