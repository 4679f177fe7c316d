"""A task in somebody's own package: behind which door do I look, so that you can tell my label?

A label is drawn, the policy opens one of as many doors, and a tabular discriminator guesses the
label from the door. NumPy, REINFORCE, one file.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from irrl.diagnostics import discriminator_health, require_finite
from irrl.errors import UserError
from irrl.runs.config import Config, setting
from irrl.runs.schedule import is_due
from irrl.runs.seeding import stream
from irrl.tasks.contract import Metric, Preset, Task


@dataclass(frozen=True)
class DoorsConfig(Config):
    """Labels and doors."""

    task: ClassVar[str] = "doors"
    length: ClassVar[str] = "updates"

    labels: int = setting(8, "number of labels, and of doors")
    updates: int = setting(1_000, "updates, each on one batch of episodes")
    batch_size: int = setting(64, "episodes in a batch")
    learning_rate: float = setting(4.0, "step size of both tables")
    evaluate_every: int = setting(40, "updates between two rows of metrics.jsonl")
    checkpoint_every: int = setting(80, "updates between two checkpoints")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_single_reward()
        self.require("labels", lambda v: v >= 2, "at least 2")


def log_softmax(logits):
    logits = logits - logits.max(axis=-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def prepare(config, checkpoint):
    """Updates that were seen to and done; policy (labels, doors), discriminator (doors, labels)."""
    if checkpoint is not None:
        return checkpoint.step, checkpoint.step, checkpoint.arrays
    shape, names = (config.labels, config.labels), ("policy", "discriminator")
    return -1, 0, {name: stream(config.seed, name).normal(0.0, 0.1, shape) for name in names}


def learn(config, tables, update):
    random, each = stream(config.seed, "policy", 1, update), np.arange(config.labels)
    labels = random.integers(config.labels, size=config.batch_size)
    p = np.exp(log_softmax(tables["policy"]))[labels]
    doors = (p.cumsum(axis=1)[:, :-1] < random.random((len(labels), 1))).sum(axis=1)
    log_q = log_softmax(tables["discriminator"])[doors]
    rewards = config.reward_fn()(log_q, labels)
    step, advantage = config.learning_rate / config.batch_size, (rewards - rewards.mean())[:, None]
    np.add.at(tables["policy"], labels, step * advantage * ((doors[:, None] == each) - p))
    np.add.at(tables["discriminator"], doors, step * ((labels[:, None] == each) - np.exp(log_q)))


def evaluate(config, tables):
    labels = np.arange(config.labels)
    doors = tables["policy"].argmax(axis=1)
    health = discriminator_health(log_softmax(tables["discriminator"])[doors], labels,
                                  config.reward_fn())  # fmt: skip
    return {"accuracy_percent": health.pop("discriminator_accuracy_percent"), **health}


def train(run, prepared):
    config, (before, done, tables) = run.config, prepared
    while True:
        if is_due(before, done, config.evaluate_every, config.updates):
            require_finite(done, *tables.values())
            run.log({"step": done, **evaluate(config, tables)})
        if is_due(before, done, config.checkpoint_every, config.updates):
            run.save(done, tables)
        if done == config.updates:
            return run.finish({**evaluate(config, tables), "seconds": run.seconds})
        learn(config, tables, done)
        before, done = done, done + 1


def check(config):
    if config.labels > 1000:
        raise UserError("labels must be at most 1000: nobody has so many doors")


PRESETS = {"fast": Preset("a second", {}), "smoke": Preset("less", {"updates": 80})}
TASK = Task(
    "doors", DoorsConfig, PRESETS, Metric("accuracy_percent", "labels told (%)", "%", 0.0, 100.0),
    prepare, train, lambda config, checkpoint: evaluate(config, checkpoint.arrays), check,
)  # fmt: skip
