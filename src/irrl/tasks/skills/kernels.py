"""Compiled pieces of tabular skill discovery: rollout, posteriors, Q(lambda), greedy actions.

Conventions shared by every function here:

* A *move* is ``cell * N_ACTIONS + action``: one integer names a state and an action, so a Q
  table is a matrix ``(code, move)`` and the map a vector ``next_cell[move]``.
* ``q`` has shape ``(channels, codes, moves)``. Channel 0 is the skill table; channel 1, there
  only with an exploration bonus, the bonus table. Actions are greedy in their weighted sum.
* ``greedy[code, cell]`` is the greedy move. It is mended where values change, never recomputed.
* ``log_q`` has shape ``(members, cells, codes)``: the discriminators' logits. A row is shifted
  to be normalised whenever its cell is reached. That changes neither the posterior nor its
  gradient, and spares the next softmax the search for a maximum.
* Whole tables and indices are passed rather than rows: making a view costs a reference count.
* Indices are unsigned: Numba then skips the branch for negative ones.
* Nothing is compiled with ``fastmath``: sums have one order, and each operation is rounded by
  itself, so that every processor gives the same bytes (`irrl.tasks.skills.arithmetic`).
"""

import numpy as np
from numba import njit, types

from irrl.tasks.skills.arithmetic import exp32, log32, sum_lanes
from irrl.tasks.skills.map import ACTIONS

f32 = np.float32
N_ACTIONS = np.uint32(len(ACTIONS))
REWARD_SIGNATURE = types.float32(types.float32[::1], types.uint32, types.float32)

# --- posteriors ---


@njit(cache=True, forceinline=True)
def normalise(log_q, posterior, member, cell):
    """Turn logits into log-probabilities in place, and write the probabilities beside them."""
    for k in range(log_q.shape[2]):
        posterior[member, cell, k] = exp32(log_q[member, cell, k])
    total = sum_lanes(posterior, member, cell)
    log_total = log32(total)
    scale = f32(1.0) / total
    for k in range(log_q.shape[2]):
        log_q[member, cell, k] -= log_total
        posterior[member, cell, k] *= scale


@njit(cache=True, forceinline=True)
def ensemble_mean(log_q, posterior, cell, log_mean, terms):
    """Write the log of the mean of two or more members; return how much they disagree (DISDAIN).

    ``terms`` is room for a row, of shape (1, 1, codes).
    """
    members, _, codes = log_q.shape
    share = f32(1.0) / f32(members)
    for k in range(codes):
        log_mean[cell, k] = posterior[0, cell, k] + posterior[1, cell, k]
    for member in range(2, members):
        for k in range(codes):
            log_mean[cell, k] += posterior[member, cell, k]
    for k in range(codes):
        log_of_k = log32(max(share * log_mean[cell, k], f32(1e-37)))
        log_mean[cell, k] = log_of_k
        first = posterior[0, cell, k] * (log_q[0, cell, k] - log_of_k)
        terms[0, 0, k] = first + posterior[1, cell, k] * (log_q[1, cell, k] - log_of_k)
    for member in range(2, members):
        for k in range(codes):
            log_ratio = log_q[member, cell, k] - log_mean[cell, k]
            terms[0, 0, k] += posterior[member, cell, k] * log_ratio
    return max(share * sum_lanes(terms, 0, 0), f32(0.0))


@njit(cache=True, forceinline=True)
def quadratic_gap(posterior, cell, terms):
    """The same disagreement for the quadratic score: the sum over codes of the members' variance.

    ``terms`` is room for a row, of shape (1, 1, codes).
    """
    members, _, codes = posterior.shape
    share = f32(1.0) / f32(members)
    for k in range(codes):
        mean = f32(0.0)
        for member in range(members):
            mean += share * posterior[member, cell, k]
        squares = f32(0.0)
        for member in range(members):
            apart = posterior[member, cell, k] - mean
            squares += apart * apart
        terms[0, 0, k] = squares
    return share * sum_lanes(terms, 0, 0)


@njit(cache=True, forceinline=True)
def discriminator_step(log_q, posterior, member, cell, label, step, visits):
    """Descend the cross-entropy: logits -= step * (visits * posterior - one for the label).

    The posterior's part is taken for all ``visits`` of the batch at once, with its first label.
    """
    if visits > 0:
        for k in range(log_q.shape[2]):
            log_q[member, cell, k] -= step * f32(visits) * posterior[member, cell, k]
    log_q[member, cell, label] += step


# --- policy ---


