"""The preference model: scores learned from comparisons, and what they pay a policy.

The loop, the same in every task, where the label of a pair is which of the two is better:

    trajectory = rollout(policy, label)                 # in random order: p(y) = 1/2
    reward     = shape(log q(y | trajectory), log p(y)) # never carries a gradient
    policy        <- trajectory, reward
    discriminator <- trajectory, label                  # as a judge or a person says

A `PreferenceModel` is the second and the fourth line. It knows neither agents nor judges:
`irrl.adapters.sb3_preferences` and `irrl.adapters.trl` bring them together.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from irrl.ensembles import log_mean_exp
from irrl.errors import UserError
from irrl.nn.models import Arrays
from irrl.preference_model import saving
from irrl.preference_model.comparisons import ComparisonStore, require_answer, require_different
from irrl.preference_model.health import LOOKED_AT, drift_of, health_of_model
from irrl.preference_model.scorer import Make, Scorer
from irrl.preference_model.settings import PreferenceSettings
from irrl.preferences import preference
from irrl.reward_model import archive
from irrl.reward_model.spaces import Part, Parts, as_parts, length_of, to_parts


class PreferenceModel:
    """Scores learned from comparisons (Bradley and Terry), and rewards made of them.

    What is compared is a segment: one or more steps, each an observation of the space (with the
    action in it, where that counts). Its score is the sum of its steps'. Something that has no
    steps, such as the features of a text, is a segment of one.

    Args:
        observation_space: of a step (Gymnasium): vectors, images, categories, dictionaries.
        network: a function that makes a `torch.nn.Module` of your own, which maps observations
            ``(T, B, ...)`` to scores ``(T, B, 1)``, each step by itself.
        **settings: see `PreferenceSettings`.

    Example:
        >>> import numpy as np
        >>> from gymnasium.spaces import Box
        >>> model = PreferenceModel(Box(-1.0, 1.0, (2,)), reward="linear")
        >>> left, right = np.full((25, 2), -1.0), np.full((25, 2), 1.0)
        >>> model.add(right, left, better=1)   # a judge likes the first one better
        >>> sorted(model.learn())
        ['preference_batches', 'preference_loss', 'score_drift']
        >>> model.rewards(right).shape         # of each step
        (25,)
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any] | Mapping[str, Part],
        network: Make = None,
        **settings: Any,
    ) -> None:
        self.parts = as_parts(observation_space)
        self.settings = PreferenceSettings.from_json(settings)
        self.reward_fn = self.settings.reward_fn
        self.scorer = Scorer(self.parts, self.settings, network)
        self.store = ComparisonStore(self.parts, self.settings.store)
        self.held_out = ComparisonStore(self.parts, LOOKED_AT)
        self.references: Parts | None = None  # stored steps to compare with, (M, ...)
        self.comparisons = 0  # seen so far
        self.new = 0  # of which it has not learned from yet
        self.updates = 0

    # --- scores and rewards ---

    def scores(self, segment: Any) -> np.ndarray:
        """Scores of the steps of a segment, ``(T,)``: the mean over networks."""
        return self._scores(self._steps(segment)).mean(dim=0).double().cpu().numpy()

    def log_preferences(self, steps: Any, references: Any = None) -> np.ndarray:
        """Two-label log-posteriors ``(n, 2)`` of n steps: worse or better than a reference."""
        log_probs = preference(*self._against(steps, references))
        return np.asarray(log_mean_exp(np, log_probs.cpu().numpy()))

    def rewards(self, steps: Any, references: Any = None) -> np.ndarray:
        """What steps are paid, each by itself.

        Args:
            steps: observations ``(n, ...)``, or a dictionary of such arrays.
            references: what each is compared with, ``(n, M, ...)``; the stored steps that were
                drawn with the last update, if left out.

        Returns:
            Payments, shape ``(n,)``.

        Raises:
            ValueError: where there are no references: nothing was given, nothing was learned.
        """
        scores, reference_scores = self._against(steps, references)
        if self.reward_fn is None:
            paid = (scores - reference_scores.mean(dim=-1)).mean(dim=0)
        else:
            log_probs = preference(scores, reference_scores)
            better = torch.ones(scores.shape[1], dtype=torch.long, device=scores.device)
            paid = self.reward_fn(log_probs, better, ensemble=True)
        return np.asarray(paid.double().cpu().numpy())

    def _against(self, steps: Any, references: Any) -> tuple[Tensor, Tensor]:
        """Scores of steps ``(N, n)``, and of what each is compared with ``(N, n, M)``."""
        scores = self._scores(self._steps(steps))
        n = scores.shape[1]
        if references is not None:
            many = np.shape(next(_leaves(references)))[1:2]
            if not many or not many[0]:
                raise UserError("references must hold at least one for each step, got none")
            given = to_parts(self.parts, references, (n, many[0]), axis="step")
            flat = {name: array.reshape(-1, *array.shape[2:]) for name, array in given.items()}
            return scores, self._scores(flat).reshape(-1, n, many[0])
        if self.references is None:
            raise UserError(
                "there are no references to compare with: add comparisons and learn first, or give "
                "references"
            )
        return scores, self._scores(self.references)[:, None].expand(-1, n, -1)

    @torch.no_grad()
    def _scores(self, steps: Parts) -> Tensor:
        """Scores of n steps, each by itself: ``(N, n)``."""
        tensors = self.scorer.to_tensors({name: array[None] for name, array in steps.items()})
        found: Tensor = self.scorer(tensors)[:, 0]
        if not torch.isfinite(found).all():
            raise UserError("scores are not finite: lower learning_rate and start anew")
        return found

    def _steps(self, observations: Any) -> Parts:
        length = length_of(self.parts, observations)
        return to_parts(self.parts, observations, (length,), axis="step")

    # --- learning ---

    def add(self, first: Any, second: Any, better: float) -> None:
        """Take in a comparison.

        Args:
            first: observations of a segment, ``(T, ...)``, or a dictionary of such arrays.
            second: those of another one, of the same length or not.
            better: 1 where the first is better, 0 where the second is, 0.5 where neither is.
        """
        answer = require_answer(better)
        pair = self._steps(first), self._steps(second)
        require_different(*pair)
        random = np.random.default_rng([self.settings.seed, 1, self.comparisons])
        is_held_out = random.random() < self.settings.held_out
        (self.held_out if is_held_out else self.store).add(*pair, answer)
        if not is_held_out:
            for segment in pair:
                self.scorer.features.normaliser.add(segment)
        self.comparisons += 1
        self.new += 1

    @torch.enable_grad()
    def learn(self) -> dict[str, float]:
        """Learn from stored comparisons, as many batches as the new ones call for."""
        if not self.new or not len(self.store):
            return {}
        scorer, settings = self.scorer, self.settings
        random = np.random.default_rng([settings.seed, 2, self.updates])
        batches = math.ceil(self.new * settings.samples_per_comparison / settings.batch_size)
        before = self.reference_scores()
        scorer.features.normaliser.settle()
        with scorer.own_chance(int(random.integers(2**31))):  # if a module uses any
            scorer.train()
            losses = [scorer.learn(self._sample(random)) for _ in range(batches)]
            scorer.eval()
        if not np.isfinite(losses).all():
            raise UserError("scores diverged: lower learning_rate and start anew")
        drift = drift_of(before, self.reference_scores())
        steps = random.integers(self.store.segments.steps, size=settings.references)
        self.references = self.store.steps(steps)
        self.new, self.updates = 0, self.updates + 1
        return {
            "preference_loss": float(np.mean(losses)),
            "preference_batches": float(batches),
            "score_drift": drift,
        }

    def _sample(self, random: np.random.Generator) -> Any:
        return self.store.pairs(random.integers(len(self.store), size=self.settings.batch_size))

    def reference_scores(self) -> np.ndarray:
        """Scores of the stored steps that are compared with, ``(M,)``; none before it learned."""
        if self.references is None:
            return np.zeros(0)
        return self._scores(self.references).mean(dim=0).double().cpu().numpy()

    def health(self) -> dict[str, float]:
        """How it is doing on comparisons that it never learned from; see `health_of_model`."""
        return health_of_model(self)

    # --- to and from files ---

    def to_checkpoint(self, store: bool = True) -> tuple[Arrays, dict[str, Any]]:
        """All it needs to go on, as arrays and JSON; without its stored comparisons it can pay."""
        return saving.to_checkpoint(self, store)

    def restore(self, arrays: Arrays, state: Mapping[str, Any]) -> None:
        """Become what a checkpoint holds; raises if it is of other observations."""
        saving.restore(self, arrays, state)

    def save(self, path: str | Path, store: bool = True) -> None:
        """Write one file (safetensors, with JSON and a digest in its header); it holds no code."""
        archive.write(Path(path), *self.to_checkpoint(store))

    @classmethod
    def load(cls, path: str | Path, network: Make = None) -> Self:
        """A preference model from a file. A network of your own is no part of it: give it again."""
        return saving.load(cls, Path(path), network)


def _leaves(observations: Any) -> Any:
    """Arrays of observations."""
    if isinstance(observations, Mapping):
        for inner in observations.values():
            yield from _leaves(inner)
    else:
        yield observations
