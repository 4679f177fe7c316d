"""The authors' numbers of skill discovery: skills learned.

Most were read off their published figure, to 2 skills; a number stands for a range as wide as that.
"""

from irrl.tasks.contract import Settings
from irrl.tasks.published import Anchor, Published

LEARNING_RATE = 0.004
"""Of all their tables."""


def pace(settings: Settings) -> float:
    """Iterations of theirs in one of ours: what counts is step size times iterations."""
    return float(settings["learning_rate"]) / LEARNING_RATE


PUBLISHED = Published(
    unit="iterations",
    span=(20e6, 30e6),
    numbers={
        "clipped-linear": Anchor("85-90", 85.0, 90.0),
        "clipped-log": Anchor("~31", 29.0, 33.0),
        "linear": Anchor("about 23 below clipped", 62.0, 67.0, "their text"),
        "accuracy": Anchor("~40", 38.0, 42.0),
        "disdain": Anchor("87-93", 87.0, 93.0),
    },
)
