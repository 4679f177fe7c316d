"""Metrics for any tracker: a function that is called with each row of a run."""

import importlib
from collections.abc import Callable
from typing import Any

from irrl.errors import UserError
from irrl.runs.run import Row, Run

Listener = Callable[[Row], None]
Tracker = Callable[[Run], Listener]
"""Called once, before a run is trained; returns what is called with each row as it is logged."""


def listen(run: Run, tracker: Tracker) -> None:
    """Tell a tracker each row of a run: ``step``, and numbers by name.

    A run that is resumed goes back to its last checkpoint. So with the first row that comes, the
    tracker is told all rows that the run has kept, the new one last: one that keeps a number for
    each step and name stays right.
    """
    tell = tracker(run)
    name = getattr(tracker, "__name__", "listener")
    if not callable(tell):
        raise UserError(
            f"{name} must return a function of a row of metrics, got {type(tell).__name__}"
        )
    is_first = True

    def follow(row: Row) -> None:
        nonlocal is_first
        for each in run.rows() if is_first else [row]:
            tell(each)
        is_first = False

    run.listeners.append(follow)


def find_tracker(name: str) -> Tracker:
    """The function that ``module:function`` names."""
    module, _, function = name.partition(":")
    if not module or not function:
        raise UserError(f"listener must be module:function, got {name!r}")
    try:
        found: Any = getattr(importlib.import_module(module), function, None)
    except Exception as error:  # whatever a module does while it is imported
        said = " ".join(str(error).split())
        raise UserError(
            f"cannot import listener {name!r}: {type(error).__name__}: {said}; "
            "is its folder on PYTHONPATH?"
        ) from None
    if not callable(found):
        raise UserError(f"listener {name!r} is not there: {module} has no function {function!r}")
    return found
