"""A batch of counting that several tests learn from."""

import torch

from irrl.tasks import make_config
from irrl.tasks.counting.data import load_split
from irrl.tasks.counting.minibatches import cut_minibatch
from irrl.tasks.counting.rollout import rollout, sample_batch, states_of
from irrl.tasks.counting.state import initial_learner
from irrl.tasks.counting.train import final_rewards, ppo_batch, train_batch

CPU = torch.device("cpu")


class Case:
    """A learner of the smoke preset and one batch of episodes in really rendered scenes."""

    def __init__(self, scenes_folder, **settings):
        settings = {"initial_policy": 1.0, "dropout": 0.0, **settings}
        self.config = make_config("counting", "smoke", scenes=str(scenes_folder), **settings)
        self.learner = initial_learner(self.config, CPU)
        self.model = self.learner.model
        self.split = load_split(self.config, "train")
        self.inputs = sample_batch(self.config, 0, len(self.split))
        self.labels = torch.from_numpy(self.split.labels[self.inputs.scenes])
        self.trajectory = rollout(self.model, self.split, self.inputs)
        self.rewards = final_rewards(self.config, self.trajectory.log_count, self.labels)
        self.batch = ppo_batch(self.config, self.trajectory, self.rewards, self.labels, 0)
        self.all = torch.arange(len(self.labels))
        self.states = states_of(self.model, self.trajectory, self.all, None)

    def part(self):
        """All episodes as one part."""
        whole = make_config("counting", "smoke", parts=1)
        (part,) = cut_minibatch(whole, self.trajectory, self.all, (0,))
        return part

    def learn(self, each=map):
        return train_batch(self.config, self.learner, self.split, self.inputs, 0, each)
