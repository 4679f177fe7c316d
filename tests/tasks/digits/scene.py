"""A learner and a batch, for tests of what it learns."""

import torch

from irrl.tasks import make_config
from irrl.tasks.digits.data import layout_of, train_and_validation
from irrl.tasks.digits.rollout import draw_epoch, rollout
from irrl.tasks.digits.state import initial_learner
from irrl.tasks.digits.train import cut, judged, loss_of_policy, worth_of

CPU = torch.device("cpu")
BATCH = 32


class Scene:
    """A learner of the smoke preset and one sampled batch of real digits."""

    def __init__(self, preset="smoke", **settings):
        sizes = {"train_images": 64, "batch_size": BATCH, "location_std": 0.1}
        self.config = make_config("digits", preset, **sizes, **settings)
        self.learner = initial_learner(self.config, CPU)
        canvases, _ = train_and_validation(0, layout_of(self.config), BATCH, 0)
        self.images = torch.from_numpy(canvases.images)
        self.labels = torch.from_numpy(canvases.labels)
        _, draws = draw_epoch(self.config, 0, CPU)
        self.draws = draws.batch(0, BATCH)
        discriminator, policy, *_ = self.learner
        self.trajectory = rollout(
            discriminator, policy, self.images, self.draws.first, self.config.steps, self.draws, 0.1
        )
        self.parts = cut(self.images, self.labels, self.draws, self.config.parts)
        self.states = discriminator.states(self.trajectory.memory, judged(self.config))
        self.log_probs = discriminator.log_probs(self.states)

    def policy_loss(self):
        worth = worth_of(self.config, self.log_probs, self.labels)
        leaks = self.config.leak_reward_gradient
        assert worth.requires_grad == leaks
        return loss_of_policy(self.config, self.learner.policy, self.trajectory, worth, 0.0)


def touched(model):
    return {n for n, p in model.named_parameters() if p.grad is not None and p.grad.abs().max() > 0}


def names(model):
    return {n for n, _ in model.named_parameters()}


MODELS = [
    {"model": "ram"},
    {"model": "dt-ram"},
    {"model": "ram", "credit": "final", "supervision": "last", "core": "rnn", "policy_memory": 0},
    {"model": "dt-ram", "credit": "final", "supervision": "last"},
]
