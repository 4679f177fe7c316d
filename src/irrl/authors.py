"""The authors' numbers, once: tables, reports and documents take them from here.

Most were read off their published figures, to 0.3 points of accuracy and 2 skills; a number stands
for a range as wide as that.
"""

from typing import NamedTuple

FIGURE, TEXT = "read off their figure", "their text"


class Anchor(NamedTuple):
    """Where a reward of theirs ends: as it is written, and the range that stands for."""

    text: str
    low: float
    high: float
    source: str = FIGURE
    steps_to_80: float | None = None  # the steps in which curves are drawn; None: not known


def _accuracy(text: str, steps_to_80: float | None = None) -> Anchor:
    value = float(text.removeprefix("~"))
    slack = 1.0 if text.startswith("~") else 0.3
    return Anchor(text, value - slack, value + slack, FIGURE, steps_to_80)


AUTHORS: dict[str, dict[str, Anchor]] = {
    "skills": {
        "clipped-linear": Anchor("85-90", 85.0, 90.0),
        "clipped-log": Anchor("~31", 29.0, 33.0),
        "linear": Anchor("about 23 below clipped", 62.0, 67.0, TEXT),
        "accuracy": Anchor("~40", 38.0, 42.0),
        "disdain": Anchor("87-93", 87.0, 93.0),
    },
    "ram": {
        "clipped-linear": _accuracy("89.8", 474),
        "clipped-log": _accuracy("87.3", 807),
        "accuracy": _accuracy("84.6", 933),
    },
    "dt-ram": {
        "clipped-linear": _accuracy("85.0", 815),
        "clipped-log": _accuracy("~75"),
        "accuracy": _accuracy("74.6"),
    },
    "counting": {
        "clipped-linear": _accuracy("91.4"),
        "clipped-log": _accuracy("84.3"),
        "accuracy": _accuracy("77.8"),
    },
}
"""Skills learned after 20 to 30 million iterations; per cent right on validation canvases after
1500 epochs of RAM and DT-RAM; per cent right counts after 2 million episodes."""

LENGTHS = {
    "skills": "20 to 30 million iterations",
    "ram": "1500 epochs",
    "dt-ram": "1500 epochs",
    "counting": "2 million episodes",
}

_EPOCHS = (100, 200, 400, 600, 800, 1000, 1400)
_EPISODES = (100_000, 250_000, 750_000, 1_000_000, 1_500_000)

CURVES: dict[str, tuple[tuple[int, ...], dict[str, tuple[float, ...]]]] = {
    "ram": (
        _EPOCHS,
        {
            "clipped-linear": (47.3, 56.9, 76.1, 83.4, 87.0, 87.8, 89.8),
            "clipped-log": (44.1, 52.2, 63.8, 72.6, 79.8, 84.3, 86.9),
            "accuracy": (26.2, 39.8, 57.4, 70.3, 77.1, 81.2, 84.7),
        },
    ),
    "dt-ram": (
        _EPOCHS,
        {
            "clipped-linear": (37.4, 47.0, 53.3, 70.0, 79.7, 82.4, 84.8),
            "clipped-log": (36.9, 45.0, 56.8, 55.3, 63.7, 69.2, 75.0),
            "accuracy": (21.1, 29.6, 40.8, 54.1, 64.3, 69.7, 74.5),
        },
    ),
    "counting": (
        _EPISODES,
        {
            "clipped-linear": (59.4, 64.6, 77.7, 82.8, 89.4),
            "clipped-log": (36.2, 45.5, 61.5, 76.1, 83.5),
            "accuracy": (31.9, 47.9, 57.0, 66.3, 77.4),
        },
    ),
}
"""Points of their learning curves: steps, and accuracy at each."""


def texts(name: str) -> dict[str, str]:
    """Their numbers as they are written, by reward."""
    return {reward: anchor.text for reward, anchor in AUTHORS[name].items()}


def curve_point(name: str, reward: str, step: int) -> float:
    steps, curves = CURVES[name]
    return curves[reward][steps.index(step)]


def curve_up_to(name: str, reward: str, last: float) -> tuple[list[int], list[float]]:
    """Their curve as far as ours goes."""
    steps, curves = CURVES.get(name, ((), {}))
    points = [p for p in zip(steps, curves.get(reward, ()), strict=False) if p[0] <= last]
    return [step for step, _ in points], [value for _, value in points]
