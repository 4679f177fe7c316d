"""Labels that are numbers: where am I? LightDark of ap_gym, with a density in place of classes.

An agent in the plane sees its place through noise that is weakest near a light. The label is the
place at each step. The policy is paid for what the discriminator's density says of the truth, and
learns to walk to the light. Needs ap_gym, pillow and aiohttp. A few minutes on one core.

python examples/regression.py [STEPS]
"""

import sys

import ap_gym  # noqa: F401  registers its environments
import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback

import irrl
from irrl.adapters.sb3 import Rewarded
from irrl.adapters.sb3_vector import GymnasiumVecEnv
from irrl.densities import Uniform
from irrl.envs import LastAction, perceive

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 150_000
BLIND = 1.0 / 3.0  # the squared error of guessing the middle of [-1, 1]


class Errors(BaseCallback):
    """Collects what the environment itself says of the predictions of each episode."""

    found: list = []  # noqa: RUF012

    def _on_step(self):
        over = [i for i, d in zip(self.locals["infos"], self.locals["dones"], strict=True) if d]
        self.found += [info["avg_mse"] for info in over]
        return True


envs = GymnasiumVecEnv(LastAction(perceive("LightDark-v0", num_envs=64)))
envs.seed(0)
place = irrl.Continuous((2,), Uniform(-1.0, 1.0), moves=True)  # a label for each step
model = irrl.RewardModel(envs.observation_space, place, reward="ball", pay="steps", core="gru",
                         varying_length=True, samples_per_episode=32, batch_size=64)  # fmt: skip
env = Rewarded(envs, model, observe="belief")  # the policy sees what the discriminator believes
agent = PPO("MlpPolicy", env, n_steps=50, batch_size=256, n_epochs=5, learning_rate=1e-3,
            gae_lambda=0.9, policy_kwargs={"net_arch": [128, 128], "log_std_init": -0.5},
            seed=0)  # fmt: skip
errors = Errors()
agent.learn(STEPS, callback=[env.learner(), errors])
mean = np.mean(errors.found[-1000:]) / BLIND
print(f"squared error per step of the last 1,000 episodes: {mean:.4f} (a blind guess has 1)")
for name, value in model.health().items():
    print(f"{name:32} {value:8.3f}")
