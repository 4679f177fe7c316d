"""An agent of Stable-Baselines3 learns from a reward model, in anybody's environment.

The loop of the paper is `learn_once`: rollout, reward, policy, discriminator.
"""

from typing import Any

from irrl.adapters.sb3_standardised import take_in
from irrl.diagnostics import require_finite
from irrl.errors import UserError
from irrl.runs.checkpoint import checkpoint_paths, remove_checkpoint
from irrl.runs.run import CHECKPOINTS, Run
from irrl.runs.schedule import is_due
from irrl.tasks.contract import Metrics
from irrl.tasks.gym.evaluate import evaluate_now
from irrl.tasks.gym.learner import KEPT, Learner


def learn_once(learner: Learner) -> None:
    """One turn of the loop."""
    agent: Any = learner.agent
    # trajectory = rollout(policy, label)
    # reward = shape(log q(y | trajectory), log p(y)): paid by `Rewarded` in each step
    collect_rollout(learner)

    # policy <- trajectory, reward
    if not learner.config.has_replay:
        agent.train()
        if learner.config.observe == "standardised":
            take_in(agent)
    elif agent.num_timesteps > agent.learning_starts:
        agent.train(batch_size=agent.batch_size, gradient_steps=agent.gradient_steps)

    # discriminator <- trajectory, label
    if learner.model.batches_due >= 1:
        learner.schedule_discriminator()
        learner.note(learner.model.learn())


def collect_rollout(learner: Learner) -> None:
    agent: Any = learner.agent
    if learner.config.has_replay:
        agent.collect_rollouts(
            agent.env,
            learner.callback,
            agent.train_freq,
            agent.replay_buffer,
            agent.action_noise,
            agent.learning_starts,
        )
    else:
        agent.collect_rollouts(agent.env, learner.callback, agent.rollout_buffer, agent.n_steps)
        agent._update_current_progress_remaining(agent.num_timesteps, learner.config.steps)


def train(run: Run, learner: Learner) -> Metrics:
    """Train from where the learner stands to the end; return the summary."""
    config = learner.config
    try:
        if config.engine == "rllib":
            from irrl.tasks.gym.rllib_train import train_on_cluster

            train_on_cluster(run, learner)
        else:
            train_here(run, learner)
        metrics = measured_at_end(learner)
        cost = {"steps": learner.step, "seconds": run.seconds, "cpu_seconds": learner.cpu_seconds}
        return run.finish({**metrics, **cost})
    except ValueError as error:
        if "found invalid values" not in str(error):  # what PyTorch says of NaN in a distribution
            raise
        raise UserError(
            f"training diverged before step {learner.step}: the policy gives no finite actions; "
            "lower learning-rate or discriminator-learning-rate, and start anew"
        ) from None
    finally:
        learner.close()


def measured_at_end(learner: Learner) -> dict[str, Any]:
    """Metrics of the learner as it is: those of its last row, where nothing was learned since."""
    step, metrics = learner.measured
    if step == learner.step:
        return metrics
    return evaluate_now(learner.config, learner.described, learner.agent, learner.model)


def train_here(run: Run, learner: Learner) -> None:
    if learner.observed < 0:
        observe(run, learner)
    forget_old(run, learner.step)  # a kill may have come between a checkpoint and this
    learner.begin_segment()
    while learner.step < learner.config.steps:
        learn_once(learner)
        if observe(run, learner):
            learner.begin_segment()


def observe(run: Run, learner: Learner) -> bool:
    """Log a row and save a checkpoint where they are due; whether a checkpoint was saved."""
    config, now = learner.config, learner.step
    end = max(now, config.steps)  # the last rollout may go beyond the last step
    before, learner.observed = learner.observed, now
    due = is_due(before, now, config.evaluate_every, end)
    saves = is_due(before, now, config.checkpoint_every, end)  # at 0 too: there is a row already
    if due or saves:
        learner.look()
        require_finite(now, *learner.agent.policy.state_dict().values())
    if due:
        metrics = evaluate_now(config, learner.described, learner.agent, learner.model)
        learner.measured = (now, metrics)
        run.log({"step": now, **metrics, **learner.take_notes()})
    if saves:
        run.save(now, *learner.to_checkpoint())
        forget_old(run, now)
    return saves


def forget_old(run: Run, now: int) -> None:
    """Remove the checkpoints of before a step, all but the newest ones."""
    paths = checkpoint_paths(run.folder / CHECKPOINTS)
    for old in [path for path in paths if int(path.name) <= now][:-KEPT]:
        remove_checkpoint(old)
