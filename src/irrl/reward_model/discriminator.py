"""The discriminator of a reward model: an ensemble of networks, their inputs and their optimiser."""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from irrl.episodes import at_last_step, mean_over_taken, steps_taken
from irrl.errors import UserError
from irrl.nn.models import Arrays, fill, make_adam, restore_adam, tensors_of, to_arrays
from irrl.reward_model.networks import default_discriminator
from irrl.reward_model.normalise import Features
from irrl.reward_model.settings import Settings
from irrl.reward_model.spaces import WHOLE, Part, Parts
from irrl.reward_model.store import Batch

Make = nn.Module | Callable[[], nn.Module] | None


class Discriminator(nn.Module):
    """q(y | observations), as the mixture of one or more members.

    Log-probabilities have the shape ``(N, T, B, K)``: members, steps, episodes, labels.
    """

    def __init__(
        self, parts: Mapping[str, Part], labels: int, settings: Settings, own: Make = None
    ) -> None:
        super().__init__()
        self.parts, self.labels, self.settings = dict(parts), labels, settings
        self.is_own = own is not None
        self.device = torch.device(settings.device)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.seed)
            self.features = Features(parts, settings.pixels, settings.frequencies)
            self.members = nn.ModuleList(self._make(own) for _ in range(settings.ensemble or 1))
        self.to(self.device)
        self._check_members()
        self.optimiser = make_adam(
            [{"params": [p for p in self.members.parameters() if p.requires_grad]}],
            lr=settings.learning_rate,
        )

    def _make(self, own: Make) -> nn.Module:
        settings = self.settings
        if own is None:
            judge = str(settings.judge)
            return default_discriminator(
                self.features, self.labels, judge, settings.core, settings.width
            )
        if isinstance(own, nn.Module):
            if settings.ensemble != 1:
                raise ValueError(
                    "discriminator must be a function that makes a module, where there is an "
                    f"ensemble of {settings.ensemble}: copies of one would never disagree"
                )
            return own
        made = own()
        if not isinstance(made, nn.Module):
            raise ValueError(
                f"discriminator must be a torch.nn.Module or make one, got {type(made).__name__}"
            )
        return made

    def _check_members(self) -> None:
        """Refuse a module that cannot judge, before anything is trained with it."""
        if not self.is_own:
            return
        lead = (2, 3)
        blank = {n: np.zeros((*lead, *p.shape), p.dtype) for n, p in self.parts.items()}
        for member in self.members:
            try:
                with torch.random.fork_rng(devices=[]):
                    logits = self._logits(member, self.to_tensors(blank))
            except Exception as error:  # whatever a module of others does
                said = str(error).partition("\n")[0]
                raise ValueError(
                    "discriminator cannot read observations of shape (T, B, ...): "
                    f"{type(error).__name__}: {said}"
                ) from None
            wanted = (*lead, self.labels)
            if not isinstance(logits, Tensor) or tuple(logits.shape) != wanted:
                shape = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
                raise ValueError(
                    "discriminator must map observations (T, B, ...) to logits (T, B, "
                    f"{self.labels}): got {shape} where {wanted} was expected"
                )
            if not logits.requires_grad:
                raise ValueError("discriminator has no parameter with a gradient: it cannot learn")

    # --- judging ---

    def to_tensors(self, observations: Parts) -> dict[str, Tensor]:
        return {n: torch.from_numpy(a).to(self.device) for n, a in observations.items()}

    def _logits(self, member: nn.Module, observations: dict[str, Tensor]) -> Tensor:
        return member(self._shown(observations))

    def _shown(self, observations: dict[str, Tensor]) -> Any:
        """Parts for ours; for one of the user's what its space says, normalised if so set."""
        if not self.is_own:
            return observations
        if self.settings.normalise:
            shown = self.features.normaliser.standardised(self.parts, observations)
        else:
            shown = {
                name: observations[name] if part.sizes else observations[name].float()
                for name, part in self.parts.items()
            }
        return shown[WHOLE] if set(shown) == {WHOLE} else shown

    def forward(self, observations: dict[str, Tensor]) -> Tensor:
        """Log-probabilities of observations, shape ``(T, B, ...)``, after each of them."""
        logits = torch.stack([self._logits(member, observations) for member in self.members])
        return torch.log_softmax(logits.float(), dim=-1)

    @torch.no_grad()
    def judge(self, batch: Batch) -> Tensor:
        """Log-probabilities after the last observation of each episode, shape ``(N, B, K)``."""
        observations = self.to_tensors(batch.observations)
        lengths = torch.from_numpy(batch.lengths)
        if self.settings.judge == "trajectory":
            log_probs = self(observations)
            return torch.stack([at_last_step(member, lengths) for member in log_probs])
        last = {name: at_last_step(x, lengths)[None] for name, x in observations.items()}
        return self(last)[:, 0]

    # --- judging step by step ---

    @property
    def reads_steps(self) -> bool:
        """Whether a running episode can be judged without being read again."""
        return all(hasattr(m, "step") and hasattr(m, "initial_state") for m in self.members)

    def initial_states(self, n: int) -> list[Any]:
        """What each member knows of n episodes before their first observation."""
        return [member.initial_state(n) for member in self.members]

    @torch.no_grad()
    def step(self, observations: Parts, states: list[Any]) -> tuple[Tensor, list[Any]]:
        """Log-probabilities ``(N, B, K)`` after one more observation ``(B, ...)``, new states."""
        shown = self._shown(self.to_tensors(observations))
        found = [member.step(shown, s) for member, s in zip(self.members, states, strict=True)]
        logits = torch.stack([logits for logits, _ in found])
        return torch.log_softmax(logits.float(), dim=-1), [state for _, state in found]

    # --- learning ---

    def learn(self, batch: Batch) -> float:
        """One step of Adam on the cross-entropy of a batch, after all steps or the last."""
        labels = torch.from_numpy(batch.labels).to(self.device)
        lengths = torch.from_numpy(batch.lengths).to(self.device)
        observations = self.to_tensors(batch.observations)
        if self.settings.judge == "final":
            observations = {n: at_last_step(x, lengths)[None] for n, x in observations.items()}
            lengths = torch.ones_like(lengths)
        log_probs = self(observations)
        picked = labels.expand(log_probs.shape[:-1])[..., None]
        losses = -log_probs.gather(-1, picked)[..., 0]
        taken = steps_taken(losses.shape[1], lengths).expand(losses.shape)
        loss = mean_over_taken(losses, taken) * len(self.members)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self.optimiser.step()
        return float(loss.detach()) / len(self.members)

    # --- to and from a checkpoint ---

    def to_arrays(self, optimiser: bool = True) -> Arrays:
        adam = self.optimiser if optimiser else None
        tensors = tensors_of(self.members, "members.", adam)
        return to_arrays({**tensors, **tensors_of(self.features, "features.")})

    def restore(self, arrays: Arrays, optimiser: bool = True) -> None:
        with torch.no_grad():
            fill(self.features, "features.", arrays, self.device)
            fill(self.members, "members.", arrays, self.device)
        if optimiser:
            restore_adam(self.optimiser, self.members, "members.", arrays)


def frozen(discriminator: Discriminator) -> Discriminator:
    """A copy that learns nothing more."""
    try:
        copied = copy.deepcopy(discriminator)
    except Exception as error:
        raise UserError(f"the oracle's discriminator cannot be copied: {error}") from None
    return copied.requires_grad_(False)
