"""RLlib (new API stack): a learner that holds a reward model, for one run on many machines.

    config = PPOConfig().environment(...).env_runners(num_env_runners=8)
    algorithm = rewarded(config, space, labels=10).build_algo()

Env runners act, and say where episodes end. The reward is computed in the learner, by the newest
discriminator: for PPO before GAE reads it, for APPO in the loss, before V-trace does, each time a
batch is replayed. The discriminator learns in the same update, after the policy. Its weights never
leave the learner. ``algorithm.save_to_path`` saves the reward model as well, with all its episodes.
"""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.algorithms.appo.torch.appo_torch_learner import APPOTorchLearner
from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.connectors.learner import GeneralAdvantageEstimation
from ray.rllib.core.columns import Columns
from torch import Tensor

from irrl.adapters.common import See
from irrl.adapters.rllib_pieces import (
    OURS,
    AddJudged,
    make_see,
    mark_ends,
    note_beginning,
    seed_apart,
)
from irrl.adapters.rllib_rows import END, PREFIX, Rows, of_columns, pay, take_in
from irrl.errors import UserError
from irrl.reward_model import RewardModel
from irrl.reward_model.discriminator import Make

STATE = "reward_model"
HEALTH_EVERY = 20  # updates of the discriminator


def rewarded(
    config: AlgorithmConfig,
    observation_space: spaces.Space[Any],
    labels: int,
    discriminator: Make = None,
    label: str = "label",
    see: See | None = None,
    flattened: spaces.Space[Any] | None = None,
    **settings: Any,
) -> AlgorithmConfig:
    """A configuration of PPO or APPO whose learner holds a reward model.

    Where episodes are paid at the end, an end is a termination: a time limit is no reason to expect
    more. A judge of trajectories needs ``batch_mode="complete_episodes"``.

    Args:
        config: the user's; it is left as it is.
        observation_space: of what is judged, as `irrl.RewardModel` takes it.
        labels: how many there are.
        discriminator: as `irrl.RewardModel` takes it.
        label: where ``info`` has the label; a path such as ``"prediction.target"``.
        see: what of observations is judged, as a function of them, with a leading axis; for those
            of `irrl.envs.Skills` all but the code, else all.
        flattened: the space of the environment, where Gymnasium's ``FlattenObservation`` or
            RLlib's ``FlattenObservations`` made vectors of its observations.
        **settings: see `irrl.reward_model.settings.Settings`; ``oracle`` as the reward model takes
            it.

    Returns:
        A copy, to be built or changed further.

    Example:
        >>> from gymnasium.spaces import Box
        >>> from ray.rllib.algorithms.ppo import PPOConfig
        >>> config = rewarded(PPOConfig(), Box(-1.0, 1.0, (2,)), labels=4, mode="skills")
        >>> config.learner_class.__name__
        'RewardedPPOLearner'
    """
    learner_class = _learner_class(config)
    if not isinstance(labels, int):
        raise UserError(f"a reward model in RLlib judges classes: labels is a number, got {labels}")
    make = partial(RewardModel, observation_space, labels, discriminator, **settings)
    model = make()
    _require_carried(config, model)
    is_final = model.settings.judge == "final"
    judged = partial(AddJudged, model.parts, make_see(see, flattened), is_final)
    mark = partial(mark_ends, label, model.settings.ends_are_final)
    found = config.copy(copy_frozen=False)
    found.learners(
        learner_class=learner_class,
        learner_connector=partial(_connectors, config._learner_connector, judged),
        learner_config_dict={OURS: make},
    )
    found.callbacks(
        on_environment_created=[*_listed(config.callbacks_on_environment_created), seed_apart],
        on_episode_start=[*_listed(config.callbacks_on_episode_start), note_beginning],
        on_sample_end=[*_listed(config.callbacks_on_sample_end), mark],
    )
    return found


# --- what is refused ---


def _learner_class(config: AlgorithmConfig) -> type:
    theirs = config.learner_class
    for ours, base in ((RewardedPPOLearner, PPOTorchLearner),
                       (RewardedAPPOLearner, APPOTorchLearner)):  # fmt: skip
        if theirs is base:
            return ours
        if isinstance(theirs, type) and issubclass(theirs, ours):
            return theirs
    raise UserError(
        "a reward model goes with PPO and APPO on PyTorch, got "
        f"{getattr(theirs, '__name__', theirs)}: derive a learner of your own from theirs here"
    )


def _require_carried(config: AlgorithmConfig, model: RewardModel) -> None:
    if config.is_multi_agent:
        raise UserError("a reward model in RLlib is for one agent, the configuration has several")
    if config.num_learners > 1:
        raise UserError(
            f"a reward model in RLlib has one learner, got num_learners={config.num_learners}: "
            "take 0 or 1, and as many env runners as you like"
        )
    if model.settings.judge != "trajectory":
        return
    if config.batch_mode != "complete_episodes":
        raise UserError(
            "judge 'trajectory' reads whole episodes: set batch_mode='complete_episodes', or take "
            "judge 'final' or 'state'"
        )
    if config.minibatch_size and issubclass(config.learner_class, APPOTorchLearner):
        raise UserError("judge 'trajectory' of APPO reads whole batches: leave minibatch_size out")


# --- in the learner's pipeline ---


def _connectors(theirs: Any, ours: Callable[[], ConnectorV2], *given: Any) -> list[ConnectorV2]:
    """The user's own connectors, then ours."""
    pieces = theirs(*given) if theirs is not None else []
    return [*(pieces if isinstance(pieces, list | tuple) else [pieces]), ours()]


