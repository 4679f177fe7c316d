"""Agents of Stable-Baselines3: made from settings; to and from a checkpoint without pickle."""

from collections.abc import Mapping
from operator import attrgetter
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecEnv

from irrl.adapters.sb3_replay import replay
from irrl.adapters.sb3_standardised import standardised
from irrl.errors import UserError
from irrl.nn.models import fill, require_like, restored
from irrl.runs.config import share_left
from irrl.runs.reading import is_step
from irrl.tasks.gym.config import GymConfig

COUNTERS = ("num_timesteps", "_n_updates", "_episode_num", "_n_calls")
MOMENTS = {  # what an optimiser remembers of each parameter, beside the number of its steps
    "Adam": ("exp_avg", "exp_avg_sq"),
    "RMSprop": ("square_avg",),
}
GAIN = 0.01  # of the last layer of a policy, as Stable-Baselines3 makes it


# --- made anew ---


def make_agent(config: GymConfig, env: VecEnv) -> BaseAlgorithm:
    """An agent at its start; its first weights come from the global generators."""
    known: dict[str, Any] = {
        "env": env,
        "policy": policy_name(config, env),
        "gamma": config.discount,
        "device": config.device,
        "policy_kwargs": policy_options(config, env),
    }
    known |= replay_options(config, env) if config.has_replay else rollout_options(config)
    agent = class_of(config.agent)(learning_rate=config.learning_rate, **known)
    if config.action_gain is not None:
        with torch.no_grad():
            agent.policy.action_net.weight.mul_(config.action_gain / GAIN)

    def learning_rate(progress_remaining: float) -> float:
        left = share_left(config.schedule, min(agent.num_timesteps, config.steps), config.steps)
        return config.learning_rate * left

    agent.lr_schedule = learning_rate
    return agent


def class_of(agent: str) -> Any:
    if agent == "recurrent-ppo":
        from sb3_contrib import RecurrentPPO

        return RecurrentPPO
    return {"ppo": PPO, "a2c": A2C, "dqn": DQN, "sac": SAC, "td3": TD3}[agent]


def policy_name(config: GymConfig, env: VecEnv) -> str:
    named = isinstance(env.observation_space, spaces.Dict)
    kind = "MultiInput" if named else "Mlp"
    return f"{kind}LstmPolicy" if config.agent == "recurrent-ppo" else f"{kind}Policy"


def policy_options(config: GymConfig, env: VecEnv) -> dict[str, Any]:
    options: dict[str, Any] = {"net_arch": config.all_widths()}
    if isinstance(env.action_space, spaces.Box) and not config.has_replay:
        options["log_std_init"] = config.log_std
    if config.observe == "standardised":
        options |= standardised()
    if config.agent == "recurrent-ppo":
        options["lstm_hidden_size"] = config.all_widths()[0]
    return options


def rollout_options(config: GymConfig) -> dict[str, Any]:
    options = {
        "n_steps": config.rollout,
        "gae_lambda": config.lambda_,
        "ent_coef": config.entropy_coef,
        "vf_coef": config.value_coef,
    }
    if config.agent != "a2c":
        whole = config.rollout * config.envs
        options |= {
            "batch_size": min(config.batch_size, whole),
            "n_epochs": config.n_epochs,
            "clip_range": config.clip_range,
        }
    return options


def replay_options(config: GymConfig, env: VecEnv) -> dict[str, Any]:
    options: dict[str, Any] = {
        "batch_size": config.batch_size,
        "buffer_size": config.buffer_size,
        "learning_starts": config.learning_starts,
        "train_freq": config.rollout,
        "gradient_steps": config.gradient_steps,
    }
    if config.agent == "sac":
        options["ent_coef"] = config.entropy_coef or "auto"
    return {**options, **replay(env)}


# --- to and from a checkpoint ---


