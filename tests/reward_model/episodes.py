"""Reward models that are quickly made, and episodes for them."""

import numpy as np
from gymnasium.spaces import Box
from torch import nn

from irrl.reward_model import RewardModel

SPACE = Box(-1.0, 1.0, (2,), np.float32)
SMALL = {"width": 8, "batch_size": 16, "samples_per_episode": 8}


def small_model(labels=3, space=SPACE, **options):
    return RewardModel(space, labels, **{**SMALL, **options})


def episode(seed, steps=4, size=2):
    """Observations of an episode with so many actions."""
    rng = np.random.default_rng(seed)
    return rng.uniform(-1.0, 1.0, (steps + 1, size)).astype(np.float32)


def fed(model, count=20, seed=0, steps=4):
    """The same model, with episodes of chance, to learn from."""
    for n in range(count):
        model.add(episode([seed, n], steps), n % model.labels)
    return model


def telling(label, seed, labels=3, steps=4):
    """An episode whose later observations tell the label; its first one does not."""
    seen = 0.1 * episode(seed, steps)
    seen[1:, 0] += 2.0 * label / (labels - 1) - 1.0
    return np.clip(seen, -1.0, 1.0)


def weights(model):
    return [p.detach().numpy().copy() for p in model.discriminator.parameters()]


def same(some, others):
    return all(np.array_equal(a, b) for a, b in zip(some, others, strict=True))


class Plain(nn.Module):
    """A discriminator of one's own that reads whole trajectories only."""

    def __init__(self, size=2, labels=3, width=8):
        super().__init__()
        self.core = nn.GRU(size, width)
        self.head = nn.Linear(width, labels)

    def forward(self, observations):
        return self.head(self.core(observations)[0])


class Stepwise(Plain):
    """The same, which can go on from a state: two tensors in a dictionary."""

    def initial_state(self, n):
        weight = self.head.weight
        return {"hidden": weight.new_zeros(n, self.core.hidden_size), "n": weight.new_zeros(n)}

    def step(self, observations, state):
        _, after = self.core(observations[None], state["hidden"][None])
        return self.head(after[0]), {"hidden": after[0], "n": state["n"] + 1}
