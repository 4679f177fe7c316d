"""Steps per CPU second of agents of Stable-Baselines3 with a reward model, beside stock ones."""

import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecEnvWrapper

from irrl import RewardModel
from irrl.adapters.sb3 import Rewarded
from irrl.adapters.sb3_vector import GymnasiumVecEnv
from irrl.envs import Skills, perceive

ROUNDS, STEPS_PER_ROUND, CODES = 7, 4, 32


class PointMass(gymnasium.Env):
    """A point with momentum in a square, 25 steps."""

    observation_space = spaces.Box(-2.0, 2.0, (4,), np.float32)
    action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.state, self.steps = np.zeros(4, np.float32), 0
        return self.state.copy(), {}

    def step(self, action: np.ndarray) -> Any:
        self.state[2:] = 0.8 * self.state[2:] + 0.05 * action
        self.state[:2] = np.clip(self.state[:2] + self.state[2:], -1.0, 1.0)
        self.steps += 1
        return self.state.copy(), 0.0, False, self.steps == 25, {}


class Inputs(VecEnvWrapper):
    """Observations as the discriminator's features, without a reward model."""

    def __init__(self, venv: VecEnv) -> None:
        self.features = RewardModel(venv.observation_space, labels=2).discriminator.features
        super().__init__(venv, spaces.Box(-np.inf, np.inf, (self.features.size,), np.float32))

    def _shown(self, observations: Any) -> np.ndarray:
        with torch.no_grad():
            tensors = {name: torch.from_numpy(array) for name, array in observations.items()}
            return self.features(tensors)[0].numpy()

    def reset(self) -> np.ndarray:
        return self._shown(self.venv.reset())

    def step_wait(self) -> Any:
        observations, rewards, dones, infos = self.venv.step_wait()
        for n in np.nonzero(dones)[0]:
            last = infos[n]["terminal_observation"]
            infos[n]["terminal_observation"] = self._shown({k: v[None] for k, v in last.items()})[0]
        return self._shown(observations), rewards, dones, infos


def circle_square() -> VecEnv:
    return GymnasiumVecEnv(perceive("ap_gym:CircleSquare-v0", num_envs=64))


def point_mass() -> VecEnv:
    return DummyVecEnv([lambda: Skills(PointMass(), CODES) for _ in range(32)])


def agent_of(env: VecEnv, n_steps: int) -> PPO:
    named = isinstance(env.observation_space, spaces.Dict)
    return PPO(
        "MultiInputPolicy" if named else "MlpPolicy", env, n_steps=n_steps, batch_size=256,
        n_epochs=5, learning_rate=1e-3, gae_lambda=0.9, seed=0, device="cpu",
        policy_kwargs={"log_std_init": -0.5, "net_arch": [128, 128]},
    )  # fmt: skip


def rounds_of(make: Callable[[], VecEnv], n_steps: int, **options: Any) -> Callable[[], float]:
    """What takes one round of training, and says how many steps it made in a CPU second."""
    env, callback = make(), None
    is_skills = options.get("mode") == "skills"
    if options:
        learns = options.pop("learns")
        space: Any = env.observation_space
        model = RewardModel(space["observation"] if is_skills else space, **options)
        env = Rewarded(env, model, observe="raw" if is_skills else "inputs")
        callback = env.learner() if learns else None
    elif make is circle_square:
        env = Inputs(env)
    agent = agent_of(env, n_steps)
    steps = STEPS_PER_ROUND * n_steps * env.num_envs

    def take_round() -> float:
        begun = time.process_time()
        agent.learn(steps, callback=callback, reset_num_timesteps=False)
        return steps / (time.process_time() - begun)

    return take_round


def gym() -> dict[str, Any]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    labels: dict[str, Any] = {"labels": 2, "pay": "differences"}
    skills: dict[str, Any] = {"labels": CODES, "mode": "skills"}
    measured = {
        "trajectory judge, CircleSquare": (circle_square, 16, labels | {"learns": True}),
        "final-state judge, point mass": (point_mass, 50, skills | {"learns": True}),
        "wrapper without learning, point mass": (point_mass, 50, skills | {"learns": False}),
        "wrapper without learning, CircleSquare": (circle_square, 16, labels | {"learns": False}),
    }
    result = {}
    for name, (make, n_steps, options) in measured.items():
        kinds = {"stock": rounds_of(make, n_steps), "rewarded": rounds_of(make, n_steps, **options)}
        rates: dict[str, list[float]] = {kind: [] for kind in kinds}
        for turn in range(1 + ROUNDS):
            for kind, take_round in kinds.items():
                rate = take_round()
                rates[kind] += [rate] if turn else []  # the first one warms up
        best = {kind: max(found) for kind, found in rates.items()}
        result[name] = {
            "environment_steps_per_cpu_second": round(best["rewarded"]),
            "stock_steps_per_cpu_second": round(best["stock"]),
            "share_of_stock": round(best["rewarded"] / best["stock"], 3),
        }
        print(f"{name}:", ", ".join(f"{k} {v:,}" for k, v in result[name].items()))
    torch.set_num_threads(threads)
    return result
