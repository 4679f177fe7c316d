"""What adapters share: what is judged of observations, where labels are, how episodes end."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from irrl.envs.perceive import ACTION, PREDICTION, look_up
from irrl.envs.skills import CODE, OBSERVATION
from irrl.errors import UserError
from irrl.reward_model import RewardModel
from irrl.reward_model.kinds import Kind
from irrl.reward_model.labels import choose_rows
from irrl.reward_model.spaces import Part, parts_of

See = Callable[[Any], Any]


# --- what is judged ---


def default_see(space: spaces.Space[Any], model: RewardModel) -> See:
    """All of an observation, or the part that is without the code; raises if neither fits."""
    named = space.spaces if isinstance(space, spaces.Dict) else {}
    if set(named) == {OBSERVATION, CODE} and CODE in model.parts:
        raise UserError(
            "the reward model would see the code that it is to tell: make it for "
            f"observation_space[{OBSERVATION!r}]"
        )
    if _parts(space) == model.parts:
        return lambda observations: observations
    if OBSERVATION in named and _parts(named[OBSERVATION]) == model.parts:
        return lambda observations: observations[OBSERVATION]
    raise UserError(
        f"the reward model judges {', '.join(model.parts)}, the environments show {space}: make "
        "it for what they show, or say with `see` what of it is judged"
    )


def _parts(space: spaces.Space[Any]) -> dict[str, Part] | None:
    try:
        return parts_of(space)
    except ValueError:
        return None


def rest_of(space: spaces.Space[Any], model: RewardModel) -> list[str]:
    """What of a dictionary is not judged."""
    if not isinstance(space, spaces.Dict) or _parts(space) == model.parts:
        return []
    return [name for name in space.spaces if name != OBSERVATION]


# --- labels ---


def labels_of_infos(infos: Sequence[Mapping[str, Any]], path: str) -> Any:
    """Labels of environments from an info of each, None where not told; of any kind."""
    if "." in path:
        told = [look_up(info, path) for info in infos]
    else:
        told = [info.get(path) for info in infos]
    if told[0] is None or not isinstance(told[0], int | np.integer):
        return told
    array = np.array(told)  # the usual case, and the fast one
    return array if array.dtype.kind in "iu" and array.min() >= 0 else told


def labels_of_info(info: Mapping[str, Any], path: str, n: int, kind: Kind) -> np.ndarray:
    """Labels of n environments from the info of a vector environment, as their kind has them.

    Gymnasium marks in ``_label`` which environments said anything of ``label``.
    """
    above, _, key = path.rpartition(".")
    found = look_up(info, above) if above else info
    if not isinstance(found, Mapping) or found.get(key) is None:
        return kind.nothing(n)
    values, known = np.asarray(found[key]), found.get(f"_{key}", np.ones(n, bool))
    if values.shape[:1] != (n,):
        raise UserError(
            f"info has labels {path!r} of shape {values.shape}: expected one for each of {n} "
            "environments"
        )
    if (plain := kind.plain(values, known)) is not None:
        return choose_rows(known, plain, kind.nothing(n))
    return kind.read([value if known[i] else None for i, value in enumerate(values)])


# --- the ends of episodes ---


def last_of_info(info: Mapping[str, Any], which: np.ndarray) -> list[Any]:
    """Last observations of some environments, by ``final_obs``.

    That is an array of observations, one for each environment, or as older vector environments
    have it, one observation with a leading axis.
    """
    final = info.get("final_obs")
    if final is None:
        raise UserError("environments ended without their last observations in info['final_obs']")
    return [row_of(final, n) for n in which]


def row_of(observations: Any, which: Any) -> Any:
    """The observation of one environment, or those of some: a copy."""
    if isinstance(observations, Mapping):
        return {name: row_of(inner, which) for name, inner in observations.items()}
    found = observations[which]
    return found if isinstance(found, Mapping) else np.array(found)


def with_rows(observations: Any, which: np.ndarray, rows: Sequence[Any]) -> Any:
    """Observations of all environments, those of some replaced, in new arrays."""
    if not len(rows):
        return observations
    if isinstance(observations, Mapping):
        return {
            name: with_rows(inner, which, [row[name] for row in rows])
            for name, inner in observations.items()
        }
    array, new = np.array(observations), np.asarray(rows)
    if new.shape != (len(which), *array.shape[1:]):
        raise UserError(
            f"the last observation of an episode has shape {new.shape[1:]}, others "
            f"{array.shape[1:]}"
        )
    array[which] = new
    return array


# --- what environments ask for ---


def find_predict(env: Any) -> Callable[[np.ndarray], None] | None:
    """What takes predictions, where one of the layers of an environment asks for them."""
    while env is not None:
        if hasattr(type(env), "predict"):
            return env.predict if getattr(env, "asks", True) else None
        inside = vars(env)
        env = inside.get("venv", inside.get("env"))
    return None


def require_plain_action(space: spaces.Space[Any]) -> None:
    """Raise where agents cannot act, and say what to do."""
    if isinstance(space, spaces.Dict) and set(space.spaces) == {ACTION, PREDICTION}:
        raise UserError(
            "these environments ask for a prediction beside the action: make them with "
            "irrl.envs.perceive, which hands over what the reward model believes"
        )
    if isinstance(space, spaces.Dict | spaces.Tuple):
        raise UserError(
            f"no agent can act in {space}: flatten it, to Box, Discrete, MultiDiscrete or "
            "MultiBinary"
        )
