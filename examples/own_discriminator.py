"""A discriminator of one's own, in one line: any module from (T, B, ...) to (T, B, labels).

Here a small transformer reads the whole trajectory of an agent in four rooms.

python examples/own_discriminator.py [STEPS]
"""

import sys

import gymnasium
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from torch import nn

import irrl
from irrl.adapters.sb3 import Rewarded

CODES, STEPS = 8, int(sys.argv[1]) if len(sys.argv) > 1 else 100_000


class Transformer(nn.Module):
    """Attends to all earlier cells, and to none that is still to come."""

    def __init__(self, cells=24, labels=CODES, width=32):
        super().__init__()
        self.cell = nn.Embedding(cells, width)
        self.layer = nn.TransformerEncoderLayer(width, 2, 2 * width, dropout=0.0)
        self.head = nn.Linear(width, labels)

    def forward(self, cells):  # (T, B): a Discrete observation
        later = torch.triu(torch.full((len(cells), len(cells)), -torch.inf), diagonal=1)
        return self.head(self.layer(self.cell(cells), src_mask=later))


def rooms():
    """Skills in the small map, eight steps."""
    env = gymnasium.make("irrl/FourRooms-v0", map="small", horizon=8, disable_env_checker=True)
    return irrl.envs.Skills(env, codes=CODES)


envs = make_vec_env(rooms, n_envs=32, seed=0)
model = irrl.RewardModel(
    envs.observation_space["observation"], CODES, Transformer(), mode="skills", judge="trajectory"
)
env = Rewarded(envs, model)
agent = PPO("MultiInputPolicy", env, n_steps=16, batch_size=128, learning_rate=1e-3, seed=0)
agent.learn(STEPS, callback=env.learner())
print(f"{model.health()['n_skills']:.1f} of {CODES} skills")
