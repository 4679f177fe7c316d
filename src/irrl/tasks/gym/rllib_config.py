"""RLlib's configuration of an agent, as the settings of a run have it."""

import math
from typing import Any

from gymnasium.wrappers import FlattenObservation
from ray.rllib.algorithms.appo import APPOConfig
from ray.rllib.algorithms.ppo import PPOConfig
from ray.tune.registry import register_env

from irrl.adapters.rllib import rewarded
from irrl.runs.config import share_left
from irrl.tasks.gym.chance import seed_of
from irrl.tasks.gym.config import GymConfig
from irrl.tasks.gym.environments import Described, label_path, wrapped
from irrl.tasks.gym.learner import model_options
from irrl.tasks.gym.rllib_policy import is_asynchronous, module_spec

ENVIRONMENT = "irrl"
WAIT = 0.01  # seconds for runners; asking without a pause takes the core that one of them needs
SCHEDULE = 32  # straight pieces of a schedule


def algorithm_config(config: GymConfig, described: Described, begun_at: int) -> Any:
    """RLlib's configuration, with the reward model of the settings."""
    assert isinstance(described.labels, int)  # the settings refuse numbers
    return rewarded(
        stock_config(config, begun_at),
        described.judged,
        described.labels,
        label=label_path(config, described),
        see=described.see,
        flattened=wrapped(config).observation_space,
        **model_options(config, described),
    )


def stock_config(config: GymConfig, begun_at: int) -> Any:
    """RLlib's configuration of the same agent, paid by the environment."""
    register_env(ENVIRONMENT, lambda _: FlattenObservation(wrapped(config)))
    actions = wrapped(config).action_space
    asynchronous = is_asynchronous(config)
    per_runner = math.ceil(config.envs / config.env_runners)
    together = config.rollout * per_runner * config.env_runners
    theirs = APPOConfig() if asynchronous else PPOConfig()
    theirs.environment(ENVIRONMENT, normalize_actions=False, clip_actions=True)
    theirs.env_runners(
        num_env_runners=config.env_runners,
        num_envs_per_env_runner=per_runner,
        rollout_fragment_length=config.rollout,
        batch_mode="complete_episodes" if config.judge == "trajectory" else "truncate_episodes",
    )
    theirs.learners(num_learners=0)  # in this process: a node that dies takes runners only
    theirs.rl_module(rl_module_spec=module_spec(config, actions))
    theirs.training(
        lr=learning_rates(config),
        gamma=config.discount,
        train_batch_size_per_learner=config.batch_size if asynchronous else together,
        grad_clip=0.5,
        entropy_coeff=config.entropy_coef,
        vf_loss_coeff=config.value_coef,
        use_kl_loss=False,
    )
    if asynchronous:
        theirs.training(timeout_s_sampler_manager=WAIT)
    else:
        theirs.training(
            lambda_=config.lambda_,
            minibatch_size=min(config.batch_size, together),
            num_epochs=config.n_epochs,
            vf_clip_param=math.inf,
        )
    theirs.training(clip_param=config.clip_range)
    theirs.debugging(seed=seed_of(config.seed, "environment", begun_at), log_level="ERROR")
    theirs.reporting(min_time_s_per_iteration=None, min_sample_timesteps_per_iteration=together)
    return theirs


def learning_rates(config: GymConfig) -> Any:
    """The step size, or what it falls to, as straight pieces between steps."""
    if config.schedule == "constant":
        return config.learning_rate
    steps = [round(config.steps * n / SCHEDULE) for n in range(SCHEDULE + 1)]
    return [
        [step, config.learning_rate * share_left(config.schedule, step, config.steps)]
        for step in steps
    ]
