"""The slow and obvious twin of the compiled loop: one array operation per sentence of the paper."""

import numpy as np

from irrl.rewards import disagreement, log_mean_exp, reward
from irrl.tasks.skills.map import ACTIONS
from irrl.tasks.skills.tables import bonus_weights
from irrl.tasks.skills.train import policy_step, posterior_step


def log_softmax(logits):
    logits = logits - logits.max(axis=-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def learn(config, room_map, q, logits, visits, labels, explore):
    """Run one iteration per row of ``labels`` on double-precision tables, in place.

    ``explore`` maps the number of a step to the random action taken there.
    """
    weights = bonus_weights(config).astype(float)
    step = 0
    for codes in labels.astype(int):
        # trajectory = rollout(policy, label)
        preference = np.einsum("c,cym->ym", weights, q).reshape(
            config.codes, len(room_map.cells), len(ACTIONS)
        )
        trajectories = []
        for code in codes:
            cell, moves = room_map.start, []
            for _ in range(config.horizon):
                action = explore.get(step, int(preference[code, cell].argmax()))
                moves.append(cell * len(ACTIONS) + action)
                cell = int(room_map.next_cell[moves[-1]])
                step += 1
            trajectories.append((moves, cell))
        ends = np.array([cell for _, cell in trajectories])
        np.add.at(visits, ends, 1)

        # reward = shape(log q(y | trajectory), log p(y))
        log_probs = log_softmax(logits[:, ends])
        if config.reward == "disdain":
            skill_rewards = reward("clipped-log")(log_probs, codes)
        else:
            skill_rewards = reward(config.reward)(log_mean_exp(np, log_probs), codes)
        rewards = [skill_rewards]
        if config.bonus == "disagreement":
            rewards.append(disagreement(log_probs))
        if config.bonus == "visits":
            rewards.append(1.0 / np.sqrt(visits[ends]))

        # policy <- trajectory, reward
        gradient = np.zeros_like(q)
        for channel, paid in enumerate(rewards):
            for code, (moves, _), r in zip(codes, trajectories, paid, strict=True):
                target = r
                for t in reversed(range(config.horizon)):
                    if t < config.horizon - 1:
                        after = moves[t + 1] // len(ACTIONS)
                        greedy = after * len(ACTIONS) + preference[code, after].argmax()
                        value = q[channel, code, greedy]
                        mix = (1 - config.lambda_) * value + config.lambda_ * target
                        target = config.discount * mix
                    gradient[channel, code, moves[t]] += target - q[channel, code, moves[t]]
        q += policy_step(config) * gradient

        # discriminator <- trajectory, label
        for member in range(len(logits)):
            posterior = np.exp(log_probs[member])
            for b, (code, cell) in enumerate(zip(codes, ends, strict=True)):
                if cell != room_map.start:
                    one_hot = np.arange(config.codes) == code
                    logits[member, cell] -= posterior_step(config) * (posterior[b] - one_hot)
