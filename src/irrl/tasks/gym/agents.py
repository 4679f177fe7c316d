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
from irrl.errors import UserError
from irrl.runs.config import share_left
from irrl.tasks.gym.config import GymConfig

COUNTERS = ("num_timesteps", "_n_updates", "_episode_num", "_n_calls")


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
    if config.agent == "recurrent-ppo":
        options["lstm_hidden_size"] = config.all_widths()[0]
    return options


def rollout_options(config: GymConfig) -> dict[str, Any]:
    options = {
        "n_steps": config.rollout,
        "gae_lambda": config.lambda_,
        "ent_coef": config.entropy_coef,
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
            _restore_optimiser(name, its, kept)
        else:
            _restore_network(name, its, kept)
    for name in variables:
        with torch.no_grad():
            attrgetter(name)(agent).copy_(_tensor(name, arrays.get(name)))
    buffer = getattr(agent, "replay_buffer", None)
    if buffer is not None:
        prefix = "replay."
        kept = {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
        try:
            buffer.restore(kept)
        except (KeyError, ValueError) as error:
            raise UserError(f"the checkpoint's replay buffer is damaged: {error}") from None
    for name in counters(agent):
        if not isinstance(counts, Mapping) or not isinstance(counts.get(name), int):
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


def _restore_network(name: str, network: torch.nn.Module, kept: Mapping[str, Any]) -> None:
    for key, now in network.state_dict().items():
        value = _tensor(f"{name}.{key}", kept.get(key))
        if value.shape != now.shape:
            raise UserError(
                f"the checkpoint is of another configuration: {name}.{key} has shape "
                f"{tuple(value.shape)}, expected {tuple(now.shape)}"
            )
        with torch.no_grad():
            now.copy_(value)


def _restore_optimiser(name: str, optimiser: Any, kept: Mapping[str, Any]) -> None:
    """Moments by the number of their parameter; its step sizes are those of the settings."""
    state: dict[int, dict[str, torch.Tensor]] = {}
    parameters = [p for group in optimiser.param_groups for p in group["params"]]
    for key, array in kept.items():
        number, _, moment = key.partition(".")
        if not number.isdigit() or int(number) >= len(parameters):
            raise UserError(f"the checkpoint is of another configuration: it has {name}.{key}")
        value = _tensor(f"{name}.{key}", array)
        if value.ndim and value.shape != parameters[int(number)].shape:
            raise UserError(
                f"the checkpoint is damaged: {name}.{key} has shape {tuple(value.shape)}"
            )
        state.setdefault(int(number), {})[moment] = value
    whole = optimiser.state_dict()
    optimiser.load_state_dict({**whole, "state": state})


def _tensor(name: str, array: Any) -> torch.Tensor:
    if array is None:
        raise UserError(f"the checkpoint is of another configuration: it has no {name}")
    return torch.tensor(array)
