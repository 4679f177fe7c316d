"""RLlib with and without a reward model, and what each part of it costs; from these the curve.

    python benchmarks/rllib_rates.py [--output FILE]

All times are CPU time: other work on the machine does not count. Stock and rewarded take turns, the
first round warms up, the median counts. The environment, the networks and the batches are those of
`irrl train gym` with its defaults: a point mass, 64 environments, rollouts of 25 steps.

A runner (`SingleAgentEnvRunner.sample`), its pieces of episodes on their way (pickled, read again),
the learner (`Learner.update`: connectors, reward, policy, discriminator) and a set of weights
(made, pickled, read, set) are measured apart, in one process, without a network in between; so is a
call of an actor: they tell where time goes. Whole runs on two runners are measured, too, driver and
runners: by these the share of steps that RLlib keeps with a reward model, and the curve.
"""

import argparse
import json
import pickle
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from irrl.runs.provenance import provenance
from irrl.runs.ray_cluster import connect, import_rllib
from irrl.tasks import make_config

ROUNDS = 9
RUNNERS = 2  # of which one is played; it has half of the environments
AGENTS = ("ppo", "appo")
SIZES = (1, 10, 100, 1000)
SLOWER = (0.0, 1e-3, 1e-2)  # seconds that a step of the environment might take besides
CALLS = 400
ITERATIONS = 6  # of a round of a whole run


def cpu_seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.process_time()
    result = work()
    return time.process_time() - begun, result


def config_of(agent: str, with_rewards: bool) -> Any:
    """RLlib's configuration, with or without a reward model."""
    from irrl.tasks.gym.environments import describe
    from irrl.tasks.gym.rllib_config import algorithm_config, stock_config

    settings: Any = make_config("gym", engine="rllib", agent=agent, env_runners=RUNNERS)
    if with_rewards:
        return algorithm_config(settings, describe(settings), 0)
    return stock_config(settings, 0)


class Parts:
    """A runner and a learner of one agent, in this process."""

    def __init__(self, agent: str, with_rewards: bool) -> None:
        from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

        self.agent, self.config = agent, config_of(agent, with_rewards)
        self.runner: Any = SingleAgentEnvRunner(config=self.config)
        self.learner = self.config.build_learner(env=self.runner.env)
        if agent == "appo":
            self.learner.shutdown()

    def take_round(self) -> dict[str, float]:
        """Seconds of each part, for the steps of one batch, and bytes."""
        from ray.rllib.core.learner.training_data import TrainingData

        acting, pieces = 0.0, list[Any]()
        for _ in range(RUNNERS if self.agent == "ppo" else 1):
            spent, found = cpu_seconds(self.runner.sample)
            acting, pieces = acting + spent, [*pieces, *found]
        steps = sum(len(piece) for piece in pieces)
        sent, content = cpu_seconds(lambda: pickle.dumps(pieces, 5))
        read, pieces = cpu_seconds(lambda: pickle.loads(content))
        learning, _ = cpu_seconds(lambda: self._update(TrainingData(episodes=pieces)))
        weighing, weights = cpu_seconds(self._weights)
        setting, _ = cpu_seconds(lambda: self.runner.set_state(pickle.loads(weights)))
        return {
            "steps": steps,
            "runner": acting / steps,
            "sent": sent / steps,
            "read": read / steps,
            "learner": learning / steps,
            "weights_made": weighing,
            "weights_set": setting,
            "bytes_per_step": len(content) / steps,
            "bytes_of_weights": len(weights),
        }

    def _update(self, data: Any) -> None:
        from ray.rllib.core.learner.learner import Learner
        from ray.rllib.core.learner.training_data import TrainingData

        if self.agent == "ppo":
            self.learner.update(
                training_data=data, timesteps={}, num_epochs=self.config.num_epochs,
                minibatch_size=self.config.minibatch_size, shuffle_batch_per_epoch=True,
            )  # fmt: skip
            return
        learner = self.learner  # without its thread: what that does is done here
        learner._learner_thread = None
        batch = learner._make_batch_if_necessary(data)
        learner._learner_thread = threading.current_thread()
        for _ in range(self.config.circular_buffer_iterations_per_batch):
            Learner.update(learner, training_data=TrainingData(batch=batch), timesteps={})

    def _weights(self) -> bytes:
        state = self.learner.get_state(components="rl_module", inference_only=True)
        return pickle.dumps({"rl_module": state["rl_module"]}, 5)


def measure(agent: str) -> dict[str, dict[str, float]]:
    """Medians of each part, of stock and rewarded, in turns."""
    kinds = {"stock": Parts(agent, False), "rewarded": Parts(agent, True)}
    rounds: dict[str, list[dict[str, float]]] = {kind: [] for kind in kinds}
    for turn in range(1 + ROUNDS):
        for kind, parts in kinds.items():
            found = parts.take_round()
            rounds[kind] += [found] if turn else []
    for parts in kinds.values():
        parts.runner.stop()
    return {
        kind: {name: statistics.median(r[name] for r in found) for name in found[0]}
        for kind, found in rounds.items()
    }


