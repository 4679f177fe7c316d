"""Preferences: an agent that never sees a reward, only which of two segments a judge likes better.

The judge is the usual synthetic teacher: it compares what segments earned of the environment's own
reward. A person, or a program of your own, is any function of two segments. Half a minute.

python examples/preferences.py [STEPS]
"""

import sys

from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

import irrl
from irrl.adapters.sb3_preferences import Preferred, ReturnTeacher, step_space

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000

envs = make_vec_env("Pendulum-v1", n_envs=32, seed=0)
model = irrl.PreferenceModel(step_space(envs), reward="linear")  # or "log", or "score", as it is
env = Preferred(envs, model, segment=25)
agent = PPO("MlpPolicy", env, n_steps=32, batch_size=128, learning_rate=lambda left: 1e-3 * left,
            gamma=0.9, use_sde=True, sde_sample_freq=4, seed=0)  # fmt: skip
agent.learn(STEPS, callback=env.learner(judge=ReturnTeacher(error_rate=0.0), comparisons=600))

for name, value in model.health().items():
    print(f"{name:<40} {value:.3f}")
model.save("preferences.safetensors")
again = irrl.PreferenceModel.load("preferences.safetensors")
earned, _ = evaluate_policy(agent, make_vec_env("Pendulum-v1", n_envs=10, seed=1), 20)
print(f"true return {earned:.0f}, by {again.comparisons} comparisons")