@njit(cache=True)
def rollout(
    greedy, code, next_cell, start, steps, explore_at, explored, explore_action,
    walks, walk_end, stale, moves, b,
):  # fmt: skip
    """Walk from the start; write the moves to ``moves[b]``.

    ``steps`` were taken before this walk, and ``explore_at[explored]`` is the next step whose
    action is random. The greedy walk of each code is kept until one of its moves changes.
    Returns the final cell and the number of explorations used up so far.
    """
    horizon = moves.shape[1]
    if explore_at[explored] >= steps + horizon:
        if stale[code]:
            cell = start
            for t in range(horizon):
                move = greedy[code, cell]
                walks[code, t] = move
                cell = next_cell[move]
            walk_end[code] = cell
            stale[code] = False
        for t in range(horizon):
            moves[b, t] = walks[code, t]
        return walk_end[code], explored
    cell = start
    for t in range(horizon):
        move = greedy[code, cell]
        if explore_at[explored] == steps + t:
            move = np.uint32(cell * N_ACTIONS + explore_action[explored])
            explored += 1
        moves[b, t] = move
        cell = next_cell[move]
    return cell, explored


@njit(cache=True, forceinline=True)
def q_lambda_errors(
    q, channel, code, greedy, next_cell, moves, b, reward, discount, lambda_, errors
):  # fmt: skip
    """TD errors of Peng's Q(lambda); the reward comes with the last move, the end."""
    bootstrap = discount * (f32(1.0) - lambda_)
    carry = discount * lambda_
    last = moves.shape[1] - 1
    target = reward
    errors[channel, b, last] = target - q[channel, code, moves[b, last]]
    for t in range(last - 1, -1, -1):
        move = moves[b, t]
        next_value = q[channel, code, greedy[code, next_cell[move]]]
        target = bootstrap * next_value + carry * target
        errors[channel, b, t] = target - q[channel, code, move]


@njit(cache=True, forceinline=True)
def step_q(q, channel, code, moves, b, errors, step):
    """Add the errors to the values, those of a move repeated while waiting at once."""
    move, total = moves[b, 0], errors[channel, b, 0]
    for t in range(1, moves.shape[1]):
        if moves[b, t] != move:
            q[channel, code, move] += step * total
            move, total = moves[b, t], f32(0.0)
        total += errors[channel, b, t]
    q[channel, code, move] += step * total


@njit(cache=True, inline="always")
def _preference(q, weights, code, move):
    """What greedy actions maximise."""
    if q.shape[0] == 1:
        return q[0, code, move]
    return weights[0] * q[0, code, move] + weights[1] * q[1, code, move]


@njit(cache=True)
def _best_move(q, weights, code, cell):
    """The first of the moves out of a cell that no other beats."""
    best = np.uint32(cell * N_ACTIONS)
    for action in range(1, N_ACTIONS):
        move = np.uint32(cell * N_ACTIONS + action)
        if _preference(q, weights, code, move) > _preference(q, weights, code, best):
            best = move
    return best


@njit(cache=True)
def refresh_greedy(q, weights, code, moves, b, greedy):
    """Mend ``greedy`` along a trajectory; tell whether any of it changed."""
    changed = False
    for t in range(moves.shape[1]):
        if t > 0 and moves[b, t] == moves[b, t - 1]:
            continue  # waiting: this cell has just been seen to
        cell = moves[b, t] // N_ACTIONS
        held = greedy[code, cell]
        held_value = _preference(q, weights, code, held)
        as_good = 0
        for action in range(5):  # a literal, so that the loop unrolls
            move = np.uint32(cell * N_ACTIONS + np.uint32(action))
            as_good += _preference(q, weights, code, move) >= held_value
        if as_good > 1:
            best = _best_move(q, weights, code, cell)
            changed |= best != held
            greedy[code, cell] = best
    return changed


@njit(cache=True)
def greedy_moves(q, weights):
    """The greedy move of every code in every cell; ties go to the first action."""
    _, codes, moves = q.shape
    greedy = np.empty((codes, moves // N_ACTIONS), np.uint32)
    for code in range(codes):
        for cell in range(greedy.shape[1]):
            greedy[code, cell] = _best_move(q, weights, code, cell)
    return greedy


@njit(cache=True)
def final_occupancy(greedy, next_cell, start, horizon, epsilon):
    """Exact distribution of each code's final cell under epsilon-greedy: (codes, cells)."""
    codes, cells = greedy.shape
    final = np.empty((codes, cells))
    for code in range(codes):
        now = np.zeros(cells)
        now[start] = 1.0
        for _ in range(horizon):
            after = np.zeros(cells)
            for cell in range(cells):
                if now[cell] > 0.0:
                    after[next_cell[greedy[code, cell]]] += (1.0 - epsilon) * now[cell]
                    for action in range(N_ACTIONS):
                        move = cell * N_ACTIONS + action
                        after[next_cell[move]] += epsilon / N_ACTIONS * now[cell]
            now = after
        final[code] = now
    return final
