"""Labels in `info`: an agent learns where to look, so that a discriminator can tell what it sees.

One of four boxes holds a coloured ball, the others are empty; opening a box shows what is in it.
The agent may open two. Its only reward is what its reward model tells of the colour.

python examples/labels_in_info.py [STEPS]
"""

import sys

import gymnasium
import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

import irrl
from irrl.adapters.sb3 import Rewarded

COLOURS, STEPS = 3, int(sys.argv[1]) if len(sys.argv) > 1 else 60_000


class Boxes(gymnasium.Env):
    """A hint says in which box the ball is; its colour is the label."""

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (4 + COLOURS,), np.float32)
    action_space = gymnasium.spaces.Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.box, self.colour = self.np_random.integers(4), int(self.np_random.integers(COLOURS))
        self.opened = 0
        return self.see(None), {"label": self.colour}

    def step(self, action):
        self.opened += 1
        return self.see(action), 0.0, self.opened == 2, False, {"label": self.colour}

    def see(self, opened):
        seen = np.zeros(4 + COLOURS, np.float32)
        seen[self.box] = 1.0
        seen[4 + self.colour] = opened == self.box
        return seen


envs = make_vec_env(Boxes, n_envs=32, seed=0)
model = irrl.RewardModel(Boxes.observation_space, labels=COLOURS, reward="clipped-linear")
env = Rewarded(envs, model)
agent = PPO("MlpPolicy", env, n_steps=16, batch_size=256, learning_rate=1e-3, seed=0)
agent.learn(STEPS, callback=env.learner())
for name, value in model.health().items():
    print(f"{name:<40} {value:.3f}")
