"""Steps per CPU second of many mazes at once, beside a copy of the arrays that a step touches."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from irrl.envs import SkillsVector
from irrl.envs.maze_vector import MazeVector

ROUNDS, STEPS, CODES = 7, 400, 50


def best_rate(take: Callable[[int], Any], environments: int) -> float:
    """Environment steps in a CPU second, in the best of some rounds; the first one warms up."""
    rates = []
    for _ in range(1 + ROUNDS):
        begun = time.process_time()
        for number in range(STEPS):
            take(number)
        rates.append(STEPS * environments / (time.process_time() - begun))
    return max(rates[1:])


def maze() -> dict[str, Any]:
    result = {}
    for environments in (64, 1024):
        shape = (50, environments, 2)
        actions = np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)
        for name, wrap in (("mazes", None), (f"mazes, {CODES} codes", SkillsVector)):
            plain = MazeVector(environments)
            env: Any = wrap(plain, CODES) if wrap else plain
            seen, _ = env.reset(seed=0)
            touched = [plain.agents.places, plain.agents.squares, plain.agents.steps, actions[0]]
            touched += list(seen.values()) if wrap else [seen]
            touched += list(plain.step(actions[0])[1:4])

            def step(number: int, env: Any = env, actions: np.ndarray = actions) -> None:
                env.step(actions[number % 50])

            def copy(number: int, touched: list[np.ndarray] = touched) -> None:
                for array in touched:
                    array.copy()

            rate, limit = best_rate(step, environments), best_rate(copy, environments)
            key = f"{environments} {name}"
            result[key] = {
                "environment_steps_per_cpu_second": round(rate),
                "copies_per_cpu_second": round(limit),
                "share_of_limit": round(rate / limit, 3),
            }
            print(f"{key}:", ", ".join(f"{k} {v:,}" for k, v in result[key].items()))
    return result
