"""Active perception: the policy acts, and what the discriminator believes is the prediction."""

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space

from irrl.errors import UserError

ACTION, PREDICTION = "action", "prediction"
TARGET = "prediction.target"


def perceive(
    env: str | VectorEnv, num_envs: int | None = None, label: str | None = None, **options: Any
) -> "Perceive":
    """Environments whose label is to be perceived, ready for a reward model.

    Args:
        env: an id, of ap_gym or any other (``"ap_gym:CircleSquare-v0"``), or a vector environment.
        num_envs: how many, for an id.
        label: where ``info`` has the label, a path such as ``"prediction.target"``; that one for
            environments of ap_gym, else ``"label"``.
        **options: of the environment, for an id.

    Returns:
        A vector environment: the policy acts, ``info["label"]`` tells the label, and what is handed
        to `Perceive.predict` goes to an environment that asks for predictions.

    Example:
        >>> env = perceive("irrl/ObjectCounting-v0", num_envs=2, resolution=64)
        >>> env.label, env.asks  # its label is in info; it asks for no prediction
        ('label', False)
        >>> env.close()
    """
    if isinstance(env, VectorEnv):
        return Perceive(env, label)
    if not isinstance(env, str):
        raise UserError(
            f"env must be an id or a vector environment, got {type(env).__name__}: put it into a "
            "gymnasium.vector.SyncVectorEnv"
        )
    try:
        made = gymnasium.make_vec(env, num_envs=num_envs or 1, **options)
    except Exception as error:  # whatever an environment of others does
        said = str(error).partition("\n")[0].rstrip(".")
        hint = "" if ":" in env else "; write 'module:NAME-v0' for one that a module registers"
        raise UserError(
            f"cannot make environment {env!r}: {type(error).__name__}: {said}{hint}"
        ) from None
    return Perceive(made, label)


class Perceive(VectorWrapper):
    """Vector environments that ask for predictions beside actions, as those of ap_gym do.

    The action space is that of the inner action, predictions come from `predict`: logits of all
    labels, or the numbers of a continuous one, zero until some are handed over. Observations that
    are numbers without an axis get one, which agents expect.

    Args:
        env: the environments.
        label: where ``info`` has the label; a path such as ``"prediction.target"``.

    Example:
        >>> import gymnasium, irrl.envs
        >>> env = Perceive(gymnasium.make_vec("irrl/PointMass-v0", num_envs=2), label="place")
        >>> env.single_action_space.shape, env.label
        ((2,), 'place')
    """

    def __init__(self, env: VectorEnv, label: str | None = None) -> None:
        super().__init__(env)
        single = env.single_action_space
        self.asks = False
        if isinstance(single, spaces.Dict) and set(single.spaces) == {ACTION, PREDICTION}:
            shape = single[PREDICTION].shape
            if not shape:
                raise UserError(f"no label can be predicted in {single[PREDICTION]}")
            self.asks = True
            self.single_action_space = single[ACTION]
            self.action_space = batch_space(single[ACTION], env.num_envs)
            self.predicted = single[PREDICTION]
            self.predictions = np.zeros((env.num_envs, *shape), np.float32)
            self.labels = int(shape[0])
        self.label = label or (TARGET if self.asks else "label")
        self.single_observation_space = _with_axes(env.single_observation_space)
        self.observation_space = batch_space(self.single_observation_space, env.num_envs)

    def predict(self, predictions: np.ndarray) -> None:
        """What is believed of each environment: goes with the next actions."""
        if not self.asks:
            return
        predictions = np.asarray(predictions)
        if predictions.shape != self.predictions.shape:
            raise UserError(
                f"predictions must have shape {self.predictions.shape}, got {predictions.shape}"
            )
        self.predictions = predictions.astype(np.float32)
        if isinstance(self.predicted, spaces.Box):  # numbers have ends, logits have none
            self.predictions = self.predictions.clip(self.predicted.low, self.predicted.high)

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

    def _told(self, info: Mapping[str, Any]) -> dict[str, Any]:
        """The label and, where an episode ends, its statistics; all else might give it away."""
        told: dict[str, Any] = {}
        scalars = look_up(info, "stats.scalar")
        if isinstance(scalars, Mapping):
            told |= {name: np.asarray(x) for name, x in scalars.items() if name[0] != "_"}
        found = look_up(info, self.label)
        if found is not None:
            told["label"] = np.asarray(found)
            if (known := who_told(info, self.label)) is not None:
                told["_label"] = known
        if "final_obs" in info:
            told["final_obs"] = _fit_final(self.single_observation_space, info["final_obs"])
        if "final_info" in info:
            told["final_info"] = self._told(info["final_info"])
        told |= {key: info[key] for key in ("_final_obs", "_final_info") if key in info}
        return told


def look_up(info: Mapping[str, Any], path: str) -> Any:
    """What a path such as ``"prediction.target"`` leads to, None if nothing."""
    found: Any = info
    for key in path.split("."):
        if not isinstance(found, Mapping) or key not in found:
            return None
        found = found[key]
    return found


def who_told(info: Mapping[str, Any], path: str) -> np.ndarray | None:
    """Which environments told what a path leads to, by Gymnasium's masks; None if all did."""
    known, found = None, info
    for key in path.split("."):
        mask = found.get(f"_{key}")
        if mask is not None:
            known = np.asarray(mask, bool) if known is None else known & np.asarray(mask, bool)
        found = found[key]
    return known


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


def _fit_final(space: spaces.Space[Any], final: Any) -> Any:
    """Last observations: one of its own for each environment that has ended, None for others."""
    if isinstance(final, Mapping):
        return _fit(space, final)
    fitted = np.full(len(final), None, dtype=object)
    for n, one in enumerate(final):
        if one is not None:
            fitted[n] = _fit_one(space, one)
    return fitted


def _fit_one(space: spaces.Space[Any], observation: Any) -> Any:
    if isinstance(space, spaces.Dict):
        return {name: _fit_one(inner, observation[name]) for name, inner in space.spaces.items()}
    if isinstance(space, spaces.Box):
        return np.asarray(observation).reshape(space.shape)
    return observation
