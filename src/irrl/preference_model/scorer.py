"""What scores: an ensemble of networks, their inputs, and the loss of Bradley and Terry."""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from irrl.episodes import steps_taken
from irrl.errors import UserError
from irrl.nn.models import (
    Arrays,
    choose_device,
    fill,
    make_adam,
    restore_adam,
    tensors_of,
    to_arrays,
)
from irrl.preference_model.comparisons import Pairs
from irrl.preference_model.settings import PreferenceSettings
from irrl.reward_model.networks import StateJudge
from irrl.reward_model.normalise import Features
from irrl.reward_model.spaces import WHOLE, Part, Parts
from irrl.reward_model.store import Batch

Make = Callable[[], nn.Module] | None


class Scorer(nn.Module):
    """A score for every step; that of a segment is their sum.

    Scores have the shape ``(N, T, B)``: networks, steps, segments.
    """

    def __init__(
        self, parts: Mapping[str, Part], settings: PreferenceSettings, own: Make = None
    ) -> None:
        super().__init__()
        self.parts, self.settings, self.is_own = dict(parts), settings, own is not None
        self.device = choose_device(settings.device)
        with self.own_chance(settings.seed):
            self.features = Features(parts, settings.pixels, settings.frequencies)
            self.members = nn.ModuleList(self._make(own) for _ in range(settings.ensemble or 1))
            self.to(self.device).eval()
            if self.is_own:
                self._check_members()
        learned = [p for p in self.members.parameters() if p.requires_grad]
        self.optimiser = make_adam(
            [{"params": learned}], lr=settings.learning_rate, weight_decay=settings.weight_decay
        )

    @contextmanager
    def own_chance(self, seed: int) -> Iterator[None]:
        """Seeds PyTorch's generators in here, and leaves them outside as they were."""
        with torch.random.fork_rng([self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(seed)
            yield

    def _make(self, own: Make) -> nn.Module:
        if own is None:
            return StateJudge(self.features, 1, self.settings.width)
        made = None if isinstance(own, nn.Module) else own()
        if not isinstance(made, nn.Module):
            found = own if made is None else made
            raise UserError(
                f"network must be a function that makes a torch.nn.Module, got "
                f"{type(found).__name__}"
            )
        return made

    def _check_members(self) -> None:
        """Refuse modules that cannot score, before anything is trained with them."""
        blank = {n: np.zeros((2, 3, *p.shape), p.dtype) for n, p in self.parts.items()}
        for member in self.members:
            try:
                found = member(self._shown(self.to_tensors(blank)))
            except Exception as error:
                said = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
                raise UserError(f"network cannot read observations (T, B, ...): {said}") from None
            shape = tuple(getattr(found, "shape", ()))
            if shape != (2, 3, 1):
                raise UserError(
                    "network must map observations (T, B, ...) to scores (T, B, 1): got "
                    f"{shape or type(found).__name__} where (2, 3, 1) was expected"
                )
            if not found.requires_grad:
                raise UserError("network has no parameter with a gradient: it cannot learn")

    # --- scores ---

    def to_tensors(self, observations: Parts) -> dict[str, Tensor]:
        """On the device of the networks."""
        return {n: torch.from_numpy(a).to(self.device) for n, a in observations.items()}

    def _shown(self, observations: dict[str, Tensor]) -> Any:
        """Parts for ours; for one of the user's what its space says, normalised if so set."""
        if not self.is_own:
            return observations
        shown = observations
        if self.settings.normalise:
            shown = self.features.normaliser.standardised(self.parts, observations)
        return shown[WHOLE] if set(shown) == {WHOLE} else shown

    def forward(self, observations: dict[str, Tensor]) -> Tensor:
        """Scores of all steps, observations of shape ``(T, B, ...)``."""
        shown = self._shown(observations)
        return torch.stack([member(shown)[..., 0] for member in self.members]).float()

    def of_segments(self, batch: Batch) -> Tensor:
        """Scores of whole segments, ``(N, B)``."""
        lengths = torch.from_numpy(batch.lengths).to(self.device)
        scores = self(self.to_tensors(batch.observations))
        taken = steps_taken(scores.shape[1], lengths)
        return torch.where(taken, scores, 0.0).sum(dim=1)

    def log_preferences(self, pairs: Pairs) -> Tensor:
        """Log-probabilities of both answers, ``(N, n, 2)``: the second is better, the first is.

        With the judge's errors in them: these are of answers, not of what is better.
        """
        first, second = self.of_segments(pairs.segments).chunk(2, dim=1)
        ahead = first - second
        return torch.stack([self._log_answer(-ahead), self._log_answer(ahead)], dim=-1)

    def _log_answer(self, ahead: Tensor) -> Tensor:
        error = self.settings.judge_error
        if not error:
            return logsigmoid(ahead)
        by_coin = torch.full_like(ahead, math.log(error / 2.0))
        return torch.logaddexp(math.log1p(-error) + logsigmoid(ahead), by_coin)

    # --- learning ---

    def learn(self, pairs: Pairs) -> float:
        """One step of Adam on the loss of Bradley and Terry; its mean over networks."""
        answers = torch.from_numpy(pairs.answers).float().to(self.device)
        log_probs = self.log_preferences(pairs)
        each = -(answers * log_probs[..., 1] + (1.0 - answers) * log_probs[..., 0])
        loss = each.mean(dim=1).sum()
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self.optimiser.step()
        return float(loss.detach()) / len(self.members)

    # --- to and from a checkpoint ---

    def to_arrays(self, optimiser: bool = True) -> Arrays:
        """All weights and statistics by name: copies, which later learning does not change."""
        adam = self.optimiser if optimiser else None
        tensors = tensors_of(self.members, "members.", adam)
        arrays = to_arrays({**tensors, **tensors_of(self.features, "features.")})
        return {name: array.copy() for name, array in arrays.items()}

    def restore(self, arrays: Arrays, optimiser: bool = True) -> None:
        """Become what `to_arrays` gave; raises where that cannot be."""
        with torch.no_grad():
            fill(self.features, "features.", arrays, self.device)
            fill(self.members, "members.", arrays, self.device)
        if optimiser:
            restore_adam(self.optimiser, self.members, "members.", arrays)
