"""The authors' numbers of object counting: per cent right counts, read off their figure to 0.3."""

from irrl.tasks.published import Anchor, Published

READING_ERROR = 0.3


def _accuracy(text: str) -> Anchor:
    value = float(text)
    return Anchor(text, value - READING_ERROR, value + READING_ERROR)


PUBLISHED = Published(
    unit="episodes",
    span=(2e6, 2e6),
    numbers={
        "clipped-linear": _accuracy("91.4"),
        "clipped-log": _accuracy("84.3"),
        "accuracy": _accuracy("77.8"),
    },
    steps=(100_000, 250_000, 750_000, 1_000_000, 1_500_000),
    curves={
        "clipped-linear": (59.4, 64.6, 77.7, 82.8, 89.4),
        "clipped-log": (36.2, 45.5, 61.5, 76.1, 83.5),
        "accuracy": (31.9, 47.9, 57.0, 66.3, 77.4),
    },
    reading_error=READING_ERROR,
)
