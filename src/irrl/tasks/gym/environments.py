"""Environments by their ids: made, wrapped for skills or labels, and side by side."""

import gc
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from irrl.adapters.sb3_vector import GymnasiumVecEnv
from irrl.densities import Uniform
from irrl.envs.last_action import LastAction
from irrl.envs.maze import Maze
from irrl.envs.maze_map import MazeMap
from irrl.envs.mujoco_warnings import tell_once
from irrl.envs.perceive import ACTION, PREDICTION, perceive
from irrl.envs.repeat import Repeat
from irrl.envs.skills import OBSERVATION, Skills
from irrl.envs.skills_vector import SkillsVector
from irrl.errors import UserError
from irrl.reward_model import Continuous
from irrl.tasks.gym.checks import seen_part
from irrl.tasks.gym.config import ENGINES, GymConfig


class Described(NamedTuple):
    """What there is to know of an environment before it is trained in."""

    judged: spaces.Space[Any]  # what the discriminator reads
    see: Callable[[Any], Any] | None  # from an observation; None: as the adapter does
    labels: int | Continuous
    asks: bool  # for predictions beside actions
    can_render: bool
    together: bool  # stepped by one vector environment of its author's
    maze: MazeMap | None  # if it is one: what is judged begins with a place in it


# --- one environment ---


def make_one(config: GymConfig, **options: Any) -> gymnasium.Env:
    """The environment as its author has it."""
    given = {**config.all_env_options(), **options}
    if config.max_episode_steps is not None:
        given["max_episode_steps"] = config.max_episode_steps
    try:
        env = gymnasium.make(config.env, disable_env_checker=True, **given)
        return Repeat(env, config.repeat) if config.repeat > 1 else env
    except Exception as error:  # whatever somebody's environment does when it is made
        raise _cannot_be_made(config, error) from None
    finally:
        tell_once()  # from the second environment on, which is one of many


def _cannot_be_made(config: GymConfig, error: Exception) -> UserError:
    said = str(error).partition("\n")[0]
    failed = f"environment {config.env} cannot be made"
    if isinstance(error, UserError):  # ours, such as mazes: it says what to do
        return UserError(f"{failed}: {said}")
    return UserError(
        f"{failed}: {type(error).__name__}: {said}; give an id, or module:id for a module that "
        "registers it and can be imported"
    )


def describe(config: GymConfig) -> Described:
    """Look at one environment; raises where no agent could be trained in it."""
    env = make_one(config)
    try:
        return _describe(config, env)
    finally:
        env.close()


def _describe(config: GymConfig, env: gymnasium.Env) -> Described:
    action: Any = env.action_space
    asks = isinstance(action, spaces.Dict) and set(action.spaces) == {ACTION, PREDICTION}
    if asks and config.mode == "skills":
        raise UserError(f"environment {config.env} asks for predictions: train it with mode labels")
    if config.repeat > 1 and asks:
        raise UserError("repeat is for environments that do not ask for predictions")
    if config.last_action and not asks:
        raise UserError("last-action is for environments that ask for predictions")
    require_action(config, action[ACTION] if asks else action)
    can_render = "rgb_array" in (env.metadata.get("render_modes") or [])
    labels = labels_of(config, action[PREDICTION] if asks else None)
    shown = env.observation_space
    if asks:
        perceived = perceiving(config, 1)
        shown = perceived.single_observation_space
        perceived.close()
    judged, see = part_that_is_judged(config, shown)
    together = not asks and goes_together(config, env)
    return Described(judged, see, labels, asks, can_render, together, maze_of(env, judged))


def labels_of(config: GymConfig, predicted: Any) -> int | Continuous:
    """How many labels there are, or what numbers; ``predicted`` is the space of predictions."""
    if config.mode == "skills":
        return config.codes
    shape = None if predicted is None else tuple(predicted.shape)
    if config.mode == "labels":
        labels = config.labels or (shape and int(shape[0]))
        if not labels:
            raise UserError(
                f"environment {config.env} does not say how many labels it has: give --labels"
            )
        return labels
    if shape is None and config.labels is None:
        raise UserError(
            f"environment {config.env} does not say how many numbers a label has: give --labels"
        )
    low, high = (np.array(end, float) for end in (config.label_low, config.label_high))
    if np.isnan(low).any() and predicted is not None:
        low, high = predicted.low, predicted.high
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise UserError(
            f"environment {config.env} does not say where labels lie: give --label-low and "
            "--label-high"
        )
    moves = predicted is not None if config.label_moves is None else config.label_moves
    size = (config.labels,) if config.labels else shape or ()
    return Continuous(size, Uniform(low, high), config.density, config.bins, moves=moves)


