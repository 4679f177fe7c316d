"""Somebody else's environment: CircleSquare of ap_gym, an image seen through 5 x 5 pixels.

The policy moves the glimpse; what the discriminator believes is the prediction that the environment
asks for. Needs ap_gym, pillow and aiohttp. A minute on one core.

python examples/circle_square.py [STEPS]
"""

import sys

import ap_gym  # noqa: F401  registers its environments
import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback

import irrl
from irrl.adapters.sb3 import Rewarded
from irrl.adapters.sb3_vector import GymnasiumVecEnv

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 250_000


class Accuracy(BaseCallback):
    """Collects what the environment itself says of the last prediction of each episode."""

    right: list = []  # noqa: RUF012

    def _on_step(self):
        self.right += [i["final_accuracy"] for i in self.locals["infos"] if "final_accuracy" in i]
        return True


envs = GymnasiumVecEnv(irrl.envs.perceive("CircleSquare-v0", num_envs=64))
envs.seed(0)
model = irrl.RewardModel(envs.observation_space, labels=2)
env = Rewarded(envs, model, observe="inputs")  # the policy sees what the discriminator reads
agent = PPO("MlpPolicy", env, n_steps=16, batch_size=256, n_epochs=5, learning_rate=1e-3,
            gae_lambda=0.9, policy_kwargs={"net_arch": [128, 128], "log_std_init": -0.5},
            seed=0)  # fmt: skip
accuracy = Accuracy()
agent.learn(STEPS, callback=[env.learner(), accuracy])
print(f"final accuracy of the last 1,000 episodes: {100 * np.mean(accuracy.right[-1000:]):.1f} %")