def throughput(agent: str, cost: dict[str, float], runners: int, slower: float = 0.0) -> float:
    """Steps a second with so many runners, a core for each and one for the learner.

    By what a step cost in whole runs, calls, pieces and weights included. PPO waits: runners act on
    a batch that grows with their number, then the learner learns. APPO's runners act while it
    learns: the slower of both decides.
    """
    acting, learning = (cost["runners"] + slower) / runners, cost["driver"]
    return 1.0 / (acting + learning if agent == "ppo" else max(acting, learning))


def bend(cost: dict[str, float], slower: float) -> float:
    """How many runners act as long as the learner learns; more bring PPO at most twice as far."""
    return (cost["runners"] + slower) / cost["driver"]


# --- a cluster of this machine ---


def seconds_of_a_call(ray: Any) -> float:
    """CPU time of the caller for one call of an actor."""

    class Idle:
        def rest(self) -> None:
            pass

    actor = ray.remote(Idle).options(num_cpus=0).remote()
    ray.get(actor.rest.remote())
    spent, _ = cpu_seconds(lambda: [ray.get(actor.rest.remote()) for _ in range(CALLS)])
    ray.kill(actor)
    return spent / CALLS


class Whole:
    """An algorithm on two runners, and what its processes have spent."""

    def __init__(self, agent: str, with_rewards: bool) -> None:
        self.algorithm = config_of(agent, with_rewards).build_algo()
        self.algorithm.train()
        self.before = self._spent()

    def _spent(self) -> tuple[float, float, int]:
        runners = self.algorithm.env_runner_group.foreach_env_runner(
            lambda _: time.process_time(), local_env_runner=False
        )
        steps = self.algorithm.metrics.peek(("env_runners", "num_env_steps_sampled_lifetime"))
        return time.process_time(), sum(runners), int(steps)

    def take_round(self) -> dict[str, float]:
        """CPU microseconds per step of the driver, which learns, and of the runners."""
        driver = time.process_time()
        for _ in range(ITERATIONS):
            self.algorithm.train()
        spent, before = self._spent(), self.before
        self.before = spent
        steps = spent[2] - before[2]
        return {"driver": (spent[0] - driver) / steps, "runners": (spent[1] - before[1]) / steps}


def measure_whole(agent: str) -> dict[str, dict[str, float]]:
    """Medians of driver and runners, of stock and rewarded, in turns."""
    kinds = {"stock": Whole(agent, False), "rewarded": Whole(agent, True)}
    rounds: dict[str, list[dict[str, float]]] = {kind: [] for kind in kinds}
    for _ in range(ROUNDS):
        for kind, run in kinds.items():
            rounds[kind].append(run.take_round())
    for run in kinds.values():
        run.algorithm.stop()
    return {
        kind: {name: statistics.median(r[name] for r in found) for name in found[0]}
        for kind, found in rounds.items()
    }


# --- in words ---


def said_of_parts(costs: dict[str, dict[str, float]]) -> dict[str, Any]:
    micro, milli = ("runner", "sent", "read", "learner"), ("weights_made", "weights_set")
    return {
        "parts_microseconds_per_step": _rounded(costs, micro, 1e6),
        "parts_milliseconds_of_weights": _rounded(costs, milli, 1e3),
        "bytes": _rounded(costs, ("bytes_per_step", "bytes_of_weights"), 1.0),
    }


def said_of_whole(agent: str, spent: dict[str, dict[str, float]]) -> dict[str, Any]:
    """What whole runs cost, the share of steps per CPU second that is kept, and the curve."""
    both = {kind: sum(found.values()) for kind, found in spent.items()}
    return {
        "whole_microseconds_per_step": _rounded(spent, ("driver", "runners"), 1e6),
        "steps_per_cpu_second": {kind: round(1.0 / found) for kind, found in both.items()},
        "share_kept": round(both["stock"] / both["rewarded"], 3),
        "curve": {
            f"{1e3 * slower:g} ms slower": {
                kind: {str(n): round(throughput(agent, cost, n, slower)) for n in SIZES}
                | {"bend_at_runners": round(bend(cost, slower), 1)}
                for kind, cost in spent.items()
            }
            for slower in SLOWER
        },
    }


def _rounded(
    costs: dict[str, dict[str, float]], names: tuple[str, ...], unit: float
) -> dict[str, dict[str, float]]:
    return {kind: {n: round(unit * cost[n], 2) for n in names} for kind, cost in costs.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--output", metavar="FILE", help="write JSON here, too")
    options = parser.parse_args()
    torch.set_num_threads(1)
    ray = import_rllib(None)
    connect(ray, None, 2 * RUNNERS)
    call = seconds_of_a_call(ray)
    result: dict[str, Any] = {"microseconds_of_a_call": round(1e6 * call, 1)}
    for agent in AGENTS:
        whole = measure_whole(agent)
        result[agent] = {**said_of_parts(measure(agent)), **said_of_whole(agent, whole)}
        print(agent, json.dumps(result[agent], indent=1))
    ray.shutdown()
    if options.output:
        made = provenance()
        made["command"] = "python benchmarks/rllib_rates.py " + " ".join(sys.argv[1:])
        Path(options.output).write_text(json.dumps({"rllib": result, **made}, indent=1) + "\n")


if __name__ == "__main__":
    main()
