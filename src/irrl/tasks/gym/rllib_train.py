"""One run on many machines: RLlib's env runners act, one learner holds policy and reward model.

The four lines of the loop are RLlib's; the reward model has its place in its learner:

    trajectory = rollout(policy, label)                 # env runners, `irrl.envs.Skills`
    reward     = shape(log q(y | trajectory), log p(y)) # in its learner, before GAE or V-trace
    policy        <- trajectory, reward                 # PPO's or APPO's loss
    discriminator <- trajectory, label                  # `after_gradient_based_update`
"""

from typing import Any

from irrl.runs.run import Run
from irrl.tasks.gym.rllib_learner import THEIRS
from irrl.tasks.gym.train import observe


def train_on_cluster(run: Run, learner: Any) -> None:
    """Train to the last step. The end of a run is found by the steps of all runners together."""
    learner.folder = run.folder / THEIRS
    if learner.observed < 0:
        observe(run, learner)
    else:
        learner.resume(run.folder, run.last_checkpoint())
    while learner.step < learner.config.steps:
        learner.learn_once()
        observe(run, learner)
