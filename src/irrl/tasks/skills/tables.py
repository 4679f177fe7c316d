"""All that is learned in skill discovery, and where it starts."""

from typing import Any, NamedTuple

import numpy as np

from irrl.errors import UserError
from irrl.runs.seeding import stream
from irrl.tasks.skills import array_arithmetic as xp
from irrl.tasks.skills.config import SkillsConfig
from irrl.tasks.skills.map import ACTIONS, RoomMap
from irrl.tasks.skills.reward import largest_reward

MOST_VISITS = 2**53
LARGEST_BONUS = 1.0  # of a first visit; two members of an ensemble disagree by at most log 2


class Tables(NamedTuple):
    """See `irrl.tasks.skills.kernels` for the shapes."""

    q: np.ndarray
    log_q: np.ndarray
    visits: np.ndarray


def initial_tables(config: SkillsConfig, room_map: RoomMap) -> Tables:
    """Q tables uniform from zero up, logits uniform in [0, 1), uniform at the start."""
    cells = len(room_map.cells)
    channels = len(bonus_weights(config))
    assert config.ensemble_size is not None
    q = stream(config.seed, "policy", 0).random((channels, config.codes, cells * len(ACTIONS)))
    logits = stream(config.seed, "discriminator").random(
        (config.ensemble_size, cells, config.codes)
    )
    logits[:, room_map.start] = 0.0
    return Tables(
        q=(initial_values(config)[:, None, None] * q).astype(np.float32),
        log_q=log_softmax(logits).astype(np.float32),
        visits=np.zeros(cells, dtype=np.int64),
    )


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Logits, in double precision, as log-probabilities over the last axis."""
    logits = logits.astype(float)
    below = logits - logits.max(axis=-1, keepdims=True)
    return below - xp.log(xp.sum(xp.exp(below)))[..., None]


def restored_tables(
    config: SkillsConfig, room_map: RoomMap, arrays: dict[str, np.ndarray]
) -> Tables:
    """The tables of a checkpoint, if they are of this configuration.

    The compiled loop does not look at shapes, so they are looked at here.
    """
    expected = initial_tables(config, room_map)._asdict()
    if _kinds(arrays) != _kinds(expected):
        raise UserError(
            "the checkpoint does not fit config.json: it was made with other settings; "
            "put the config.json of the run back"
        )
    for name, array in arrays.items():
        low, high = (0, MOST_VISITS) if name == "visits" else (-np.inf, np.inf)
        if not np.isfinite(array).all() or array.min() < low or array.max() > high:
            raise UserError(f"damaged checkpoint: its {name} has numbers that cannot be")
    return Tables(**arrays)


def _kinds(arrays: dict[str, Any]) -> dict[str, Any]:
    return {name: (array.shape, array.dtype) for name, array in arrays.items()}


def initial_values(config: SkillsConfig) -> np.ndarray:
    """Upper ends of the first values of the Q tables: skill, and bonus if there is one."""
    if config.optimism is None:
        assert config.initial_value is not None
        ends = [config.initial_value] * 2
    else:
        ends = [config.optimism * reward_unit(config), config.optimism * LARGEST_BONUS]
    if config.bonus_initial_value is not None:
        ends[1] = config.bonus_initial_value
    return np.array(ends[: len(bonus_weights(config))])


def bonus_weights(config: SkillsConfig) -> np.ndarray:
    """Weights of the Q tables in choosing actions: skill, and bonus if there is one."""
    if not config.bonus_weight:
        return np.ones(1, dtype=np.float32)
    return np.array([1.0, config.bonus_weight * reward_unit(config)], dtype=np.float32)


def reward_unit(config: SkillsConfig) -> float:
    """What settings that carry the reward's unit are multiplied by."""
    return 1.0 if config.optimism is None else largest_reward(config.reward_fn(), config.codes)