def perceiving(config: GymConfig, count: int) -> VectorEnv:
    """Environments that ask for predictions."""
    envs = perceive(config.env, count, **config.all_env_options())
    return LastAction(envs) if config.last_action else envs


def maze_of(env: gymnasium.Env, judged: Any) -> MazeMap | None:
    """The map of a maze, where the whole place in it is judged."""
    bare = env.unwrapped
    if not isinstance(bare, Maze):
        return None
    return bare.maze_map if len(judged.low) >= 2 and judged.low[0] == judged.low[1] else None


def part_that_is_judged(
    config: GymConfig, space: Any
) -> tuple[spaces.Space[Any], Callable[[Any], Any] | None]:
    """The space that the discriminator reads, and how to get there from what the agent sees."""
    names = list(space.spaces) if isinstance(space, spaces.Dict) else []
    part = seen_part(config.sees, names)
    if part is None:
        return space, None
    if names:
        judged: spaces.Space[Any] = spaces.Dict({name: space[name] for name in part})

        def pick(seen: Any) -> Any:
            return {name: seen[name] for name in part}
    else:
        if not isinstance(space, spaces.Box) or len(space.shape) != 1:
            raise UserError(f"sees {config.sees} is for a vector, the observation is {space}")
        low, high = (bound[part].astype(np.float32) for bound in (space.low, space.high))
        if not len(low):
            raise UserError(f"sees {config.sees} leaves nothing of {space.shape[0]} numbers")
        judged = spaces.Box(low, high, dtype=np.float32)

        def pick(seen: Any) -> Any:
            return np.asarray(seen, np.float32)[..., part]

    if config.mode == "skills":
        return judged, lambda seen: pick(seen[OBSERVATION])
    return judged, pick


ANY = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
SUITED = {
    "ppo": ANY,
    "a2c": ANY,
    "recurrent-ppo": ANY,
    "appo": ANY,
    "recurrent-appo": ANY,
    "dqn": (spaces.Discrete,),
    "sac": (spaces.Box,),
    "td3": (spaces.Box,),
}


def require_action(config: GymConfig, space: spaces.Space[Any]) -> None:
    """Raise where the agent cannot act, and say which can."""
    known = not (config.engine == "rllib" and isinstance(space, spaces.MultiBinary))
    able = [name for name in ENGINES[config.engine] if known and isinstance(space, SUITED[name])]
    if config.agent in able:
        return
    advice = f"take {' or '.join(able)}" if able else "no agent can; flatten it with a wrapper"
    raise UserError(f"agent {config.agent} cannot act in {space}: {advice}")


# --- side by side ---


def make_envs(config: GymConfig, described: Described, count: int, seed: int) -> VecEnv:
    """Environments side by side, as Stable-Baselines3 has them, to be reset from a seed."""
    envs: VecEnv
    if described.asks:
        gc.collect()  # those of ap_gym end their threads only when they are collected
        envs = GymnasiumVecEnv(perceiving(config, count))
    elif described.together:
        together = make_together(config, count)
        skills = config.mode == "skills"
        envs = GymnasiumVecEnv(SkillsVector(together, config.codes) if skills else together)
    else:
        envs = DummyVecEnv([lambda: wrapped(config)] * count)
    envs.seed(seed)
    return envs


def wrapped(config: GymConfig) -> gymnasium.Env:
    env = make_one(config)
    return Skills(env, config.codes) if config.mode == "skills" else env


def goes_together(config: GymConfig, env: gymnasium.Env) -> bool:
    """Whether the author has a vector environment that can take the place of single ones.

    That is one registered with the id, whose episodes end as those of single ones do, and which
    begins each anew by itself, with the last observation at hand.
    """
    spec = env.spec
    if spec is None or spec.vector_entry_point is None or config.repeat > 1:
        return False
    if spec.additional_wrappers or spec.max_episode_steps is not None:
        return False
    envs = make_together(config, 1)
    envs.close()
    return envs.metadata.get("autoreset_mode") == AutoresetMode.SAME_STEP


def make_together(config: GymConfig, count: int) -> VectorEnv:
    """The author's own vector environment."""
    try:
        return gymnasium.make_vec(
            config.env, count, "vector_entry_point", **config.all_env_options()
        )
    except Exception as error:  # as with a single one
        raise _cannot_be_made(config, error) from None


def label_path(config: GymConfig, described: Described) -> str:
    """Where the infos of environments side by side have the label."""
    return "label" if described.asks or config.mode == "skills" else config.label


def shown_by_envs(config: GymConfig) -> str:
    """What environments show: standardising is the policy's own."""
    return "raw" if config.observe == "standardised" else config.observe
