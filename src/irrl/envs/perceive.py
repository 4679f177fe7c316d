"""Active perception: the policy acts, and what the discriminator believes is the prediction."""

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space

ACTION, PREDICTION = "action", "prediction"
TARGET = "prediction.target"


def perceive(
    env: str | VectorEnv, num_envs: int | None = None, label: str | None = None, **options: Any
) -> "Perceive":
    """Environments whose label is to be perceived, ready for a reward model.

    Args:
        env: an id, of ap_gym or any other, or a vector environment.
        num_envs: how many, for an id.
        label: where ``info`` has the label, a path such as ``"prediction.target"``; that one for
            environments of ap_gym, else ``"label"``.
        **options: of the environment, for an id.

    Returns:
        A vector environment: the policy acts, ``info["label"]`` tells the label, and what is handed
        to `Perceive.predict` goes to an environment that asks for predictions.
    """
    if isinstance(env, VectorEnv):
        return Perceive(env, label)
    try:
        made = gymnasium.make_vec(env, num_envs=num_envs or 1, **options)
    except (gymnasium.error.Error, ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"cannot make environment {env!r}: {error}") from None
    return Perceive(made, label)


class Perceive(VectorWrapper):
    """Vector environments that ask for predictions beside actions, as those of ap_gym do.

    The action space is that of the inner action, predictions come from `predict`: logits of all
    labels, zero until some are handed over. Numbers without an axis get one, which agents expect.
    """

    def __init__(self, env: VectorEnv, label: str | None = None) -> None:
        super().__init__(env)
        single = env.single_action_space
        self.asks = isinstance(single, spaces.Dict) and set(single.spaces) == {ACTION, PREDICTION}
        self.label = label or (TARGET if self.asks else "label")
        if self.asks:
            self.single_action_space = single[ACTION]
            self.action_space = batch_space(single[ACTION], env.num_envs)
            self.predictions = np.zeros(env.action_space[PREDICTION].shape, np.float32)
            self.labels = int(single[PREDICTION].shape[0])
        self.single_observation_space = _with_axes(env.single_observation_space)
        self.observation_space = batch_space(self.single_observation_space, env.num_envs)

    def predict(self, logits: np.ndarray) -> None:
        """What is believed of each environment: goes with the next actions."""
        if not self.asks:
            return
        if logits.shape != self.predictions.shape:
            raise ValueError(
                f"predictions must have shape {self.predictions.shape}, got {logits.shape}"
            )
        self.predictions = logits.astype(np.float32)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin episodes."""
        observations, info = self.env.reset(seed=seed, options=options)
        if self.asks:
            self.predictions = np.zeros_like(self.predictions)
        return _fit(self.single_observation_space, observations), self._told(info)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Act, and predict what was believed when acting."""
        whole = {ACTION: actions, PREDICTION: self.predictions} if self.asks else actions
        observations, rewards, terminated, truncated, info = self.env.step(whole)
        seen = _fit(self.single_observation_space, observations)
        return seen, rewards, terminated, truncated, self._told(info)

    def _told(self, info: dict[str, Any]) -> dict[str, Any]:
        """The label and, where an episode ends, its statistics; all else might give it away."""
        told = {}
        found = look_up(info, self.label)
        if found is not None:
            told["label"] = np.asarray(found)
        if "stats" in info:
            scalars = info["stats"]["scalar"]
            told |= {name: np.asarray(x) for name, x in scalars.items() if name[0] != "_"}
        for key in ("final_obs", "final_info", "_final_obs", "_final_info"):
            if key in info:
                told[key] = info[key]
        return told


def look_up(info: Mapping[str, Any], path: str) -> Any:
    """What a path such as ``"prediction.target"`` leads to, None if nothing."""
    found: Any = info
    for key in path.split("."):
        if not isinstance(found, Mapping) or key not in found:
            return None
        found = found[key]
    return found


def _with_axes(space: spaces.Space[Any]) -> spaces.Space[Any]:
    if isinstance(space, spaces.Dict):
        return spaces.Dict({name: _with_axes(inner) for name, inner in space.spaces.items()})
    if isinstance(space, spaces.Box):  # a plain one: libraries look at the class
        shape = space.shape or (1,)
        low, high = space.low.reshape(shape), space.high.reshape(shape)
        return spaces.Box(low, high, shape, space.dtype.type)
    return space


def _fit(space: spaces.Space[Any], observations: Any) -> Any:
    if isinstance(space, spaces.Dict):
        return {name: _fit(inner, observations[name]) for name, inner in space.spaces.items()}
    if isinstance(space, spaces.Box):
        return np.asarray(observations).reshape(-1, *space.shape)
    return observations
