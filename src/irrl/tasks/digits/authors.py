"""The authors' numbers of digits: per cent right on validation canvases.

Read off their published figures, to 0.3 points; a number stands for a range as wide as that.
"""

from irrl.tasks.contract import Settings
from irrl.tasks.published import Anchor, Published

READING_ERROR = 0.3
CANVASES = 54_000
"""In an epoch of theirs."""


def pace(settings: Settings) -> float:
    """Epochs of theirs in one of ours: one of fewer canvases is a part of one."""
    return float(settings["train_images"]) / CANVASES


def _accuracy(text: str, steps_to_80: float | None = None) -> Anchor:
    value = float(text.removeprefix("~"))
    slack = 1.0 if text.startswith("~") else READING_ERROR
    return Anchor(text, value - slack, value + slack, steps_to_80=steps_to_80)


_SPAN = (1500.0, 1500.0)
_EPOCHS = (100, 200, 400, 600, 800, 1000, 1400)

PUBLISHED = {
    "ram": Published(
        "epochs",
        _SPAN,
        {
            "clipped-linear": _accuracy("89.8", 474),
            "clipped-log": _accuracy("87.3", 807),
            "accuracy": _accuracy("84.6", 933),
        },
        _EPOCHS,
        {
            "clipped-linear": (47.3, 56.9, 76.1, 83.4, 87.0, 87.8, 89.8),
            "clipped-log": (44.1, 52.2, 63.8, 72.6, 79.8, 84.3, 86.9),
            "accuracy": (26.2, 39.8, 57.4, 70.3, 77.1, 81.2, 84.7),
        },
        READING_ERROR,
    ),
    "dt-ram": Published(
        "epochs",
        _SPAN,
        {
            "clipped-linear": _accuracy("85.0", 815),
            "clipped-log": _accuracy("~75"),
            "accuracy": _accuracy("74.6"),
        },
        _EPOCHS,
        {
            "clipped-linear": (37.4, 47.0, 53.3, 70.0, 79.7, 82.4, 84.8),
            "clipped-log": (36.9, 45.0, 56.8, 55.3, 63.7, 69.2, 75.0),
            "accuracy": (21.1, 29.6, 40.8, 54.1, 64.3, 69.7, 74.5),
        },
        READING_ERROR,
    ),
}
