"""The internal reward model: a discriminator that is still learning, and what it pays a policy.

The loop, the same in every task:

    trajectory = rollout(policy, label)                 # label y ~ p(y)
    reward     = shape(log q(y | trajectory), log p(y)) # never carries a gradient
    policy        <- trajectory, reward
    discriminator <- trajectory, label

A `RewardModel` is the second and the fourth line. It knows episodes, not agents: `Collector` takes
in what parallel environments show and gives back what to pay; `irrl.adapters` has one for agents.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from irrl.densities import Density
from irrl.errors import UserError
from irrl.nn.models import Arrays
from irrl.reward_model import archive, saving
from irrl.reward_model.alike import accepted_oracle
from irrl.reward_model.continuous import Continuous
from irrl.reward_model.discriminator import Discriminator, Make, frozen
from irrl.reward_model.health import LOOKED_AT, health_of, health_of_model, warn
from irrl.reward_model.kinds import kind_of
from irrl.reward_model.numbers import Numbers
from irrl.reward_model.payment import payments_of_episode
from irrl.reward_model.settings import Settings
from irrl.reward_model.spaces import Part, Parts, as_parts, length_of, to_parts
from irrl.reward_model.store import Batch, EpisodeStore, first_and_last
from irrl.reward_model.visits import make_visits, visits_bonus


class RewardModel:
    """Discriminator and reward function: learns q(y | trajectory), and pays for it.

    Args:
        observation_space: of what it judges (Gymnasium): vectors, images, categories, dictionaries.
        labels: how many there are, or an `irrl.Continuous` for labels that are numbers.
        discriminator: one of your own: a `torch.nn.Module` that maps observations ``(T, B, ...)``
            to logits or log-probabilities ``(T, B, labels)``, or a function that makes one. Those
            at step t may depend on observations up to t only; what follows may be padding. For D
            numbers it gives D means and D log standard deviations, both in prior standard
            deviations, or logits of D times as many bins.
        oracle: another reward model, whose frozen discriminator pays in place of the learned one.
        **settings: see `Settings`.

    Example:
        >>> import numpy as np
        >>> from gymnasium.spaces import Box
        >>> model = RewardModel(Box(-1.0, 1.0, (2,)), labels=4, mode="skills")
        >>> episode = np.zeros((26, 2), np.float32)   # of 25 actions
        >>> model.rewards(episode, label=3).shape
        (25,)
        >>> model.add(episode, label=3)
        >>> sorted(model.learn())
        ['discriminator_batches', 'discriminator_loss']
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any] | Mapping[str, Part],
        labels: int | Continuous,
        discriminator: Make = None,
        oracle: "RewardModel | None" = None,
        **settings: Any,
    ) -> None:
        self.parts = as_parts(observation_space)
        if isinstance(labels, Continuous):
            settings = {"reward": "ball", **settings}
        self.settings = Settings.from_json(settings)
        self.kind = kind_of(labels, self.settings)
        self.labels = self.kind.labels
        self.discriminator = Discriminator(self.parts, self.kind, self.settings, discriminator)
        self.oracle = None if oracle is None else frozen(accepted_oracle(self, oracle))
        self.store = self.make_store(self.settings.store or 1)
        self.held_out = self.make_store(LOOKED_AT)
        self.visits = make_visits(self.parts, self.settings)
        self.label_counts = np.zeros(self.kind.counts_size, np.int64)
        self.updates = 0
        self.new = (0, 0)  # episodes and states that it has not learned from yet
        self.revision = 0  # of the discriminator in this process: what was read with another is old
        self._told_of_leak = False

    def make_store(self, capacity: int) -> EpisodeStore:
        """An empty store for episodes such as this model learns from."""
        return EpisodeStore(self.parts, capacity, self.kind.nothing(0), self.kind.moves)

    # --- the prior and the reward ---

    @property
    def episodes(self) -> int:
        """Episodes seen so far."""
        return int(self.label_counts.sum())

    @property
    def judge(self) -> Discriminator:
        """The discriminator that pays: the oracle where there is one."""
        return self.discriminator if self.oracle is None else self.oracle

    def log_prior(self) -> np.ndarray:
        """What is believed before anything was seen: of classes log-probabilities."""
        return self.kind.prior(self.label_counts)

    def potential(self, beliefs: Tensor, labels: np.ndarray, seen: Parts) -> np.ndarray:
        """Rewards ``(n,)`` of members' beliefs ``(N, n, P)``, and of what was seen last."""
        if self.episodes < self.settings.warm_up:
            return np.zeros(len(labels))
        y = torch.from_numpy(labels).to(beliefs.device)
        rewards = self.kind.rewards(beliefs, y, self.label_counts)
        if self.settings.bonus and self.visits is None:
            rewards = rewards + self.settings.bonus * self.kind.disagreement(beliefs)
        found = rewards.cpu().numpy().astype(float)
        if self.visits is not None:
            found += self.settings.bonus * visits_bonus(self.visits.of(seen))
        if not np.isfinite(found).all():
            raise UserError("the discriminator diverged: lower its learning_rate and start anew")
        return found

    @torch.no_grad()
    def rewards(self, observations: Any, label: Any) -> np.ndarray:
        """What each action of a whole episode is paid.

        Args:
            observations: of the episode, the first and the last included: ``(T + 1, ...)``, or a
                dictionary of such arrays.
            label: of the episode; where labels move, those of all observations but the last.

        Returns:
            Payments of the T actions.
        """
        parts, labels, length = self._labelled(observations, label)
        labels = labels if self.kind.moves else np.repeat(labels, length, axis=0)
        potentials = self.potential(self.judge.judge_steps(parts), labels, parts)
        if self.kind.moves:  # an action is paid for what was seen before it
            potentials = np.concatenate([[0.0], potentials])
        return payments_of_episode(self.settings.pay, potentials)

    @torch.no_grad()
    def beliefs(self, observations: Any) -> np.ndarray:
        """What is believed after each observation of an episode: ``(T, P)``."""
        return self.kind.mixture(self.judge.judge_steps(self._episode(observations)[0]))

    def log_probs(self, observations: Any) -> np.ndarray:
        """Log-probabilities of the labels after each observation of an episode: ``(T, labels)``."""
        if isinstance(self.labels, Continuous):
            raise UserError("continuous labels have no log_probs: see density and predict")
        return self.beliefs(observations)

    def density(self, observations: Any) -> Density:
        """The density of a continuous label after each observation of an episode, in PyTorch."""
        if not isinstance(self.kind, Numbers):
            raise UserError("labels that are classes have no density: see log_probs")
        return self.kind.density(torch.from_numpy(self.beliefs(observations)))

    def predict(self, observations: Any) -> np.ndarray:
        """What is predicted after each observation: means of numbers, logits of classes."""
        return self.kind.predictions(self.beliefs(observations))

    def _episode(self, observations: Any) -> tuple[Parts, int]:
        length = length_of(self.parts, observations)
        return to_parts(self.parts, observations, (length,), axis="step"), length

    def _labelled(self, observations: Any, label: Any) -> tuple[Parts, np.ndarray, int]:
        """Observations that there are labels for, those labels, and how many steps there are."""
        parts, length = self._episode(observations)
        labels = self.kind.one(label)
        if self.kind.moves:
            if len(labels) != length - 1:
                raise UserError(
                    f"label must have one for each of {length - 1} actions, got {len(labels)}"
                )
            parts, length = {name: array[:-1] for name, array in parts.items()}, length - 1
        return parts, labels, length

    # --- learning ---

    def add(self, observations: Any, label: Any) -> None:
        """Take in a whole episode, with its first and its last observation."""
        parts, labels, length = self._labelled(observations, label)
        if length + self.kind.moves < 2:
            raise UserError("an episode must have its first and its last observation, got one")
        self.add_many(parts, np.array([length]), labels)

    def add_many(self, observations: Parts, lengths: np.ndarray, labels: np.ndarray) -> None:
        """Take in episodes that lie one after the other in arrays by part.

        Where labels move, they lie so too, and the last observations, which have none, are absent.
        """
        labels = self.kind.accept(labels)
        if self.settings.judge == "final":  # the first one is kept to see whether it tells
            observations, lengths = first_and_last(observations, lengths)
        judged = slice(1, None, 2) if self.settings.judge == "final" else slice(None)
        seen = {name: array[judged] for name, array in observations.items()}
        self.discriminator.features.normaliser.add(seen)
        if self.visits is not None:
            self.visits.add(seen)
        random = np.random.default_rng([self.settings.seed, 1, self.episodes])
        held_out = random.random(len(lengths)) < self.settings.held_out
        for store, chosen in ((self.store, ~held_out), (self.held_out, held_out)):
            if chosen.any():
                rows = np.repeat(chosen, lengths)
                kept = {name: array[rows] for name, array in observations.items()}
                store.add(kept, lengths[chosen], labels[rows if self.kind.moves else chosen])
        self.label_counts += self.kind.counts(labels, len(lengths))
        self.new = (self.new[0] + len(lengths), self.new[1] + int(lengths.sum()))

    @property
    def batches_due(self) -> float:
        """How many batches the new episodes call for."""
        new = self.new[self.settings.judge == "state"]
        return new * (self.settings.samples_per_episode or 1) / (self.settings.batch_size or 1)

    def learn(self) -> dict[str, float]:
        """Learn from stored episodes, as many batches as the new ones call for; say how it went."""
        if not self.new[0] or not len(self.store):
            return {}
        self.discriminator.features.normaliser.settle()
        batches = math.ceil(self.batches_due)
        random = np.random.default_rng([self.settings.seed, 2, self.updates])
        self.revision += 1
        with self.discriminator.own_chance(int(random.integers(2**31))):  # if a module uses any
            self.discriminator.train()
            losses = [self.discriminator.learn(self._sample(random)) for _ in range(batches)]
            self.discriminator.eval()
        if not np.isfinite(losses).all():
            raise UserError("the discriminator diverged: lower its learning_rate and start anew")
        self.new = (0, 0)
        self.updates += 1
        return {
            "discriminator_loss": float(np.mean(losses)),
            "discriminator_batches": float(batches),
        }

    def _sample(self, random: np.random.Generator) -> Batch:
        size = self.settings.batch_size
        if self.settings.judge == "state":
            return self.store.states(random.integers(self.store.steps, size=size))
        return self.store.episodes(random.integers(len(self.store), size=size))

    # --- health ---

    def health(self) -> dict[str, float]:
        """How the discriminator is doing on episodes that it never learned from.

        Beside the numbers of `irrl.diagnostics.discriminator_health` (`density_health`): n_skills
        (Eq. 9) of classes, accuracy (squared error) on episodes it did learn from, by which
        overfitting shows, and on first observations, which may give the label away.
        """
        found, said = health_of_model(self)
        if said and not self._told_of_leak:
            self._told_of_leak = True
            warn(said)
        return found

    def health_of(self, beliefs: np.ndarray, labels: np.ndarray) -> dict[str, float]:
        """Health by given beliefs, shape ``(n, P)``; n_skills among that of classes."""
        return health_of(self, beliefs, labels)

    # --- to and from files ---

    def to_checkpoint(self, store: bool = True) -> tuple[Arrays, dict[str, Any]]:
        """All it needs to go on, as arrays and JSON; without its stored episodes it can pay."""
        return saving.to_checkpoint(self, store)

    def restore(self, arrays: Arrays, state: Mapping[str, Any]) -> None:
        """Become what a checkpoint holds; raises if it is of other observations or labels."""
        saving.restore(self, arrays, state)

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` takes: arrays and JSON of `to_checkpoint`."""
        arrays, state = self.to_checkpoint()
        return {"arrays": arrays, "state": state}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Become what `state_dict` gave."""
        self.restore(saved["arrays"], saved["state"])

    def save(self, path: str | Path, store: bool = True) -> None:
        """Write one file (safetensors, with JSON in its header); it holds no code."""
        archive.write(Path(path), *self.to_checkpoint(store))

    @classmethod
    def load(cls, path: str | Path, discriminator: Make = None, oracle: Self | None = None) -> Self:
        """A reward model from a file. Modules of your own are no part of it: give them again.

        Args:
            path: of the file.
            discriminator: your own, if it was made with one.
            oracle: needed only if that one has a discriminator of your own.
        """
        return saving.load(cls, Path(path), discriminator, oracle)
