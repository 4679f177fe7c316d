"""An agent of RLlib with a reward model: on a cluster while it trains, without one to be looked at.

What is here beside the algorithm, a policy and a reward model, are copies: `look` brings them up to
date. RLlib's own checkpoint has all that training needs; ours beside it what evaluating needs.
"""

import contextlib
import hashlib
import math
import os
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from ray.rllib.core import DEFAULT_MODULE_ID

from irrl.adapters.rllib import STATE
from irrl.adapters.sb3 import Rewarded
from irrl.errors import UserError
from irrl.runs.checkpoint import Checkpoint
from irrl.runs.files import temporary_of
from irrl.runs.ray_cluster import check_answers, connect, import_rllib
from irrl.runs.reading import is_number
from irrl.tasks.gym import learner as on_one_machine
from irrl.tasks.gym.chance import seed_of
from irrl.tasks.gym.config import GymConfig
from irrl.tasks.gym.environments import Described, wrapped
from irrl.tasks.gym.rllib_config import algorithm_config
from irrl.tasks.gym.rllib_policy import Policy

OBJECT_STORE = 256 * 2**20  # bytes, on this machine
THEIRS = "rllib"  # the folder of RLlib's own checkpoints
LOSS = ("discriminator_loss", "discriminator_batches")


@dataclass
class RLlibLearner(on_one_machine.Learner):
    """The algorithm, copies of what it learns, and how far it has come."""

    agent: Any  # a Policy
    algorithm: Any = None
    owns_cluster: bool = False
    resumed_at: int = 0
    lifetime: int = 0  # steps, as RLlib counts them
    cpu_of_runners: dict[Any, float] = field(default_factory=dict)
    folder: Path | None = None

    @property
    def step(self) -> int:
        return self.lifetime

    @property
    def cpu_seconds(self) -> float:
        return super().cpu_seconds + sum(self.cpu_of_runners.values())

    def learn_once(self) -> None:
        """One iteration of RLlib."""
        result = self.algorithm.train()
        sampled = result["env_runners"].get("num_env_steps_sampled_lifetime", self.lifetime)
        self.lifetime = int(sampled)
        told = result.get("learners", {}).get(STATE, {})
        found = {name: float(told[name]) for name in LOSS if name in told}
        self.note({name: value for name, value in found.items() if math.isfinite(value)})

    def look(self) -> None:
        """Bring policy, reward model and the account of time up to date."""
        group = self.algorithm.learner_group
        self.agent.load(group.get_weights()[DEFAULT_MODULE_ID])
        (found,) = group.foreach_learner(lambda its: its.get_state(STATE))
        self.model.load_state_dict(found.get()[STATE])
        clocks = self.algorithm.env_runner_group.foreach_env_runner(
            lambda _: ((os.uname().nodename, os.getpid()), time.process_time()),
            local_env_runner=False,
        )
        self.cpu_of_runners |= dict(clocks)

    # --- checkpoints ---

    def to_checkpoint(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Ours, once RLlib's own lies beside it."""
        assert self.folder is not None
        final = self.folder / f"{self.step:012d}"
        temporary = temporary_of(final)
        self.folder.mkdir(exist_ok=True)
        self.algorithm.save_to_path(str(temporary.absolute()))
        shutil.rmtree(final, ignore_errors=True)
        temporary.rename(final)
        for old in sorted(self.folder.iterdir())[: -on_one_machine.KEPT]:
            shutil.rmtree(old)
        arrays, state = self.model.to_checkpoint(store=False)
        return {
            **{f"agent.{name}": array for name, array in self.agent.to_arrays().items()},
            **{f"reward_model.{name}": array for name, array in arrays.items()},
        }, {
            "reward_model": state,
            "rllib_sha256": digest_of_folder(final),
            "since": self.since,
            "cpu_seconds": self.cpu_seconds,
        }

    def resume(self, folder: Path, checkpoint: Checkpoint) -> None:
        """Let RLlib go on from its own checkpoint."""
        path = theirs_of(folder, checkpoint)
        self.algorithm.restore_from_path(str(path.absolute()))

    def close(self) -> None:
        super().close()
        if self.algorithm is not None:
            logs = self.algorithm.logdir
            self.algorithm.stop()
            self.algorithm = None
            with contextlib.suppress(OSError):  # a folder that nobody asked for
                os.rmdir(logs)
        if self.owns_cluster:
            import ray

            ray.shutdown()
            self.owns_cluster = False


def theirs_of(folder: Path, checkpoint: Checkpoint) -> Path:
    """RLlib's checkpoint beside one of ours; raises unless it is as it was written."""
    path = folder / THEIRS / f"{checkpoint.step:012d}"
    if not path.is_dir() or digest_of_folder(path) != checkpoint.state.get("rllib_sha256"):
        raise UserError(
            f"{path} is missing or altered: RLlib's own checkpoint must lie beside ours; put it "
            "back, or start a new run"
        )
    return path


def digest_of_folder(folder: Path) -> str:
    """The SHA-256 of all files of a folder and of their names."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            digest.update(f"{path.relative_to(folder)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


# --- made ---


def require_carried(config: GymConfig, described: Described) -> None:
    """Raise where RLlib cannot do what the settings say."""
    if described.asks:
        raise UserError(
            f"environment {config.env} asks for predictions, which engine rllib cannot hand over: "
            "take --engine sb3"
        )


def opened(config: GymConfig, checkpoint: Checkpoint | None) -> RLlibLearner:
    """A learner to look at, or to be given an algorithm: there is no cluster yet."""
    described = on_one_machine.checked(config)
    torch.set_num_threads(1)
    model = on_one_machine.make_model(config, described)
    envs: Rewarded = on_one_machine.rewarded_envs(config, described, model, segment=0)
    torch.manual_seed(seed_of(config.seed, "policy", 0))
    observed = wrapped(config).observation_space
    policy: Any = Policy(config, observed, envs.action_space)
    learner = RLlibLearner(config, described, model, policy, envs)
    if checkpoint is None:
        on_one_machine.probe(learner)
    else:
        restore(learner, checkpoint)
    return learner


def restore(learner: RLlibLearner, checkpoint: Checkpoint) -> None:
    arrays, state = checkpoint.arrays, checkpoint.state
    try:
        below = on_one_machine.below
        learner.model.restore(below("reward_model.", arrays), state["reward_model"])
        learner.agent.restore(below("agent.", arrays))
    except UserError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"damaged checkpoint at step {checkpoint.step}: {error}") from None
    since: Any = state.get("since")
    spent: Any = state.get("cpu_seconds")
    sums = isinstance(since, dict) and all(map(is_number, since.values()))
    if not sums or not is_number(spent):
        raise UserError(f"damaged checkpoint at step {checkpoint.step}: its sums are no numbers")
    learner.since, learner.cpu_before = since, spent
    learner.observed = learner.lifetime = learner.resumed_at = checkpoint.step


def prepare(config: GymConfig, checkpoint: Checkpoint | None) -> RLlibLearner:
    """A learner whose algorithm stands on a cluster, with all its runners."""
    learner = opened(config, checkpoint)
    try:
        join_cluster(learner)
        begun_at = 0 if checkpoint is None else checkpoint.step
        theirs = algorithm_config(config, learner.described, begun_at)
        with said_nowhere():
            learner.algorithm = theirs.build_algo()
    except BaseException:
        learner.close()
        raise
    return learner


@contextlib.contextmanager
def said_nowhere() -> Iterator[None]:
    """What compiled parts of Ray write as actors are made is not shown; exceptions are."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def join_cluster(learner: RLlibLearner) -> None:
    """The cluster of the settings, unless this process is on one already; raises if it is small."""
    config = learner.config
    ray = import_rllib(config.address)
    if config.address is not None:
        check_answers(config.address)
    if not ray.is_initialized():
        connect(ray, config.address, os.cpu_count() or 1, OBJECT_STORE)
        learner.owns_cluster = True
    free = int(ray.available_resources().get("CPU", 0))
    if config.env_runners > free:
        there = int(ray.cluster_resources().get("CPU", 0))
        raise UserError(
            f"env-runners {config.env_runners} needs as many free cores; the cluster has {free} "
            f"of {there}: take fewer, or a larger cluster with --address"
        )
