"""The policy of an agent of RLlib: its network, and how it acts without a cluster."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from ray.rllib.algorithms.appo.torch.default_appo_torch_rl_module import DefaultAPPOTorchRLModule
from ray.rllib.algorithms.ppo.ppo_catalog import PPOCatalog
from ray.rllib.algorithms.ppo.torch.default_ppo_torch_rl_module import DefaultPPOTorchRLModule
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from torch import nn
from torch.utils import _pytree as pytree

from irrl.adapters.rllib_rows import flattened
from irrl.nn.models import fill
from irrl.tasks.gym.config import GymConfig


class BeginsWithStd:
    """What networks of PPO and APPO share: the first std of continuous actions is a setting."""

    action_space: spaces.Space[Any]
    model_config: dict[str, Any]
    pi: Any

    def setup(self) -> None:
        super().setup()  # type: ignore[misc]
        if not isinstance(self.action_space, spaces.Box):
            return
        first = self.model_config["first_log_std"]
        with torch.no_grad():
            if hasattr(self.pi, "log_std"):
                self.pi.log_std.fill_(first)
            else:  # the second half of what the last layer gives
                last = [layer for layer in self.pi.modules() if isinstance(layer, nn.Linear)][-1]
                last.bias[len(last.bias) // 2 :] = first


class PPOModule(BeginsWithStd, DefaultPPOTorchRLModule):
    """Of PPO."""


class APPOModule(BeginsWithStd, DefaultAPPOTorchRLModule):
    """Of APPO."""


def is_recurrent(config: GymConfig) -> bool:
    return config.agent.startswith("recurrent")


def is_asynchronous(config: GymConfig) -> bool:
    return config.agent.endswith("appo")


def module_spec(config: GymConfig, action_space: spaces.Space[Any], **more: Any) -> RLModuleSpec:
    """The network of the policy, and of the values, as the settings have it."""
    continuous = isinstance(action_space, spaces.Box)
    widths = config.all_widths()
    options = DefaultModelConfig(
        fcnet_hiddens=widths,
        fcnet_activation="tanh",
        vf_share_layers=False,
        free_log_std=continuous and not is_recurrent(config),  # RLlib's knows no axis of time
        use_lstm=is_recurrent(config),
        lstm_cell_size=widths[0],
        max_seq_len=config.rollout,
    )
    return RLModuleSpec(
        module_class=APPOModule if is_asynchronous(config) else PPOModule,
        catalog_class=PPOCatalog,
        model_config={**asdict(options), "first_log_std": config.log_std},
        action_space=action_space,
        **more,
    )


class Policy:
    """Acts as agents of Stable-Baselines3 do: what evaluations and pictures ask for.

    Args:
        config: the settings.
        observed: the space of observations, before they are made vectors.
        action_space: of the environment.
    """

    def __init__(
        self, config: GymConfig, observed: spaces.Space[Any], action_space: spaces.Space[Any]
    ) -> None:
        self.observed, self.action_space = observed, action_space
        self.shape = action_space.shape or ()
        size = spaces.flatdim(observed)
        self.policy: Any = module_spec(
            config,
            action_space,
            observation_space=spaces.Box(-np.inf, np.inf, (size,), np.float32),
            inference_only=True,
        ).build()
        self.policy.eval()

    @torch.no_grad()
    def predict(
        self, observations: Any, state: Any, begun: np.ndarray, deterministic: bool
    ) -> tuple[np.ndarray, Any]:
        """Actions of environments side by side, and what a recurrent policy remembers."""
        shown = torch.from_numpy(flattened(self.observed, observations))
        batch = {Columns.OBS: shown}
        if self.policy.is_stateful():
            batch = {Columns.OBS: shown[:, None], Columns.STATE_IN: self._state(state, begun)}
        found = self.policy.forward_inference(batch)
        inputs = found[Columns.ACTION_DIST_INPUTS]
        if self.policy.is_stateful():
            inputs = inputs[:, 0]
        chosen = self.policy.get_inference_action_dist_cls().from_logits(inputs)
        actions = (chosen.to_deterministic() if deterministic else chosen).sample().numpy()
        if isinstance(self.action_space, spaces.Box):
            actions = np.clip(actions, self.action_space.low, self.action_space.high)
        return actions.reshape(-1, *self.shape), found.get(Columns.STATE_OUT)

    def _state(self, state: Any, begun: np.ndarray) -> Any:
        """Nothing remembered where an episode has begun."""
        first = pytree.tree_map(torch.as_tensor, self.policy.get_initial_state())
        blank = pytree.tree_map(lambda x: x.expand(len(begun), *x.shape), first)
        if state is None:
            return blank
        which = torch.from_numpy(np.asarray(begun))

        def pick(new: torch.Tensor, old: torch.Tensor) -> torch.Tensor:
            return torch.where(which.reshape(-1, *(1 for _ in old.shape[1:])), new, old)

        return pytree.tree_map(pick, blank, state)

    def load(self, weights: Mapping[str, Any]) -> None:
        """Become what a learner's policy is; what only learning needs is left aside."""
        kept = {n: torch.as_tensor(np.array(weights[n])) for n in self.policy.state_dict()}
        self.policy.load_state_dict(kept)

    def to_arrays(self) -> dict[str, np.ndarray]:
        return {name: x.numpy().copy() for name, x in self.policy.state_dict().items()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Become what a checkpoint holds; raises unless it fits."""
        with torch.no_grad():
            fill(self.policy, "", arrays, torch.device("cpu"))
