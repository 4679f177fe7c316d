"""What scores: an ensemble of networks, and the loss of Bradley and Terry."""

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from irrl.episodes import steps_taken
from irrl.errors import UserError
from irrl.preference_model.comparisons import Pairs
from irrl.preference_model.settings import PreferenceSettings
from irrl.reward_model.ensemble import Ensemble
from irrl.reward_model.networks import StateJudge
from irrl.reward_model.spaces import Part
from irrl.reward_model.store import Batch

Make = Callable[[], nn.Module] | None


class Scorer(Ensemble):
    """A score for every step; that of a segment is their sum.

    Scores have the shape ``(N, T, B)``: networks, steps, segments.
    """

    word, says, outputs = "network", "scores", 1
    settings: PreferenceSettings

    def __init__(
        self, parts: Mapping[str, Part], settings: PreferenceSettings, own: Make = None
    ) -> None:
        super().__init__(parts, settings, own is not None)
        self.build(lambda: self._make(own), settings.weight_decay)

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

    # --- scores ---

    def forward(self, observations: dict[str, Tensor]) -> Tensor:
        """Scores of all steps, observations of shape ``(T, B, ...)``."""
        shown = self.shown(observations)
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
        return self.descend(each.mean(dim=1).sum())
