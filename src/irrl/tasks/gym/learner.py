"""What a run of an agent with a reward model must remember, and how a part of it begins.

A checkpoint begins a new segment: environments are made anew and reset from a seed addressed by the
run's seed and the segment, and all generators likewise. Whatever an environment keeps to itself, a
run that was stopped and resumed goes on as one that was not.
"""

import time
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback

from irrl.adapters.sb3 import Rewarded
from irrl.errors import UserError
from irrl.nn.distributed import current_world
from irrl.nn.models import choose_device, open_oracle
from irrl.reward_model import RewardModel
from irrl.runs.checkpoint import Checkpoint
from irrl.runs.config import share_left
from irrl.runs.ray_cluster import import_rllib
from irrl.runs.reading import is_number, is_step
from irrl.tasks.gym import agents
from irrl.tasks.gym.chance import seed_of, set_generators
from irrl.tasks.gym.config import GymConfig
from irrl.tasks.gym.environments import Described, describe, label_path, make_envs, shown_by_envs

UPDATES = "updates"
KEPT = 2  # checkpoints: each holds all episodes that the discriminator learns from
PROBED = 64  # steps

SEEN_ALIKE = (
    "env", "env_options", "repeat", "mode", "codes", "labels", "sees", "judge", "label_low",
    "label_high", "label_moves", "density", "bins", "last_action",
)  # fmt: skip
"""Settings in which an oracle must agree."""


