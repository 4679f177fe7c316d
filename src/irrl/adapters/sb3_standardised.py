"""Stable-Baselines3: a policy that sees numbers in standard deviations from their mean.

    PPO("MultiInputPolicy", env, policy_kwargs=standardised())
    ...
    take_in(agent)      # after each update, before the next rollout

Statistics are buffers of the policy: they are saved, restored and evaluated with its weights, and
stay as they are from the first step of a rollout to the last batch of its update. A `VecNormalize`
would keep them apart, and change them with each step.
"""

from collections.abc import Mapping
from typing import Any

import torch
from gymnasium import spaces
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.preprocessing import (
    get_flattened_obs_dim,
    is_image_space,
    preprocess_obs,
)
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor

from irrl.errors import UserError
from irrl.reward_model.normalise import Moments

__all__ = ["Standardised", "standardised", "take_in"]


class Standardised(BaseFeaturesExtractor):
    """All of an observation as one vector, each number in units of what was seen of it so far.

    A one-hot code of K labels is standardised too: it then weighs as much as K other numbers, and
    is not drowned by them.

    Args:
        observation_space: numbers and categories, or a dictionary of these; no images.

    Example:
        >>> extractor = Standardised(spaces.Box(-1.0, 1.0, (3,)))
        >>> extractor(torch.ones(2, 3)).shape
        torch.Size([2, 3])
    """

    def __init__(self, observation_space: spaces.Space[Any]) -> None:
        for name, part in _parts(observation_space).items():
            if is_image_space(part):
                raise UserError(
                    f"observe 'standardised' is for vectors, and {name or 'the observation'} is an "
                    "image: leave it 'raw', for a policy with convolutions"
                )
        super().__init__(observation_space, get_flattened_obs_dim(observation_space))
        self.moments = Moments((self.features_dim,))

    def forward(self, observations: Any) -> Tensor:
        """Vectors, shape ``(n, numbers)``."""
        found: Tensor = self.moments(_flat(observations))
        return found


def standardised() -> dict[str, Any]:
    """The ``policy_kwargs`` of an agent that collects rollouts, whose policy standardises.

    Example:
        >>> from stable_baselines3 import PPO
        >>> agent = PPO("MlpPolicy", "Pendulum-v1", n_steps=64, policy_kwargs=standardised())
        >>> _ = agent.learn(64)
        >>> take_in(agent)
        >>> int(agent.policy.features_extractor.moments.count)
        64
    """
    return {"features_extractor_class": Standardised}


@torch.no_grad()
def take_in(agent: OnPolicyAlgorithm) -> None:
    """Let the policy go by what it saw in the last rollout, too. To be called after its update.

    Args:
        agent: one whose policy was made with `standardised`.

    Example:
        >>> from stable_baselines3 import A2C
        >>> agent = A2C("MlpPolicy", "Pendulum-v1", policy_kwargs=standardised())
        >>> _ = agent.learn(5)
        >>> take_in(agent)
    """
    extractor, space = agent.policy.features_extractor, agent.observation_space
    assert isinstance(extractor, Standardised)
    seen = agent.rollout_buffer.observations
    tensors = {name: _rows(seen[name] if name else seen, part) for name, part in
               _parts(space).items()}  # fmt: skip
    shown = preprocess_obs(tensors if isinstance(space, spaces.Dict) else tensors[""], space)
    extractor.moments.add(_flat(shown).cpu().numpy())
    extractor.moments.settle()


def _parts(space: spaces.Space[Any]) -> dict[str, spaces.Space[Any]]:
    """By name; a space that has no names is one part, of the empty name."""
    return dict(space.spaces) if isinstance(space, spaces.Dict) else {"": space}


def _rows(seen: Any, part: spaces.Space[Any]) -> Tensor:
    """What a rollout has of a part, without the axes of steps and environments."""
    return torch.as_tensor(seen).reshape(-1, *(part.shape or ()))


def _flat(observations: Any) -> Tensor:
    parts = observations.values() if isinstance(observations, Mapping) else [observations]
    return torch.cat([part.flatten(1).float() for part in parts], dim=1)
