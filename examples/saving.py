"""Saving and loading: the agent with its own file, the reward model with its own.

A reward model is one file of safetensors with JSON in its header: loading it executes no code.
What is loaded goes on learning where it was, and can pay another agent as an oracle.

python examples/saving.py [STEPS]
"""

import sys

import gymnasium
import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

import irrl
from irrl.adapters.sb3 import Rewarded

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000


def skills():
    """A point mass with eight codes."""
    return irrl.envs.Skills(gymnasium.make("irrl/PointMass-v0"), codes=8)


def train(model):
    """An agent that is paid by this model."""
    env = Rewarded(make_vec_env(skills, n_envs=16, seed=0), model)
    agent = PPO("MultiInputPolicy", env, n_steps=50, batch_size=200, learning_rate=1e-3, seed=0)
    return agent.learn(STEPS, callback=env.learner())


space = skills().observation_space["observation"]
model = irrl.RewardModel(space, labels=8, mode="skills")
agent = train(model)
agent.save("agent.zip")
model.save("reward_model.safetensors")

again = irrl.RewardModel.load("reward_model.safetensors")
episode = np.zeros((26, 5), np.float32)
assert np.array_equal(again.rewards(episode, 3), model.rewards(episode, 3))
again.learn()  # from the episodes that were saved with it

oracle = irrl.RewardModel(space, labels=8, mode="skills", oracle=again)
train(oracle)
print(f"learned {model.health()['n_skills']:.1f} skills, by an oracle "
      f"{oracle.health()['n_skills']:.1f}")  # fmt: skip
