"""CircleSquare with a feature made by hand: the glimpse less its mean, times ten."""

from typing import Any

import ap_gym
import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorWrapper
from gymnasium.vector.utils import batch_space

ID, CONTRAST = "CircleSquare-v0", "contrast"


def shown(observation: dict[str, np.ndarray], axes: int) -> dict[str, np.ndarray]:
    glimpse = observation["glimpse"]
    flat = glimpse.reshape(*glimpse.shape[:axes], -1)
    return {**observation, CONTRAST: 10.0 * (flat - flat.mean(axis=-1, keepdims=True))}


def space_of(space: Any) -> spaces.Dict:
    size = int(np.prod(space["glimpse"].shape))
    return spaces.Dict({**space.spaces, CONTRAST: spaces.Box(-np.inf, np.inf, (size,), np.float32)})


class ByHand(gymnasium.Wrapper):
    def __init__(self, **options: Any) -> None:
        super().__init__(ap_gym.make(ID, **options))
        self.observation_space = space_of(self.env.observation_space)

    def reset(self, **options: Any) -> Any:
        observation, info = self.env.reset(**options)
        return shown(observation, 0), info

    def step(self, action: Any) -> Any:
        observation, *rest = self.env.step(action)
        return (shown(observation, 0), *rest)


class ByHandVector(VectorWrapper):
    def __init__(self, num_envs: int, **options: Any) -> None:
        super().__init__(ap_gym.make_vec(ID, num_envs=num_envs, **options))
        self.single_observation_space = space_of(self.env.single_observation_space)
        self.observation_space = batch_space(self.single_observation_space, num_envs)

    def reset(self, **options: Any) -> Any:
        observations, info = self.env.reset(**options)
        return shown(observations, 1), info

    def step(self, actions: Any) -> Any:
        observations, *rest = self.env.step(actions)
        return (shown(observations, 1), *rest)


gymnasium.register(
    "ByHand-v0", entry_point="by_hand:ByHand", vector_entry_point="by_hand:ByHandVector"
)
