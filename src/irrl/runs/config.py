"""Settings of a run: a frozen dataclass per task, checked when it is made."""

import dataclasses
import math
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Self

from irrl.errors import UserError, shown, unknown_name
from irrl.rewards import Reward
from irrl.rewards import reward as find_reward

MOST = 10**12 - 1
"""The largest whole number that a setting may be, if its task sets no other limit."""

LARGEST = 1e30
"""The same for other numbers: finite in single precision."""

LONGEST = 1 << 20
"""Characters of a text."""


def setting(default: Any, help: str) -> Any:
    """A field of a configuration; ``help`` is what the command line says about its flag."""
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True)
class Config:
    """What the configurations of all tasks share. Every field has a default and a help text.

    A task derives a frozen dataclass from it, with fields of its own; a field that it names again
    gets another default or help text.

    Example:
        >>> @dataclass(frozen=True)
        ... class Doors(Config):
        ...     task: ClassVar[str] = "doors"
        ...     length: ClassVar[str] = "updates"
        ...     updates: int = setting(1_000, "updates, each on one batch")
        >>> Doors(updates=80).total_steps
        80
    """

    task: ClassVar[str]
    length: ClassVar[str]  # the setting that says how many steps a run has
    testable: ClassVar[tuple[str, ...]] = ()  # settings in which a test may differ from training
    may_change: ClassVar[tuple[str, ...]] = ("device",)  # in which a resumed run may differ
    most: ClassVar[Mapping[str, int]] = {}  # largest values of whole numbers, by setting

    reward: str = setting("clipped-linear", "reward of the policy; see `irrl rewards`")
    seed: int = setting(0, "root of every random stream")
    evaluate_every: int = setting(1, "steps between two rows of metrics.jsonl")
    checkpoint_every: int = setting(10, "steps between two checkpoints")

    def __post_init__(self) -> None:
        """Check the types; tasks go on to check the values."""
        for f in dataclasses.fields(self):
            kind, optional = value_type(type(self), f.name)
            value: Any = getattr(self, f.name)
            if value is None and optional:
                continue
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not (number if kind is float else type(value) is kind):
                raise UserError(f"{flag_name(f.name)} must be {kind.__name__}, got {shown(value)}")
            self._check_size(f.name, value)

    def _check_size(self, name: str, value: Any) -> None:
        if isinstance(value, str) and (len(value) > LONGEST or "\0" in value):
            raise UserError(
                f"{flag_name(name)} must be text of at most {LONGEST} characters, none of them "
                f"zero, got {shown(value)}"
            )
        if isinstance(value, float) and not math.isfinite(value):
            raise UserError(f"{flag_name(name)} must be finite, got {value!r}")
        most = {"seed": 2**63 - 1, **self.most}.get(name, MOST)
        if isinstance(value, int) and abs(value) > most:
            raise UserError(f"{flag_name(name)} must be at most {most}, got {shown(value)}")
        if isinstance(value, float) and abs(value) > LARGEST:
            raise UserError(f"{flag_name(name)} must be at most {LARGEST:g}, got {value!r}")

    def require(self, names: str, holds: Callable[[Any], bool], expected: str) -> None:
        """Raise unless each of some settings (names separated by spaces) holds."""
        for name in names.split():
            if not holds(getattr(self, name)):
                raise UserError(
                    f"{flag_name(name)} must be {expected}, got {shown(getattr(self, name))}"
                )

    def require_known(self, **known: Sequence[str]) -> None:
        """Raise unless each of some settings is one of its known names."""
        for name, names in known.items():
            if getattr(self, name) not in names:
                raise UserError(unknown_name(flag_name(name), getattr(self, name), names))

    def reward_fn(self, validate: bool = True) -> Reward:
        """The reward that the setting ``reward`` names, of the library or of one's own."""
        try:
            return find_reward(self.reward, validate=validate)
        except ValueError as error:
            raise UserError(str(error)) from None

    def require_single_reward(self) -> None:
        """Raise unless there is such a reward, and one discriminator is enough for it."""
        if self.reward_fn().needs_ensemble:
            raise UserError(
                f"reward {self.reward} needs an ensemble, which {self.task} does not have"
            )

    def fill(self, name: str, value: Any) -> None:
        """Settle a setting that was left open."""
        if getattr(self, name) is None:
            object.__setattr__(self, name, value)

    @property
    def total_steps(self) -> int:
        """How many steps a run has."""
        return getattr(self, self.length)

    def settings(self) -> dict[str, Any]:
        """All settings by name."""
        return dataclasses.asdict(self)

    def to_json(self) -> dict[str, Any]:
        """The same with the name of the task, as a run folder keeps it."""
        return {"task": self.task, **self.settings()}

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> Self:
        """Build a configuration from names and values; an unknown name is an error."""
        known = [f.name for f in dataclasses.fields(cls)]
        for name in settings:
            if name not in known:
                raise UserError(unknown_name("setting", name, known))
        return cls(**settings)


SCHEDULES = ("constant", "cosine")


def share_left(schedule: str, done: float, total: float) -> float:
    """What a schedule leaves of a setting on the way: all of it, or a cosine from 1 to 0."""
    return 0.5 * (1.0 + math.cos(math.pi * done / total)) if schedule == "cosine" else 1.0


def flag_name(name: str) -> str:
    """How the command line spells a setting, without the dashes in front."""
    return name.rstrip("_").replace("_", "-")


def value_type(cls: type, name: str) -> tuple[type, bool]:
    """The type of a setting, and whether it may be left open (None)."""
    hint = _type_hints(cls)[name]
    if isinstance(hint, types.UnionType):
        (inner,) = (arg for arg in typing.get_args(hint) if arg is not types.NoneType)
        return inner, True
    return hint, False


@cache
def _type_hints(cls: Any) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def at_least(smallest: int, **values: float) -> None:
    """Raise unless each of some numbers is large enough, and none of them endless."""
    for name, value in values.items():
        if not value >= smallest:
            raise UserError(f"{flag_name(name)} must be at least {smallest}, got {shown(value)}")
    at_most(2**63 - 1, **values)


def at_most(largest: int, **values: float) -> None:
    """Raise unless each of some numbers is small enough."""
    for name, value in values.items():
        if not value <= largest:
            raise UserError(f"{flag_name(name)} must be at most {largest}, got {shown(value)}")
