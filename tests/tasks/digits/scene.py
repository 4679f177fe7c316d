"""A learner and a batch, for tests of what it learns."""

import torch

from irrl.losses import discriminator_loss
from irrl.tasks import make_config
from irrl.tasks.digits.chance import sample_epoch
from irrl.tasks.digits.data import layout_of, train_and_validation
from irrl.tasks.digits.learner import initial_learner
from irrl.tasks.digits.losses import classified_glimpses, policy_loss, reward_potential
from irrl.tasks.digits.mnist import read_mnist
from irrl.tasks.digits.rollout import rollout
from irrl.tasks.digits.train import cut_batch

CPU = torch.device("cpu")
BATCH = 32


class Scene:
    """A learner of the smoke preset and one sampled batch of real digits."""

    def __init__(self, preset="smoke", **settings):
        sizes = {"train_images": 64, "batch_size": BATCH, "location_std": 0.1}
        self.config = make_config("digits", preset, **sizes, **settings)
        self.learner = initial_learner(self.config, CPU)
        canvases, _ = train_and_validation(read_mnist("train"), 0, layout_of(self.config), BATCH, 0)
        self.images = torch.from_numpy(canvases.images)
        self.labels = torch.from_numpy(canvases.labels)
        _, numbers = sample_epoch(self.config, 0, CPU)
        self.numbers = numbers.batch(0, BATCH)
        discriminator, policy, *_ = self.learner
        start = (self.images, self.numbers.first, self.config.glimpses)
        self.trajectory = rollout(discriminator, policy, *start, self.numbers, 0.1)
        self.parts = cut_batch(self.images, self.labels, self.numbers, self.config.parts)
        self.states = discriminator.states(self.trajectory.cache, classified_glimpses(self.config))
        self.log_probs = discriminator.log_probs(self.states)

    def potential(self):
        return reward_potential(self.config, self.log_probs, self.labels)

    def policy_loss(self):
        potential = self.potential()
        assert potential.requires_grad == self.config.leak_reward_gradient
        return policy_loss(self.config, self.learner.policy, self.trajectory, potential, 0.0)

    def discriminator_loss(self):
        return discriminator_loss(
            self.log_probs, self.labels, self.trajectory.lengths, self.config.supervision
        )

    def actions(self):
        cache, policy = self.trajectory.policy_cache, self.learner.policy
        std = self.config.location_std
        return policy.actions(cache, self.trajectory.cache, self.trajectory.samples, std)


def touched(model):
    return {n for n, p in model.named_parameters() if p.grad is not None and p.grad.abs().max() > 0}


def names(model):
    return {n for n, _ in model.named_parameters()}


MODELS = [
    {"model": "ram"},
    {"model": "dt-ram"},
    {"model": "ram", "credit": "final", "supervision": "last", "core": "rnn", "policy_memory": 0},
    {"model": "dt-ram", "credit": "final", "supervision": "last"},
    {
        "model": "dt-ram", "credit": "final", "supervision": "last", "core": "rnn",
        "policy_memory": 0, "moves": "absolute", "object_centred": False, "location_features": 0,
    },
]  # fmt: skip
