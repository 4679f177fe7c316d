"""The discriminator of a reward model: an ensemble of networks that judge, and learn to."""

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from irrl.episodes import at_last_step, mean_over_taken, steps_taken
from irrl.errors import UserError
from irrl.reward_model.ensemble import Ensemble, said_shape, whatever_it_does
from irrl.reward_model.kinds import Kind
from irrl.reward_model.networks import default_discriminator
from irrl.reward_model.settings import Settings
from irrl.reward_model.spaces import Part, Parts
from irrl.reward_model.store import Batch

Make = nn.Module | Callable[[], nn.Module] | None


class Discriminator(Ensemble):
    """q(y | observations), as the mixture of one or more members.

    Beliefs have the shape ``(N, T, B, P)``: members, steps, episodes, and what the kind of labels
    has: log-probabilities of classes, or the numbers of a density.
    """

    word, says = "discriminator", "logits"
    settings: Settings

    def __init__(
        self, parts: Mapping[str, Part], kind: Kind, settings: Settings, own: Make = None
    ) -> None:
        super().__init__(parts, settings, own is not None)
        self.kind = kind
        self.build(lambda: self._make(own))

    @property
    def outputs(self) -> int:
        """As many as the kind of labels has."""
        return self.kind.outputs

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

    def check_members(self) -> None:
        """Refuse modules that cannot judge, before anything is trained with them."""
        super().check_members()
        if self.settings.judge == "trajectory" and self.reads_steps:
            self._check_steps({name: array[0] for name, array in self.blank().items()})

    def _check_steps(self, blank: Parts) -> None:
        failing = "discriminator cannot read step by step, with initial_state(n) and step"
        with whatever_it_does(failing):
            states = self.initial_states(3)
            beliefs, after = self.step(blank, states)
            shapes = pytree.tree_map(said_shape, [states, after])
        expected = (len(self.members), 3, self.outputs)
        if said_shape(beliefs) != expected or shapes[0] != shapes[1]:
            raise UserError(
                f"discriminator.step must give logits (B, {self.outputs}) and a state like the "
                "one it was given"
            )
        if any(said_shape(state)[:1] != (3,) for state in pytree.tree_leaves(states)):
            raise UserError(
                "discriminator.initial_state(n) must make tensors whose first axis is n, as many "
                "as there are episodes"
            )

    # --- judging ---

    def forward(self, observations: dict[str, Tensor]) -> Tensor:
        """Beliefs after each of some observations, shape ``(T, B, ...)``."""
        shown = self.shown(observations)
        logits = torch.stack([member(shown) for member in self.members])
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
        shown = self.shown(self.to_tensors(observations))
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
        return self.descend(mean_over_taken(losses, taken) * len(self.members))


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