def _listed(callbacks: Any) -> list[Callable[..., None]]:
    return list(callbacks) if isinstance(callbacks, list | tuple) else [callbacks] * bool(callbacks)


class PayBeforeGAE(ConnectorV2):
    """Puts rewards in place, and hands episodes to the reward model.

    Args:
        learner: that holds the reward model.
    """

    def __init__(self, learner: "HoldsRewardModel") -> None:
        super().__init__()
        self.learner = learner

    def __call__(self, *, batch: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Pay, then take in: a state is not yet visited when it is paid for."""
        for columns in batch.values():
            self.learner.pay(columns)
            self.learner.take_in(columns)
            for name in [name for name in columns if name.startswith(PREFIX)]:
                del columns[name]
        return batch


# --- learners ---


class HoldsRewardModel:
    """What learners of PPO and APPO share: a reward model that pays, learns and is saved."""

    config: Any
    metrics: Any
    reward_model: RewardModel

    def build(self) -> None:
        """Make the reward model, then the rest."""
        self.reward_model = self.config.learner_config_dict[OURS]()
        self.using_model = threading.RLock()
        self._usual_length: int | None = None
        self._told: dict[str, float] = {}
        super().build()  # type: ignore[misc]

    def pay(self, columns: Any) -> None:
        """Put what the reward model pays in place of rewards."""
        rewards: Tensor = columns[Columns.REWARDS]
        if self.reward_model.settings.pay == "environment":
            return
        rows, slots = of_columns(columns)
        found = np.zeros(slots.shape, np.float32)
        with self.using_model:
            found[slots] = pay(self.reward_model, rows)
        columns[Columns.REWARDS] = rewards.new_tensor(found)

    def take_in(self, columns: Any) -> None:
        """Hand episodes over to the discriminator."""
        rows, _ = of_columns(columns)
        self._require_one_length(rows)
        with self.using_model:
            take_in(self.reward_model, rows)

    def _require_one_length(self, rows: Rows) -> None:
        settings = self.reward_model.settings
        if settings.pay != "steps" or settings.varying_length:
            return
        for length in map(int, rows.times[rows.kinds == END]):
            self._usual_length = self._usual_length or length
            if length != self._usual_length:
                raise UserError(
                    f"pay 'steps' where episodes differ in length ({self._usual_length} and "
                    f"{length} steps) pays for dawdling: take pay 'differences' or 'end', or say "
                    "varying_length=True"
                )

    def after_gradient_based_update(self, *, timesteps: dict[str, Any]) -> None:
        """The policy has learned; the discriminator does."""
        super().after_gradient_based_update(timesteps=timesteps)  # type: ignore[misc]
        with self.using_model:
            found = self.reward_model.learn() if self.reward_model.batches_due >= 1 else {}
            if found and self.reward_model.updates % HEALTH_EVERY == 1:
                self._told |= self.reward_model.health()
        self._told |= found
        if self._told:
            self.metrics.log_dict(self._told, key=STATE, window=1)

    def get_state(
        self, components: Any = None, *, not_components: Any = None, **options: Any
    ) -> Any:
        """With the reward model, where not only weights of policies are asked for."""
        both = {"not_components": not_components, **options}
        state = super().get_state(components, **both)  # type: ignore[misc]
        if self._check_component(STATE, components, not_components):  # type: ignore[attr-defined]
            with self.using_model:
                state[STATE] = self.reward_model.state_dict()
        return state

    def set_state(self, state: Any) -> None:
        """With the reward model, if there is one in it."""
        super().set_state(state)  # type: ignore[misc]
        if STATE in state:
            with self.using_model:
                self.reward_model.load_state_dict(state[STATE])


class RewardedPPOLearner(HoldsRewardModel, PPOTorchLearner):
    """PPO: the reward is in place when advantages are computed."""

    def build(self) -> None:
        """Put our piece of the pipeline before GAE."""
        super().build()
        self._learner_connector.insert_before(GeneralAdvantageEstimation, PayBeforeGAE(self))


class RewardedAPPOLearner(HoldsRewardModel, APPOTorchLearner):
    """APPO: the reward is computed in the loss, anew for each replay of a batch."""

    failure: Exception | None = None  # of the learner's thread, whose death nobody would notice

    def update(self, training_data: Any, **options: Any) -> Any:
        """Raise here what went wrong in the learner's thread; leave out what died with a node."""
        training_data.solve_refs()
        if training_data.episodes is not None and not training_data.episodes:
            return {}  # RLlib would look for the first of them
        found = super().update(training_data, **options)
        if self.failure is not None:
            raise self.failure
        return found

    def _make_batch_if_necessary(self, training_data: Any) -> Any:
        batch = super()._make_batch_if_necessary(training_data)
        # The learner's thread asks again for each replay; episodes are handed over once.
        if threading.current_thread() is not getattr(self, "_learner_thread", None):
            for columns in batch.policy_batches.values():
                self.take_in(columns)
        return batch

    def compute_loss_for_module(self, *, batch: Any, **options: Any) -> Tensor:
        """Pay, then let V-trace read the rewards."""
        try:
            self.pay(batch)
        except Exception as error:
            self.failure = error
        return super().compute_loss_for_module(batch=batch, **options)

    def after_gradient_based_update(self, *, timesteps: dict[str, Any]) -> None:
        """The same, with failures kept for the thread that can tell of them."""
        try:
            super().after_gradient_based_update(timesteps=timesteps)
        except Exception as error:
            self.failure = error
