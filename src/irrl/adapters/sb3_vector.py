"""A Gymnasium vector environment as one of Stable-Baselines3."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from stable_baselines3.common.vec_env import VecEnv

from irrl.adapters.common import last_of_info, require_plain_action, row_of
from irrl.errors import UserError

__all__ = ["GymnasiumVecEnv"]


class GymnasiumVecEnv(VecEnv):
    """Steps all sub-environments of a Gymnasium vector environment at once.

    Stable-Baselines3 expects the first observation of the next episode together with the end of the
    last. Environments that reset in the same step, or when they are told to, do that, and so do all
    that Gymnasium puts together of single ones; others that reset with the next step can be used
    where all episodes end together, as those of ap_gym do.

    Args:
        env: the environments.

    Example:
        >>> import gymnasium, irrl.envs
        >>> env = GymnasiumVecEnv(gymnasium.make_vec("irrl/Maze-v0", num_envs=3))
        >>> env.reset().shape
        (3, 2)
    """

    def __init__(self, env: VectorEnv) -> None:
        require_plain_action(env.single_action_space)
        self.env = env
        self.mode = AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
        self.resets_some = self.mode == AutoresetMode.DISABLED or isinstance(
            env.unwrapped, SyncVectorEnv | AsyncVectorEnv
        )
        self._actions: Any = None
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)

    def reset(self) -> Any:
        """Begin episodes, with the seeds that were set."""
        seed = None if self._seeds[0] is None else int(self._seeds[0])
        options = join_options(self._options)
        observations, info = self.env.reset(seed=seed, options=options)
        self._reset_seeds()
        self._reset_options()
        self.reset_infos = split_info(info, self.num_envs)
        return observations

    def step_async(self, actions: np.ndarray) -> None:
        """Keep the actions."""
        self._actions = actions

    def step_wait(self) -> Any:
        """Take the step; where episodes end, the next ones have begun."""
        observations, rewards, terminated, truncated, info = self.env.step(self._actions)
        dones = np.logical_or(terminated, truncated)
        infos = split_info(info, self.num_envs)
        if dones.any():
            observations = self._turn_over(observations, dones, info, infos)
            for n in np.nonzero(dones)[0]:
                infos[n]["TimeLimit.truncated"] = bool(truncated[n] and not terminated[n])
        return observations, np.asarray(rewards, np.float32), dones, infos

    def _turn_over(self, observations: Any, dones: np.ndarray, info: dict, infos: list) -> Any:
        """Put last observations into the infos; return the first ones of new episodes."""
        (over,) = np.nonzero(dones)
        if self.mode == AutoresetMode.SAME_STEP:
            ends = split_info(info.get("final_info", {}), self.num_envs)
            for n, last in zip(over, last_of_info(info, over), strict=True):
                self.reset_infos[n] = infos[n]
                infos[n] = {**ends[n], "terminal_observation": last}
            return observations
        for n in over:
            infos[n]["terminal_observation"] = row_of(observations, n)
        if self.resets_some:
            observations, begun = self.env.reset(options={"reset_mask": dones})
        elif dones.all():
            observations, _, _, _, begun = self.env.step(self._actions)
        else:
            raise UserError(
                "these environments reset with the next step, and not all at once: make them with "
                "autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP"
            )
        fresh = split_info(begun, self.num_envs)
        self.reset_infos = [fresh[n] if dones[n] else old for n, old in enumerate(self.reset_infos)]
        return observations

    def close(self) -> None:
        """Close the environments."""
        self.env.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """An attribute, the same for all."""
        value = getattr(self.env, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of the vector environment."""
        setattr(self.env, attr_name, value)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list:
        """Call a method of the vector environment, once; its answer is that of all."""
        found = getattr(self.env, method_name)(*args, **kwargs)
        return [found for _ in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Whether it is wrapped: never, one by one."""
        return [False for _ in self._get_indices(indices)]

    def get_images(self) -> list[Any]:
        """Pictures of all sub-environments."""
        images = self.env.render()
        return list(images) if images is not None else []


def join_options(options: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Options of single environments as those of all: what they differ in becomes an array."""
    first = options[0]
    if any(set(given) != set(first) for given in options):
        raise UserError(
            "options of environments that are stepped together must have the same names"
        )
    return {name: _joined([given[name] for given in options]) for name in first} or None


def _joined(values: list[Any]) -> Any:
    same = all(value is values[0] for value in values)
    return values[0] if same else np.array(values)


def split_info(info: dict[str, Any], n: int) -> list[dict[str, Any]]:
    """The infos of n environments from one dictionary of arrays."""
    split: list[dict[str, Any]] = [{} for _ in range(n)]
    for key, values in info.items():
        if key.startswith("_") or key in ("final_obs", "final_info"):
            continue
        known = info.get(f"_{key}")
        rows = split_info(values, n) if isinstance(values, dict) else values
        for i in range(n):
            if known is None or known[i]:
                split[i][key] = rows[i]
    return split
