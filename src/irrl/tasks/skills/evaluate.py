"""What the tables are worth: the paper's metric and the health of the discriminator.

Nothing is sampled. Maps are deterministic and the policy epsilon-greedy, so the distribution of
final cells is computed exactly, and every number below is the expectation that the paper
estimates from trajectories. Evaluating uses no random numbers and changes nothing.
"""

import math
from typing import Any

import numpy as np

from irrl.diagnostics import calibration_error
from irrl.rewards import REWARDS, disagreement, log_mean_exp
from irrl.tasks.skills.config import SkillsConfig
from irrl.tasks.skills.kernels import final_occupancy, greedy_moves
from irrl.tasks.skills.map import RoomMap, read_map
from irrl.tasks.skills.tables import bonus_weights, restored_tables

EPISODES_PER_CODE = 10  # in the paper's figure of state occupancy


def evaluate(
    config: SkillsConfig, room_map: RoomMap, q: np.ndarray, log_q: np.ndarray
) -> tuple[dict[str, Any], np.ndarray]:
    """Metrics of a pair of tables, and the share of episodes that end in each cell.

    ``n_skills`` is 2 to the mean of log2 q(y|t) - log2 p(y) (Eq. 9), always the plain logarithm,
    under the policy that is trained, exploration included; ``n_skills_greedy`` leaves that out.
    ``cells_reached`` counts the cells in which more likely than not an episode ends when each
    code acts ten times, as in the paper's figure of state occupancy; ``cells_greedy`` those in
    which some code ends when it acts greedily. Rewards are those of the skill, without a bonus.
    """
    greedy = greedy_moves(q, bonus_weights(config))
    walk = (room_map.next_cell, np.uint32(room_map.start), config.horizon)
    ends_of_code = final_occupancy(greedy, *walk, float(config.epsilon))  # (codes, cells)
    missed = np.prod((1.0 - ends_of_code) ** EPISODES_PER_CODE, axis=0)
    ends = ends_of_code / config.codes
    greedy_ends = final_occupancy(greedy, *walk, 0.0) / config.codes

    members = _log_softmax(log_q)  # (members, cells, codes)
    log_posterior = log_mean_exp(np, members)  # (cells, codes)
    log_p = -math.log(config.codes)
    posterior = np.exp(log_posterior)
    gain_bits = (log_posterior.T - log_p) / math.log(2.0)  # (codes, cells), like ends

    cell_share = ends.sum(axis=0)
    entropy = -np.sum(posterior * log_posterior, axis=-1)
    guess = posterior.argmax(axis=-1)
    correct = ends[guess, np.arange(len(guess))]  # episodes in a cell whose code is its guess
    paid = REWARDS[config.reward]
    if paid.shape is None:
        rewards = np.arange(config.codes)[:, None] == guess
    else:
        rewards = paid.gain(np, log_posterior.T, log_p)
    reward_mean = float(np.sum(ends * rewards))
    row = {
        "n_skills": 2.0 ** float(np.sum(ends * gain_bits)),
        "n_skills_greedy": 2.0 ** float(np.sum(greedy_ends * gain_bits)),
        "cells_reached": int(np.count_nonzero(missed < 0.5)),
        "cells_greedy": int(np.count_nonzero(greedy_ends.sum(axis=0))),
        "reward_mean": reward_mean,
        "reward_deviation": math.sqrt(float(np.sum(ends * (rewards - reward_mean) ** 2))),
        "share_clipped": float(np.sum(ends * (log_p >= log_posterior.T))),
        "discriminator_accuracy": float(correct.sum()),
        "discriminator_posterior": float(np.sum(ends * posterior.T)),
        "discriminator_log_posterior": float(np.sum(ends * log_posterior.T)),
        "discriminator_entropy": float(cell_share @ entropy),
        "discriminator_calibration_error": calibration_error(
            posterior.max(axis=-1), correct, cell_share
        ),
    }
    if len(members) > 1:
        row["ensemble_disagreement"] = float(cell_share @ disagreement(members, validate=False))
    return row, cell_share


def evaluate_arrays(config: SkillsConfig, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Metrics of the arrays of a checkpoint."""
    room_map = read_map(config.map)
    tables = restored_tables(config, room_map, arrays)
    return evaluate(config, room_map, tables.q, tables.log_q)[0]


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    logits = logits.astype(float)
    top = logits.max(axis=-1, keepdims=True)
    return logits - top - np.log(np.sum(np.exp(logits - top), axis=-1, keepdims=True))
