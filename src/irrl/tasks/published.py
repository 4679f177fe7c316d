"""What the authors report of a task: their numbers, and the training each of them belongs to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Anchor(NamedTuple):
    """Where a reward of theirs ends: as it is written, and the range that stands for.

    Example:
        >>> Anchor("85-90", 85.0, 90.0).source
        'read off their figure'
    """

    text: str
    low: float
    high: float
    source: str = "read off their figure"
    steps_to_80: float | None = None  # the steps in which curves are drawn; None: not known


class Point(NamedTuple):
    """A number of theirs, and the training it belongs to: from a length to another.

    Example:
        >>> Point(Anchor("~31", 29.0, 33.0), first=20e6, last=30e6).anchor.text
        '~31'
    """

    anchor: Anchor
    first: float
    last: float


@dataclass(frozen=True)
class Published:
    """The authors' numbers of a task, or of a variant of it, and the training they belong to.

    Example:
        >>> numbers = {"clipped-linear": Anchor("89.8", 89.3, 90.3)}
        >>> Published("epochs", (1500, 1500), numbers).texts()
        {'clipped-linear': '89.8 at 1500 epochs'}
    """

    unit: str  # what training is counted in, such as "epochs"
    span: tuple[float, float]  # their numbers were read between these two lengths of training
    numbers: Mapping[str, Anchor]  # by reward
    steps: tuple[int, ...] = ()  # of the points of their learning curves
    curves: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    reading_error: float = 0.0  # of these points

    @property
    def length(self) -> str:
        """The training of their numbers in words, such as "1500 epochs"."""
        return in_words(*self.span, self.unit)

    def texts(self) -> dict[str, str]:
        """Their numbers as they are written, with their training, by reward."""
        return {reward: f"{a.text} at {self.length}" for reward, a in self.numbers.items()}

    def curve_point(self, reward: str, step: int) -> float:
        """A point of their learning curve."""
        return self.curves[reward][self.steps.index(step)]

    def curve_up_to(self, reward: str, last: float) -> tuple[list[int], list[float]]:
        """Their curve as far as ours goes."""
        values = self.curves.get(reward, ())
        points = [p for p in zip(self.steps, values, strict=False) if p[0] <= last]
        return [step for step, _ in points], [value for _, value in points]

    def points(self, reward: str) -> list[Point]:
        """All that is known of a reward, by length of training; its number comes last."""
        if reward not in self.numbers:
            return []
        error = self.reading_error
        curve = zip(self.steps, self.curves.get(reward, ()), strict=False)
        found = [Point(Anchor(f"{v}", v - error, v + error), step, step) for step, v in curve]
        return [*found, Point(self.numbers[reward], *self.span)]


def in_words(first: float, last: float, unit: str) -> str:
    """A length of training: 1500 epochs, 100,000 episodes, 20 to 30 million iterations.

    Example:
        >>> in_words(20e6, 30e6, "iterations")
        '20 to 30 million iterations'
    """
    million = first >= 1e6
    both = [first / 1e6, last / 1e6] if million else [first, last]
    shown = [f"{x:g}" if million or x < 10_000 else f"{x:,.0f}" for x in dict.fromkeys(both)]
    return f"{' to '.join(shown)} {'million ' * million}{unit}"
