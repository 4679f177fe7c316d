"""How good an agent and its discriminator are, on episodes that nobody learns from."""

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm

from irrl.adapters.sb3 import Rewarded
from irrl.envs.maze_agents import PATH
from irrl.envs.maze_metrics import coverage
from irrl.envs.skills import CODE
from irrl.reward_model import RewardModel
from irrl.reward_model.health import last_labels
from irrl.reward_model.numbers import Numbers
from irrl.reward_model.spaces import Parts
from irrl.reward_model.store import Batch
from irrl.runs.checkpoint import Checkpoint
from irrl.tasks.gym.chance import generators_aside, seed_of
from irrl.tasks.gym.config import GymConfig
from irrl.tasks.gym.environments import Described, label_path, make_envs, shown_by_envs
from irrl.tasks.gym.places import metrics_of_places

TOLD_BY_ENVIRONMENTS = {  # what we call it, and in what unit
    "final_accuracy": ("environment_final_accuracy_percent", 100.0),
    "avg_mse": ("environment_mean_squared_error", 1.0),
    "final_mse": ("environment_final_squared_error", 1.0),
}


class Episode(NamedTuple):
    """One whole episode: what was judged of it, its label, and what its environment said.

    Where labels move, there is one for each observation that was judged. ``path`` has what each
    action led to, also where only the last is judged; ``places`` those of a maze after every single
    step, also where an action has several.
    """

    observations: Parts
    label: np.ndarray
    info: dict[str, Any]
    path: Parts
    places: np.ndarray | None = None


def evaluate(config: GymConfig, checkpoint: Checkpoint) -> dict[str, Any]:
    """Metrics of a checkpoint."""
    from irrl.tasks.gym.learner import opened

    learner = opened(config, checkpoint)
    try:
        return evaluate_now(config, learner.described, learner.agent, learner.model)
    finally:
        learner.close()


def evaluate_now(
    config: GymConfig, described: Described, agent: BaseAlgorithm, model: RewardModel
) -> dict[str, Any]:
    """Metrics of an agent as it is. Training goes on as if it had not been looked at."""
    count = max(config.evaluate_episodes, config.codes if config.mode == "skills" else 1)
    played = play_episodes(config, described, agent, model, count)
    found = metrics_of(model, played)
    found["episode_steps"] = float(np.mean([episode.info["episode"]["l"] for episode in played]))
    for name, (ours, unit) in TOLD_BY_ENVIRONMENTS.items():
        told = [float(e.info[name]) for e in played if name in e.info]
        if told:
            found[ours] = unit * float(np.mean(told))
    own = [e.info["environment_episode"]["r"] for e in played if "environment_episode" in e.info]
    if own:
        found["environment_return"] = float(np.mean(own))
    if described.maze is not None and config.mode == "skills":
        found["coverage"] = float(coverage_of(played[: config.codes]))
    elif config.mode == "skills":
        paths = [episode.path for episode in played[: config.codes]]
        found |= metrics_of_places(model.parts, paths, config.bucket)
    return found


def coverage_of(played: list[Episode]) -> int:
    """Buckets of 100 that some episodes in a maze reach."""
    return coverage([places_in_maze(episode) for episode in played])


def places_in_maze(episode: Episode) -> np.ndarray:
    """Where an episode in a maze went, step by step."""
    whole = next(iter(episode.path.values()))
    return whole if episode.places is None else episode.places


def metrics_of(model: RewardModel, played: list[Episode]) -> dict[str, Any]:
    """What is known of the labels at the end of episodes; of numbers also on the way."""
    batch = side_by_side(model, played)
    health = model.health_of(judge_episodes(model, played), last_labels(model, batch))
    if isinstance(model.kind, Numbers):
        return {
            "squared_error": squared_error_per_step(model.kind, model, batch),
            "final_squared_error": health.pop("discriminator_squared_error"),
            **health,
        }
    return {
        "accuracy_percent": health.pop("discriminator_accuracy_percent"),
        "n_skills": health.pop("n_skills"),
        **health,
    }


@torch.no_grad()
def squared_error_per_step(kind: Numbers, model: RewardModel, batch: Batch) -> float:
    """In prior variances: a mean over the steps of each episode, then over episodes."""
    discriminator = model.discriminator
    beliefs = kind.mixture(discriminator(discriminator.to_tensors(batch.observations)))
    errors = kind.squared_errors(beliefs, batch.labels)  # (T, B)
    inside = np.arange(len(errors))[:, None] < batch.lengths
    return float((np.where(inside, errors, 0.0).sum(axis=0) / batch.lengths).mean())