def to_arrays(agent: BaseAlgorithm) -> dict[str, np.ndarray]:
    """All tensors of an agent by name: networks, what its optimisers remember, its buffer."""
    found: dict[str, torch.Tensor] = {}
    networks, variables = agent._get_torch_save_params()
    for name in networks:
        state = attrgetter(name)(agent).state_dict()
        if "param_groups" in state:
            state = {f"{i}.{k}": v for i, each in state["state"].items() for k, v in each.items()}
        found |= {f"{name}.{key}": value for key, value in state.items()}
    found |= {name: attrgetter(name)(agent) for name in variables}
    arrays = {name: torch.as_tensor(x).detach().cpu().numpy() for name, x in found.items()}
    buffer = getattr(agent, "replay_buffer", None)
    if buffer is not None:
        arrays |= {f"replay.{name}": array for name, array in buffer.to_arrays().items()}
    return arrays


def counters(agent: BaseAlgorithm) -> dict[str, int]:
    return {name: int(getattr(agent, name)) for name in COUNTERS if hasattr(agent, name)}


def restore(agent: BaseAlgorithm, arrays: Mapping[str, np.ndarray], counts: Any) -> None:
    """Give an agent that was just made what another one of its kind had."""
    networks, variables = agent._get_torch_save_params()
    for name in networks:
        its = attrgetter(name)(agent)
        kept = _below(f"{name}.", arrays, networks)
        if isinstance(its, torch.optim.Optimizer):
            _restore_optimiser(name, its, arrays, list(kept))
        else:
            with torch.no_grad():
                fill(its, f"{name}.", arrays, agent.device)
            if odd := sorted(set(kept) - set(its.state_dict())):
                raise UserError(
                    f"the checkpoint is of another configuration: it has {name}.{odd[0]}"
                )
    for name in variables:
        its = attrgetter(name)(agent)
        value = restored(arrays, name)
        require_like(name, value, its)
        with torch.no_grad():
            its.copy_(value)
    buffer = getattr(agent, "replay_buffer", None)
    if buffer is not None:
        prefix = "replay."
        kept = {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
        try:
            buffer.restore(kept)
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"the checkpoint's replay buffer is damaged: {error}") from None
    for name in counters(agent):
        if not isinstance(counts, Mapping) or not is_step(counts.get(name)):
            raise UserError(f"damaged checkpoint: it does not know the agent's {name}")
        setattr(agent, name, counts[name])


def _below(prefix: str, arrays: Mapping[str, Any], networks: list[str]) -> dict[str, Any]:
    """What belongs to a network and to none that is named below it, such as its optimiser."""
    deeper = [f"{n}." for n in networks if n.startswith(prefix)]
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix) and not name.startswith(tuple(deeper))
    }


def _restore_optimiser(
    name: str, optimiser: Any, arrays: Mapping[str, np.ndarray], kept: list[str]
) -> None:
    """Moments by the number of their parameter; its step sizes are those of the settings.

    It goes by addresses, so shapes are checked here. A parameter that had no gradient yet has none.
    """
    state: dict[int, dict[str, torch.Tensor]] = {}
    parameters = [p for group in optimiser.param_groups for p in group["params"]]
    for number in sorted({key.partition(".")[0] for key in kept}):
        if not number.isdecimal() or int(number) >= len(parameters):
            raise UserError(f"the checkpoint is of another configuration: it has {name}.{number}")
        its = parameters[int(number)]
        expected = dict.fromkeys(MOMENTS[type(optimiser).__name__], its)
        found = {m: restored(arrays, f"{name}.{number}.{m}") for m in ("step", *expected)}
        for moment, like in expected.items():
            require_like(f"{name}.{number}.{moment}", found[moment], like)
        if found["step"].ndim or not 0 <= found["step"] < torch.inf:
            raise UserError(f"the checkpoint is damaged: {name}.{number}.step is no count of steps")
        state[int(number)] = found
    if odd := sorted(set(kept) - {f"{n}.{m}" for n, found in state.items() for m in found}):
        raise UserError(f"the checkpoint is of another configuration: it has {name}.{odd[0]}")
    whole = optimiser.state_dict()
    optimiser.load_state_dict({**whole, "state": state})
