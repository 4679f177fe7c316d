"""Pendulum-v1 by comparisons of segments, beside the same agent on the true reward.

    python experiments/preferences/pendulum.py OUT --rewards true score linear log --seeds 0 1 2 3 4

Each run writes OUT/REWARD-SEED.json; one that is there is left alone. `--table OUT` reads them.
About half a minute of one core for each run. Predictions: predictions.md.
"""

import argparse
import json
import subprocess
import time
from pathlib import Path

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

import irrl
from irrl.adapters.sb3_preferences import Preferred, ReturnTeacher, step_space

TASK, ENVS = "Pendulum-v1", 32
PPO_SETTINGS = {
    "n_steps": 32, "batch_size": 128, "n_epochs": 10, "gamma": 0.9, "gae_lambda": 0.95,
    "use_sde": True, "sde_sample_freq": 4,
}  # fmt: skip
LEARNING_RATE = 1e-3  # falls to zero
EPISODES = 100  # of the evaluation: the mean action, the same starts for all


def train(reward: str, seed: int, options: argparse.Namespace) -> dict:
    venv = make_vec_env(TASK, n_envs=ENVS, seed=seed)
    model, callback, env = None, None, venv
    if reward != "true":
        settings = {"ensemble": options.ensemble, "judge_error": options.judge_error}
        model = irrl.PreferenceModel(step_space(venv), reward=reward, seed=seed, **settings)
        env = Preferred(venv, model, segment=options.segment)
        callback = env.learner(ReturnTeacher(options.errors, seed), options.comparisons)
    agent = PPO(
        "MlpPolicy", env, learning_rate=lambda left: LEARNING_RATE * left, seed=seed, device="cpu",
        **PPO_SETTINGS,
    )  # fmt: skip
    before = time.process_time()
    agent.learn(options.steps, callback=callback)
    seconds = time.process_time() - before
    starts = make_vec_env(TASK, n_envs=20, seed=10_000)
    returns, _ = evaluate_policy(agent, starts, EPISODES, return_episode_rewards=True)
    return {
        "reward": reward,
        "seed": seed,
        "return": float(np.mean(returns)),
        "worst_tenth": float(np.mean(np.sort(returns)[: EPISODES // 10])),
        "steps": agent.num_timesteps,
        "comparisons": model.comparisons if model else 0,
        "cpu_seconds": round(seconds, 1),
        **({"health": model.health(), "settings": model.settings.to_json()} if model else {}),
    }


def table(folder: Path) -> None:
    runs = [json.loads(path.read_text()) for path in sorted(folder.glob("*-*.json"))]
    for reward in dict.fromkeys(run["reward"] for run in runs):
        found = np.array([run["return"] for run in runs if run["reward"] == reward])
        drawn = np.random.default_rng(0).choice(found, (10_000, len(found))).mean(axis=1)
        low, high = np.quantile(drawn, [0.025, 0.975])
        print(f"{reward:<8} {found.mean():8.1f} [{low:.1f}, {high:.1f}]  {np.round(found, 1)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--rewards", nargs="+", default=["true", "linear", "log", "score"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--comparisons", type=int, default=600)
    parser.add_argument("--segment", type=int, default=25)
    parser.add_argument("--ensemble", type=int, default=1)
    parser.add_argument("--judge-error", type=float, default=0.1, help="that the model assumes")
    parser.add_argument("--errors", type=float, default=0.0, help="of the teacher")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout
    options.out.mkdir(parents=True, exist_ok=True)
    for seed in [] if options.table else options.seeds:
        for reward in options.rewards:
            path = options.out / f"{reward}-{seed}.json"
            if not path.exists():
                found = train(reward, seed, options)
                command = (
                    f"python experiments/preferences/pendulum.py OUT --rewards {reward} --seeds "
                    f"{seed} --steps {options.steps} --comparisons {options.comparisons} --segment "
                    f"{options.segment} --ensemble {options.ensemble} --judge-error "
                    f"{options.judge_error} --errors {options.errors}"
                )
                found |= {"command": command, "commit": commit.strip()}
                path.write_text(json.dumps(found, indent=1) + "\n")
                print(reward, seed, round(found["return"], 1), found["cpu_seconds"], flush=True)
    table(options.out)


if __name__ == "__main__":
    main()
