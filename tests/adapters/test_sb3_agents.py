"""Real agents: the same seed gives the same weights, whether they are evaluated or not."""

import copy

import numpy as np
import pytest
import torch
from sb3_contrib import RecurrentPPO
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv

from irrl.adapters.sb3 import Rewarded
from irrl.adapters.sb3_replay import replay
from irrl.envs import Skills
from tests.adapters.worlds import BOX, CONTINUOUS, LABELS, Remembering, Scripted

NET = {"net_arch": [8]}
ON = {"policy_kwargs": NET, "device": "cpu", "seed": 5}
OFF = ON | {"learning_starts": 20, "batch_size": 16, "train_freq": 4}
AGENTS = {
    "ppo": (PPO, "MultiInputPolicy", ON | {"n_steps": 20, "batch_size": 20, "n_epochs": 2}),
    "a2c": (A2C, "MultiInputPolicy", ON),
    "recurrent-ppo": (
        RecurrentPPO,
        "MultiInputLstmPolicy",
        ON | {"n_steps": 20, "batch_size": 20, "n_epochs": 1}
        | {"policy_kwargs": {**NET, "lstm_hidden_size": 8}},
    ),
    "dqn": (DQN, "MultiInputPolicy", OFF),
    "sac": (SAC, "MultiInputPolicy", OFF),
    "td3": (TD3, "MultiInputPolicy", OFF),
}  # fmt: skip


def environments(name, model, training=True):
    actions = None if name == "dqn" else CONTINUOUS
    made = [lambda: Skills(Scripted(action_space=actions, tells="never"), LABELS)] * 2
    return Rewarded(DummyVecEnv(made), model, training=training)


class Evaluate(BaseCallback):
    """Every so often, in environments and with generators of its own."""

    def __init__(self, name, model):
        super().__init__()
        self.evaluated, self.name = environments(name, model, training=False), name
        self.found = []

    def _on_step(self):
        if self.n_calls % 7:
            return True
        state, space = np.random.get_state(), self.model.action_space
        self.model.action_space = copy.deepcopy(space)  # from which DQN draws when it explores
        with torch.random.fork_rng():
            torch.manual_seed(0)
            np.random.seed(0)
            observations, memory = self.evaluated.reset(), None
            for _ in range(12):
                actions, memory = self.model.predict(observations, memory)
                observations, rewards, _, _ = self.evaluated.step(actions)
                self.found.append(rewards)
        np.random.set_state(state)
        self.model.action_space = space
        return True


def weights_after(name, evaluates=False, seed=5):
    agent_class, policy, options = copy.deepcopy(AGENTS[name])
    model = Remembering(
        BOX, LABELS, mode="skills", width=8, batch_size=8, reward="linear", seed=seed
    )
    env = environments(name, model)
    off_policy = replay(env) if name in ("dqn", "sac", "td3") else {}
    agent = agent_class(policy, env, **options | {"seed": seed}, **off_policy)
    callbacks = [env.learner(), *([Evaluate(name, model)] if evaluates else [])]
    agent.learn(240, callback=callbacks)
    assert model.updates > 5
    if evaluates:
        assert np.abs(callbacks[1].found).max() > 0
    weights = [*agent.policy.state_dict().values(), *model.discriminator.state_dict().values()]
    return torch.cat([w.double().ravel() for w in weights]).numpy(), model.episodes


@pytest.mark.parametrize("name", AGENTS)
def test_same_seed_same_weights_with_evaluation_or_without(name):
    once, episodes = weights_after(name)
    assert np.isfinite(once).all() and episodes > 40
    for evaluates in (False, True):
        again, episodes_again = weights_after(name, evaluates)
        assert episodes_again == episodes
        np.testing.assert_array_equal(again, once)


def test_another_seed_gives_other_weights():
    assert not np.array_equal(weights_after("ppo")[0], weights_after("ppo", seed=6)[0])


def test_the_discriminator_learns_by_whole_batches():
    # An agent that updates after every few steps does not make it learn the more.
    model = Remembering(BOX, LABELS, mode="skills", width=8, batch_size=64, samples_per_episode=8)
    env = environments("a2c", model)
    A2C("MultiInputPolicy", env, **copy.deepcopy(ON)).learn(400, callback=env.learner())
    assert model.updates <= 1 + model.episodes * 8 / 64
    assert model.updates > 0.5 * model.episodes * 8 / 64


def test_loss_and_health_are_logged():
    model = Remembering(BOX, LABELS, mode="skills", width=8, batch_size=8)
    env = environments("ppo", model)
    agent_class, policy, options = copy.deepcopy(AGENTS["ppo"])
    agent = agent_class(policy, env, **options)
    logged = {}

    class Keep(BaseCallback):
        def _on_step(self):
            logged.update(self.logger.name_to_value)
            return True

    agent.learn(400, callback=[env.learner(health_every=2), Keep()])
    assert np.isfinite(logged["reward_model/discriminator_loss"])
    assert logged["reward_model/n_skills"] > 0
