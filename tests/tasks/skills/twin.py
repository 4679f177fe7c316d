"""The slow and obvious twin of the compiled loop: the losses are written down and differentiated.

It takes nothing from the loop it is to check but the order of its random numbers: steps are those
of `torch.optim.SGD` on the gradients of `torch`, targets are sums over n-step returns, in double
precision.
"""

import numpy as np
import torch

from irrl.rewards import disagreement, log_mean_exp, reward
from irrl.tasks.skills.map import ACTIONS


def log_softmax(logits):
    logits = logits - logits.max(axis=-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def learn(config, room_map, q, logits, visits, labels, explore):
    """Run one iteration per row of ``labels`` on double-precision tables, in place.

    ``explore`` maps the number of a step to the random action taken there.
    """
    q_table, logit_table = (torch.from_numpy(x).requires_grad_() for x in (q, logits))
    policy = torch.optim.SGD([q_table], lr=config.learning_rate)
    discriminator = torch.optim.SGD([logit_table], lr=config.discriminator_learning_rate)
    numbered_steps = iter(range(labels.size * config.horizon))
    for codes in labels.astype(int):
        # trajectory = rollout(policy, label)
        best = greedy_actions(config, room_map, q)
        walks = [walk(config, room_map, best[y], explore, numbered_steps) for y in codes]
        moves = np.array([taken for taken, _ in walks])  # (batch, horizon)
        ends = np.array([cell for _, cell in walks])
        np.add.at(visits, ends, 1)

        # reward = shape(log q(y | trajectory), log p(y))
        rewards = rewards_of(config, log_softmax(logits[:, ends]), codes, visits[ends])

        # policy <- trajectory, reward
        targets = np.stack(
            [q_lambda_targets(config, room_map, r, q[c, codes], best[codes], moves)
             for c, r in enumerate(rewards)]
        )  # fmt: skip
        taken = q_table[:, torch.from_numpy(codes)[:, None], torch.from_numpy(moves)]
        squared_errors = (torch.from_numpy(targets) - taken) ** 2  # (channels, batch, horizon)
        descend(policy, squared_errors.sum(dim=(0, 2)).mean())

        # discriminator <- trajectory, label
        log_probs = torch.log_softmax(logit_table[:, ends], dim=-1)  # (members, batch, codes)
        cross_entropy = -log_probs[:, np.arange(len(codes)), codes]
        learns = torch.from_numpy(ends != room_map.start)  # the start is held uniform
        descend(discriminator, (cross_entropy * learns).mean())


def descend(optimiser, loss):
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()


def greedy_actions(config, room_map, q):
    """The best action of each code in each cell by the weighted sum of the tables."""
    weights = [1.0] if config.bonus == "none" else [1.0, config.bonus_weight]
    preference = sum(w * table for w, table in zip(weights, q, strict=True))
    return preference.reshape(config.codes, len(room_map.cells), len(ACTIONS)).argmax(axis=-1)


def walk(config, room_map, best, explore, numbered_steps):
    """The moves of an episode, and the cell it ends in."""
    cell, moves = room_map.start, []
    for _ in range(config.horizon):
        action = explore.get(next(numbered_steps), best[cell])
        moves.append(cell * len(ACTIONS) + action)
        cell = int(room_map.next_cell[moves[-1]])
    return moves, cell


def rewards_of(config, log_probs, codes, visits):
    """Of the skill and, if there is one, of the bonus; each of shape (batch,)."""
    name = "clipped-log" if config.reward == "disdain" else config.reward
    of_skill = reward(name)(log_mean_exp(np, log_probs), codes)
    of_bonus = {
        "none": list,
        "disagreement": lambda: [disagreement(log_probs, config.bonus_kind)],
        "visits": lambda: [1.0 / np.sqrt(visits)],
    }[config.bonus]
    return [of_skill, *of_bonus()]


def q_lambda_targets(config, room_map, rewards, q, best, moves):
    """Peng's targets by their definition: n-step returns, weighted by powers of lambda.

    ``q`` (batch, moves) and ``best`` (batch, cells) are those of the code of each episode. All
    but the last step have the reward 0, and nothing follows the last.
    """
    batch, horizon = moves.shape
    rows, cells_after = np.arange(batch), room_map.next_cell[moves].astype(int)
    best_moves = cells_after * len(ACTIONS) + best[rows[:, None], cells_after]
    values_after = q[rows[:, None], best_moves]  # of the cell that each move leads to
    targets = np.zeros((batch, horizon))
    for t in range(horizon):
        left = horizon - t
        for n in range(1, left):
            bootstrapped = config.discount**n * values_after[:, t + n - 1]
            targets[:, t] += (1 - config.lambda_) * config.lambda_ ** (n - 1) * bootstrapped
        targets[:, t] += config.lambda_ ** (left - 1) * config.discount ** (left - 1) * rewards
    return targets
