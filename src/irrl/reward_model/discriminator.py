"""The discriminator of a reward model: an ensemble of networks, their inputs, their optimiser."""

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from irrl.episodes import at_last_step, mean_over_taken, steps_taken
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
from irrl.reward_model.kinds import Kind
from irrl.reward_model.networks import default_discriminator
from irrl.reward_model.normalise import Features
from irrl.reward_model.settings import Settings
from irrl.reward_model.spaces import WHOLE, Part, Parts
from irrl.reward_model.store import Batch

Make = nn.Module | Callable[[], nn.Module] | None


class Discriminator(nn.Module):
    """q(y | observations), as the mixture of one or more members.

    Beliefs have the shape ``(N, T, B, P)``: members, steps, episodes, and what the kind of labels
    has: log-probabilities of classes, or the numbers of a density.
    """

    def __init__(
        self, parts: Mapping[str, Part], kind: Kind, settings: Settings, own: Make = None
    ) -> None:
        super().__init__()
        self.parts, self.kind, self.settings = dict(parts), kind, settings
        self.is_own = own is not None
        self.device = choose_device(settings.device)
        with self.own_chance(settings.seed):
            self.features = Features(parts, settings.pixels, settings.frequencies)
            self.members = nn.ModuleList(self._make(own) for _ in range(settings.ensemble or 1))
            self.to(self.device).eval()
            if self.is_own:
                self._check_members()
        self.optimiser = make_adam(
            [{"params": [p for p in self.members.parameters() if p.requires_grad]}],
            lr=settings.learning_rate,
        )

    @contextmanager
    def own_chance(self, seed: int) -> Iterator[None]:
        """Seeds PyTorch's generators in here, and leaves them outside as they were."""
        with torch.random.fork_rng([self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(seed)
            yield

    def _make(self, own: Make) -> nn.Module:
        settings = self.settings
        if own is None:
            judge = str(settings.judge)
            return default_discriminator(
                self.features, self.kind.outputs, judge, settings.core, settings.width
            )
        if isinstance(own, nn.Module):
            if settings.ensemble != 1:
                raise UserError(
                    "discriminator must be a function that makes a module, where there is an "
                    f"ensemble of {settings.ensemble}: copies of one would never disagree"
                )
            return own
        made = own()
        if not isinstance(made, nn.Module):
            raise UserError(
                f"discriminator must be a torch.nn.Module or make one, got {type(made).__name__}"
            )
        return made

    def _check_members(self) -> None:
        """Refuse modules that cannot judge, before anything is trained with them."""
        if len(set(map(id, self.members))) < len(self.members):
            raise UserError(
                "discriminator makes the same module again and again: members of an ensemble must "
                "be modules of their own"
            )
        blank = {n: np.zeros((2, 3, *p.shape), p.dtype) for n, p in self.parts.items()}
        for member in self.members:
            failing = "cannot read observations of shape (T, B, ...)"
            with _whatever_it_does(failing), torch.enable_grad():
                logits = self._logits(member, self.to_tensors(blank))
            outputs = self.kind.outputs
            if _said(logits) != (2, 3, outputs):
                raise UserError(
                    "discriminator must map observations (T, B, ...) to logits (T, B, "
                    f"{outputs}): got {_said(logits)} where {(2, 3, outputs)} was expected"
                )
            if not logits.requires_grad:
                raise UserError("discriminator has no parameter with a gradient: it cannot learn")
        if self.settings.judge == "trajectory" and self.reads_steps:
            self._check_steps({name: array[0] for name, array in blank.items()})

    def _check_steps(self, blank: Parts) -> None:
        with _whatever_it_does("cannot read step by step, with initial_state(n) and step"):
            states = self.initial_states(3)
            beliefs, after = self.step(blank, states)
            shapes = pytree.tree_map(_said, [states, after])
        if _said(beliefs) != (len(self.members), 3, self.kind.outputs) or shapes[0] != shapes[1]:
            raise UserError(
                f"discriminator.step must give logits (B, {self.kind.outputs}) and a state like "
                "the one it was given"
            )
        if any(_said(state)[:1] != (3,) for state in pytree.tree_leaves(states)):
            raise UserError(
                "discriminator.initial_state(n) must make tensors whose first axis is n, as many "
                "as there are episodes"
            )

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
        """Beliefs after each of some observations, shape ``(T, B, ...)``."""
        logits = torch.stack([self._logits(member, observations) for member in self.members])
        return self.kind.normalised(logits)

    @torch.no_grad()
    def judge(self, batch: Batch) -> Tensor:
        """Beliefs after the last observation of each episode, shape ``(N, B, P)``."""
        observations = self.to_tensors(batch.observations)
        lengths = torch.from_numpy(batch.lengths).to(self.device)
        if self.settings.judge == "trajectory":
            beliefs = self(observations)
            return torch.stack([at_last_step(member, lengths) for member in beliefs])
        last = {name: at_last_step(x, lengths)[None] for name, x in observations.items()}
        return self(last)[:, 0]

    def judge_steps(self, episode: Parts) -> Tensor:
        """Beliefs ``(N, T, P)`` after each observation: of all so far, or of that one alone."""
        tensors = self.to_tensors(episode)
        if self.settings.judge == "trajectory":
            return self({name: x[:, None] for name, x in tensors.items()})[:, :, 0]
        return self({name: x[None] for name, x in tensors.items()})[:, 0]

    # --- judging step by step ---

    @property
    def reads_steps(self) -> bool:
        """Whether a running episode can be judged without being read again."""
        return all(hasattr(m, "step") and hasattr(m, "initial_state") for m in self.members)

    def _by_step(self) -> "Iterator[ReadsSteps]":
        return iter(cast("list[ReadsSteps]", list(self.members)))

    def initial_states(self, n: int) -> list[Any]:
        """What each member knows of n episodes before their first observation."""
        return [member.initial_state(n) for member in self._by_step()]

    @torch.no_grad()
    def step(self, observations: Parts, states: list[Any]) -> tuple[Tensor, list[Any]]:
        """Beliefs ``(N, B, P)`` after one more observation ``(B, ...)``, and new states."""
        shown = self._shown(self.to_tensors(observations))
        found = [member.step(shown, s) for member, s in zip(self._by_step(), states, strict=True)]
        logits = torch.stack([logits for logits, _ in found])
        return self.kind.normalised(logits), [state for _, state in found]

    # --- learning ---

    def scale_learning_rate(self, share: float) -> None:
        """Learn from here on with a share of the step size that was set."""
        for group in self.optimiser.param_groups:
            group["lr"] = share * self.settings.learning_rate

    def learn(self, batch: Batch) -> float:
        """One step of Adam on the losses of a batch, after all steps or the last."""
        labels = torch.from_numpy(batch.labels).to(self.device)
        lengths = torch.from_numpy(batch.lengths).to(self.device)
        observations = self.to_tensors(batch.observations)
        if self.settings.judge == "final":
            observations = {n: at_last_step(x, lengths)[None] for n, x in observations.items()}
            lengths = torch.ones_like(lengths)
        losses = self.kind.losses(self(observations), labels)
        taken = steps_taken(losses.shape[1], lengths).expand(losses.shape)
        loss = mean_over_taken(losses, taken) * len(self.members)
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
    return copied.requires_grad_(False).eval()


class ReadsSteps(Protocol):
    """A member that can go on from what it knows."""

    def initial_state(self, n: int) -> Any: ...
    def step(self, observations: Any, state: Any) -> tuple[Tensor, Any]: ...


@contextmanager
def _whatever_it_does(failing: str) -> Iterator[None]:
    """What goes wrong in a module of others, in one line."""
    try:
        yield
    except Exception as error:
        said = str(error).partition("\n")[0]
        raise UserError(f"discriminator {failing}: {type(error).__name__}: {said}") from None


def _said(thing: Any) -> Any:
    """The shape of a tensor, or what stands in place of one."""
    return tuple(thing.shape) if isinstance(thing, Tensor) else type(thing).__name__