@dataclass
class Learner:
    """Agent, reward model and environments, and how far they have come."""

    config: GymConfig
    described: Described
    model: RewardModel
    agent: BaseAlgorithm
    envs: Rewarded
    callback: BaseCallback | None = None
    segment: int = -1  # none begun yet
    observed: int = -1  # the last step at which it was looked at
    since: dict[str, float] = field(default_factory=dict)  # sums since the last row
    measured: tuple[int, dict[str, Any]] = (-1, {})  # the last metrics, and at which step
    cpu_before: float = 0.0  # seconds of the processor, before this process
    cpu_at_start: float = field(default_factory=time.process_time)

    @property
    def step(self) -> int:
        return int(self.agent.num_timesteps)

    @property
    def cpu_seconds(self) -> float:
        """Time of the processor spent so far, over all resumptions."""
        return self.cpu_before + time.process_time() - self.cpu_at_start

    def begin_segment(self) -> None:
        """Environments and chance as this segment has them, whatever went before."""
        config, self.segment = self.config, self.segment + 1
        self.envs.close()
        self.envs = rewarded_envs(config, self.described, self.model, self.segment)
        self.agent.set_env(self.envs, force_reset=True)
        buffer = getattr(self.agent, "replay_buffer", None)
        if buffer is not None:
            buffer.link.env = self.envs
        set_generators(seed_of(config.seed, "policy", 1, self.segment))
        self.agent.action_space.seed(seed_of(config.seed, "policy", 2, self.segment))
        _, self.callback = self.agent._setup_learn(
            config.steps - self.step, None, reset_num_timesteps=False
        )

    def schedule_discriminator(self) -> None:
        """The step size with which the discriminator learns at this step."""
        config = self.config
        done = min(self.step, config.steps)
        share = share_left(config.discriminator_schedule, done, config.steps)
        self.model.discriminator.scale_learning_rate(share)

    def look(self) -> None:
        """What is looked at is what learns, here."""

    def note(self, metrics: dict[str, float]) -> None:
        """Add up what is to stand in the next row as a mean."""
        for name, value in metrics.items():
            self.since[name] = self.since.get(name, 0.0) + value
        if metrics:
            self.since[UPDATES] = self.since.get(UPDATES, 0.0) + 1.0

    def take_notes(self) -> dict[str, float]:
        """Means since the last row, and the health of the discriminator on held-out episodes."""
        updates = self.since.pop(UPDATES, 1.0)
        means = {name: total / updates for name, total in self.since.items()}
        self.since = {}
        held_out = {f"held_out_{name}": value for name, value in self.model.health().items()}
        score = "squared_error" if self.config.mode == "regression" else "accuracy_percent"
        told = [f"{of}_{score}" for of in ("discriminator", "train_discriminator",
                                           "first_observation")]  # fmt: skip
        renamed = {f"held_out_{name}": name for name in told[1:]}
        kept = {f"held_out_{name}" for name in told}
        return means | {renamed.get(n, n): v for n, v in held_out.items() if n in kept}

    def to_checkpoint(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arrays and JSON-like state."""
        arrays, state = self.model.to_checkpoint()
        return {
            **{f"agent.{name}": array for name, array in agents.to_arrays(self.agent).items()},
            **{f"reward_model.{name}": array for name, array in arrays.items()},
        }, {
            "agent": agents.counters(self.agent),
            "reward_model": state,
            "segment": self.segment,
            "since": self.since,
            "cpu_seconds": self.cpu_seconds,
        }

    def close(self) -> None:
        self.envs.close()


def check(config: GymConfig) -> None:
    """Raise where training could not begin."""
    checked(config)


def checked(config: GymConfig) -> Described:
    """The environment, where training can begin."""
    if current_world().size > 1:
        raise UserError("gym trains in one process; start it without torchrun")
    choose_device(config.device)
    if config.oracle:
        open_oracle(Path(config.oracle), config, SEEN_ALIKE)
    described = describe(config)
    if config.engine == "rllib":
        rllib_learner(config).require_carried(config, described)
    return described


def rllib_learner(config: GymConfig) -> Any:
    """What does all this on a cluster: Ray is imported as the settings need it, before it is."""
    import_rllib(config.address)
    return import_module("irrl.tasks.gym.rllib_learner")


def prepare(config: GymConfig, checkpoint: Checkpoint | None) -> Learner:
    """A learner at its start, or where a checkpoint left it."""
    if config.engine == "rllib":
        return rllib_learner(config).prepare(config, checkpoint)
    return opened(config, checkpoint)


def make_model(config: GymConfig, described: Described) -> RewardModel:
    return RewardModel(described.judged, described.labels, **model_options(config, described))


def model_options(config: GymConfig, described: Described) -> dict[str, Any]:
    """What a reward model is made with, beside what it judges and the number of labels."""
    return {
        "oracle": read_oracle(config, described) if config.oracle else None,
        "device": config.device,
        **config.reward_model_settings(),
    }


def opened(config: GymConfig, checkpoint: Checkpoint | None) -> Learner:
    """A learner to look at: it needs no cluster."""
    if config.engine == "rllib":
        return rllib_learner(config).opened(config, checkpoint)
    described = checked(config)
    torch.set_num_threads(1)  # small networks; and the numbers of one machine are those of another
    model = make_model(config, described)
    envs = rewarded_envs(config, described, model, segment=0)
    set_generators(seed_of(config.seed, "policy", 0))
    learner = Learner(config, described, model, agents.make_agent(config, envs), envs)
    if checkpoint is None:
        probe(learner)
    else:
        restore(learner, checkpoint)
    return learner


def probe(learner: Learner) -> None:
    """Act at random for a moment: labels that are missing or wrong show before a run begins."""
    envs = learner.envs
    envs.collector.take = lambda observations, lengths, labels: None
    envs.reset()
    envs.action_space.seed(0)
    for _ in range(PROBED):
        envs.step(np.array([envs.action_space.sample() for _ in range(envs.num_envs)]))


def rewarded_envs(
    config: GymConfig, described: Described, model: RewardModel, segment: int
) -> Rewarded:
    seed = seed_of(config.seed, "environment", segment)
    envs = make_envs(config, described, config.envs, seed)
    return Rewarded(
        envs, model, label_path(config, described), described.see, shown_by_envs(config)
    )


def restore(learner: Learner, checkpoint: Checkpoint) -> None:
    arrays, state = checkpoint.arrays, checkpoint.state
    try:
        learner.model.restore(below("reward_model.", arrays), state["reward_model"])
        agents.restore(learner.agent, below("agent.", arrays), state["agent"])
    except UserError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"damaged checkpoint at step {checkpoint.step}: {error}") from None
    found: Any = [state.get(name) for name in ("segment", "since", "cpu_seconds")]
    segment, since, spent = found
    counted = type(segment) is int and is_step(segment + 1)  # -1 before the first one
    if learner.step != checkpoint.step or not counted or not is_number(spent):
        raise UserError(
            f"damaged checkpoint at step {checkpoint.step}: it does not know how far it came"
        )
    if not isinstance(since, dict) or not all(map(is_number, since.values())):
        raise UserError(f"damaged checkpoint at step {checkpoint.step}: its sums are no numbers")
    learner.segment, learner.since, learner.cpu_before = segment, since, spent
    learner.observed = learner.step


def read_oracle(config: GymConfig, described: Described) -> RewardModel:
    """The reward model of a finished run."""
    run, other = open_oracle(Path(str(config.oracle)), config, SEEN_ALIKE)
    checkpoint = run.last_checkpoint()
    oracle = RewardModel(described.judged, described.labels, **other.reward_model_settings())
    oracle.restore(below("reward_model.", checkpoint.arrays), checkpoint.state["reward_model"])
    return oracle


def below(prefix: str, arrays: dict[str, Any]) -> dict[str, Any]:
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
