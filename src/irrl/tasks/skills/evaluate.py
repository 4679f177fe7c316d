"""How good the tables are: the paper's metric and the health of the discriminator.

Nothing is sampled. Maps are deterministic and the policy epsilon-greedy, so the distribution of
final cells is computed exactly, and every number below is the expectation that the paper
estimates from trajectories. Evaluating uses no random numbers and changes nothing.
"""

import math

import numpy as np

from irrl.diagnostics import calibration_error
from irrl.ensembles import log_mean_exp, mutual_information
from irrl.runs.checkpoint import Checkpoint
from irrl.tasks.contract import Metrics
from irrl.tasks.skills import arithmetic
from irrl.tasks.skills import array_arithmetic as xp
from irrl.tasks.skills.config import SkillsConfig
from irrl.tasks.skills.kernels import final_occupancy, greedy_moves
from irrl.tasks.skills.map import RoomMap, read_map
from irrl.tasks.skills.tables import Tables, bonus_weights, log_softmax, restored_tables

EPISODES_PER_CODE = 10  # in the paper's figure of state occupancy


def evaluate(config: SkillsConfig, checkpoint: Checkpoint) -> Metrics:
    """Metrics of the tables of a checkpoint."""
    room_map = read_map(config.map)
    tables = restored_tables(config, room_map, checkpoint.arrays)
    return evaluate_tables(config, room_map, tables)[0]


def evaluate_tables(
    config: SkillsConfig, room_map: RoomMap, tables: Tables
) -> tuple[Metrics, np.ndarray]:
    """Metrics of the tables, and the share of episodes that end in each cell.

    ``n_skills`` is 2 to the mean of log2 q(y|t) - log2 p(y) (Eq. 9), always the plain logarithm,
    under the policy that is trained, exploration included; ``n_skills_greedy`` leaves that out.
    ``cells_reached`` counts the cells in which more likely than not an episode ends when each
    code acts ten times, as in the paper's figure of state occupancy; ``cells_greedy`` those in
    which some code ends when it acts greedily. Rewards are those of the skill, without a bonus.
    """
    greedy = greedy_moves(tables.q, bonus_weights(config))
    walk = (room_map.next_cell, np.uint32(room_map.start), config.horizon)
    ends_of_code = final_occupancy(greedy, *walk, float(config.epsilon))  # (codes, cells)
    missed = xp.product(xp.power(1.0 - ends_of_code, EPISODES_PER_CODE))
    ends = ends_of_code / config.codes
    greedy_ends = final_occupancy(greedy, *walk, 0.0) / config.codes

    members = log_softmax(tables.log_q)  # (members, cells, codes)
    log_posterior = log_mean_exp(xp, members)  # (cells, codes)
    log_p = -arithmetic.log(config.codes)
    posterior = xp.exp(log_posterior)
    information = log_posterior.T - log_p  # (codes, cells), like ends

    cell_share = xp.sum(ends, axis=0)
    entropy = -xp.sum(posterior * log_posterior, axis=-1)
    guess = posterior.argmax(axis=-1)
    correct = ends[guess, np.arange(len(guess))]  # episodes in a cell whose code is its guess
    rewards = _rewards(config, log_posterior, guess)  # (codes, cells)
    reward_mean = xp.total(ends * rewards)
    metrics = {
        "n_skills": arithmetic.exp(xp.total(ends * information)),
        "n_skills_greedy": arithmetic.exp(xp.total(greedy_ends * information)),
        "cells_reached": int(np.count_nonzero(missed < 0.5)),
        "cells_greedy": int(np.count_nonzero(xp.sum(greedy_ends, axis=0))),
        "reward_mean": reward_mean,
        "reward_std": math.sqrt(xp.total(ends * xp.power(rewards - reward_mean, 2))),
        "share_clipped": xp.total(ends * (log_p >= log_posterior.T)),
        "discriminator_accuracy_percent": 100.0 * xp.total(correct),
        "discriminator_posterior": xp.total(ends * posterior.T),
        "discriminator_log_posterior": xp.total(ends * log_posterior.T),
        "discriminator_entropy": xp.total(cell_share * entropy),
        "discriminator_calibration_error": calibration_error(
            posterior.max(axis=-1), correct, cell_share
        ),
    }
    if len(members) > 1:
        disagreements = mutual_information(xp, members, log_posterior)
        metrics["ensemble_disagreement"] = xp.total(cell_share * disagreements)
    return metrics, cell_share


def _rewards(config: SkillsConfig, log_posterior: np.ndarray, guess: np.ndarray) -> np.ndarray:
    """The reward of each code for ending in each cell, whose likeliest code is its guess."""
    reward_fn = config.reward_fn(validate=False)
    if reward_fn.shape is None:
        return (np.arange(config.codes)[:, None] == guess).astype(float)
    log_p = np.full_like(log_posterior.T, -arithmetic.log(config.codes))
    return reward_fn.of_log_posterior(xp, log_posterior.T, log_p)
