"""Skills in an environment of one's own: a point mass learns 32 ways to go. A minute on one core.

python examples/skills.py [STEPS]
"""

import sys

import gymnasium
import numpy as np
from matplotlib.figure import Figure
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

import irrl
from irrl.adapters.sb3 import Rewarded

CODES, STEPS = 32, int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000


class PointMass(gymnasium.Env):
    """Pushed about in a square, with momentum, for 25 steps. It has no reward of its own."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (5,), np.float32)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.position, self.velocity, self.time = np.zeros(2), np.zeros(2), 0
        return self.see(), {}

    def step(self, action):
        self.velocity = 0.8 * self.velocity + 0.05 * action
        self.position = np.clip(self.position + self.velocity, -1.0, 1.0)
        self.time += 1
        return self.see(), 0.0, False, self.time == 25, {}

    def see(self):
        return np.array([*self.position, *self.velocity, self.time / 25], np.float32)


envs = make_vec_env(lambda: irrl.envs.Skills(PointMass(), codes=CODES), n_envs=64, seed=0)
model = irrl.RewardModel(PointMass.observation_space, labels=CODES, mode="skills")
env = Rewarded(envs, model)
agent = PPO("MultiInputPolicy", env, n_steps=25, batch_size=400, n_epochs=5, learning_rate=1e-3,
            policy_kwargs={"net_arch": [128, 128], "log_std_init": -0.5}, seed=0)  # fmt: skip
agent.learn(STEPS, callback=env.learner())
print(f"{model.health()['n_skills']:.1f} of {CODES} skills")

ends = model.store.episodes(np.arange(max(0, len(model.store) - 500), len(model.store)))
last = ends.observations["observation"][-1]  # (500, 5)
figure = Figure(figsize=(4, 4))
axes = figure.subplots()
axes.scatter(last[:, 0], last[:, 1], c=ends.labels, cmap="turbo", s=8)
axes.set_title("Where skills end, coloured by code")
figure.savefig("skills.png", dpi=150)