def side_by_side(model: RewardModel, played: list[Episode]) -> Batch:
    """All episodes, as a discriminator reads them."""
    kept = model.make_store(len(played))
    for episode in played:
        length = len(next(iter(episode.observations.values())))
        kept.add(episode.observations, np.array([length]), episode.label)
    return kept.episodes(np.arange(len(played)))


def judge_episodes(model: RewardModel, played: list[Episode]) -> np.ndarray:
    """Beliefs of the learned discriminator after each episode, shape ``(n, P)``."""
    return model.kind.mixture(model.discriminator.judge(side_by_side(model, played)))


def play_episodes(
    config: GymConfig,
    described: Described,
    agent: BaseAlgorithm,
    model: RewardModel,
    count: int,
    seed: int | None = None,
) -> list[Episode]:
    """Whole episodes in environments of their own; all codes are played equally often.

    Each environment plays as many as any other: short episodes get no advantage.
    """
    seed = seed_of(config.seed if seed is None else seed, "evaluation")
    envs = make_envs(config, described, min(count, config.envs), seed)
    try:
        rewarded = Rewarded(
            envs, model, label_path(config, described), described.see, shown_by_envs(config), False
        )
        rounds = math.ceil(count / rewarded.num_envs)
        with generators_aside(seed, agent.action_space):
            if config.mode == "skills":  # a code is set with a reset
                each = [play_from_reset(config, agent, rewarded, 1, n) for n in range(rounds)]
                return [episode for found in each for episode in found][:count]
            return play_from_reset(config, agent, rewarded, rounds)[:count]
    finally:
        envs.close()


def rows_of(parts: Parts, count: int) -> list[Parts]:
    return [{name: array[n] for name, array in parts.items()} for n in range(count)]


def joined(rows: list[Parts]) -> Parts:
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def places_after(path: Parts, steps: list[np.ndarray]) -> np.ndarray | None:
    """The first place of a path in a maze and all after it, if its infos told these."""
    return np.concatenate([next(iter(path.values()))[:1, :2], *steps]) if steps else None


def play_from_reset(
    config: GymConfig, agent: BaseAlgorithm, envs: Rewarded, rounds: int, before: int = 0
) -> list[Episode]:
    """So many episodes of each environment; ``before`` is how many rounds there were already."""
    handed: list[tuple[Parts, np.ndarray]] = []

    def keep(observations: Parts, lengths: np.ndarray, labels: np.ndarray) -> None:
        ends = np.cumsum(lengths)
        for n, (start, end) in enumerate(zip(ends - lengths, ends, strict=True)):
            label = labels[start:end] if envs.model.kind.moves else labels[n : n + 1]
            handed.append(({name: a[start:end] for name, a in observations.items()}, label))

    envs.collector.take = keep
    if config.mode == "skills":
        codes = (before * envs.num_envs + np.arange(envs.num_envs)) % config.codes
        envs.set_options([{CODE: int(code)} for code in codes])
    observations = envs.reset()
    found: list[list[Episode]] = [[] for _ in range(envs.num_envs)]
    paths: list[list[Parts]] = [[] for _ in range(envs.num_envs)]  # after each action so far
    steps: list[list[np.ndarray]] = [[] for _ in range(envs.num_envs)]  # of a maze, if more
    state, begun = None, np.ones(envs.num_envs, bool)
    while min(map(len, found)) < rounds:
        actions, state = agent.predict(observations, state, begun, config.deterministic)
        observations, _, begun, infos = envs.step(actions)
        for place, after in enumerate(rows_of(envs.judged.observations, envs.num_envs)):
            paths[place].append(after)
            if PATH in infos[place]:
                steps[place].append(infos[place][PATH])
        for place, (seen, label) in zip(np.nonzero(begun)[0].tolist(), handed, strict=True):
            path = joined([{n: a[0] for n, a in seen.items()}, *paths[place]])
            places = places_after(path, steps[place])
            found[place].append(Episode(seen, label, infos[place], path, places))
            paths[place].clear()
            steps[place].clear()
        handed.clear()
    return [episodes[n] for n in range(rounds) for episodes in found]
