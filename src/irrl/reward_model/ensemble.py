"""What reads observations: networks of ours or the user's, their inputs, and their optimiser."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor, nn

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
from irrl.reward_model.normalise import Features
from irrl.reward_model.spaces import WHOLE, Part, Parts

MakeMember = Callable[[], nn.Module]


class _Settings(Protocol):
    """What must be set of an ensemble."""

    @property
    def ensemble(self) -> int | None: ...
    @property
    def pixels(self) -> str: ...
    @property
    def frequencies(self) -> int: ...
    @property
    def normalise(self) -> bool: ...
    @property
    def learning_rate(self) -> float: ...
    @property
    def seed(self) -> int: ...
    @property
    def device(self) -> str: ...


class Ensemble(nn.Module):
    """One or more networks that read the same observations, and learn by the same optimiser."""

    word: ClassVar[str]  # for a network, as the user's argument is called
    says: ClassVar[str]  # what comes out of it
    settings: _Settings

    def __init__(self, parts: Mapping[str, Part], settings: _Settings, is_own: bool) -> None:
        super().__init__()
        self.parts, self.settings, self.is_own = dict(parts), settings, is_own
        self.device = choose_device(settings.device)

    def build(self, make: MakeMember, weight_decay: float = 0.0) -> None:
        """Make the networks; to be called when all is known that they are made of."""
        settings = self.settings
        with self.own_chance(settings.seed):
            self.features = Features(self.parts, settings.pixels, settings.frequencies)
            self.members = nn.ModuleList(make() for _ in range(settings.ensemble or 1))
            self.to(self.device).eval()
            if self.is_own:
                self.check_members()
        learned = [p for p in self.members.parameters() if p.requires_grad]
        self.optimiser = make_adam(
            [{"params": learned}], lr=settings.learning_rate, weight_decay=weight_decay
        )

    @contextmanager
    def own_chance(self, seed: int) -> Iterator[None]:
        """Seeds PyTorch's generators in here, and leaves them outside as they were."""
        with torch.random.fork_rng([self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(seed)
            yield

    # --- modules of the user's ---

    @property
    def outputs(self) -> int:
        """How many numbers a network gives for each step."""
        raise NotImplementedError

    def check_members(self) -> None:
        """Refuse modules that cannot do what is asked, before anything is trained with them."""
        word, expected = self.word, (2, 3, self.outputs)
        if len(set(map(id, self.members))) < len(self.members):
            raise UserError(
                f"{word} makes the same module again and again: members of an ensemble must be "
                "modules of their own"
            )
        blank = self.to_tensors(self.blank())
        for member in self.members:
            failing = f"{word} cannot read observations of shape (T, B, ...)"
            with whatever_it_does(failing), torch.enable_grad():
                found = member(self.shown(blank))
            if said_shape(found) != expected:
                raise UserError(
                    f"{word} must map observations (T, B, ...) to {self.says} (T, B, "
                    f"{self.outputs}): got {said_shape(found)} where {expected} was expected"
                )
            if not found.requires_grad:
                raise UserError(f"{word} has no parameter with a gradient: it cannot learn")

    def blank(self) -> Parts:
        """Two steps of three episodes in which nothing is to be seen."""
        return {n: np.zeros((2, 3, *part.shape), part.dtype) for n, part in self.parts.items()}

    # --- observations ---

    def to_tensors(self, observations: Parts) -> dict[str, Tensor]:
        """On the device of the networks."""
        return {n: torch.from_numpy(a).to(self.device) for n, a in observations.items()}

    def shown(self, observations: dict[str, Tensor]) -> Any:
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

    # --- learning ---

    def descend(self, loss: Tensor) -> float:
        """One step of Adam on the sum of the losses of all networks; returns their mean."""
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


@contextmanager
def whatever_it_does(failing: str) -> Iterator[None]:
    """What goes wrong in a module of others, in one line."""
    try:
        yield
    except Exception as error:
        said = str(error).partition("\n")[0]
        raise UserError(f"{failing}: {type(error).__name__}: {said}") from None


def said_shape(thing: Any) -> Any:
    """The shape of a tensor, or what stands in place of one."""
    return tuple(thing.shape) if isinstance(thing, Tensor) else type(thing).__name__
