"""The values that a metric can have: no interval and no band leaves them."""

import math
from typing import Any

from irrl.tasks.contract import Task

Bounds = tuple[float, float]

COUNTS = (
    "n_skills", "cells_reached", "buckets_reached", "final_distance", "glimpses", "moves",
    "seconds", "steps",
)  # fmt: skip
SHARES = ("discriminator_posterior", "calibration_error")


def range_of(metric: str) -> Bounds:
    """By the name of a metric alone: per cent, shares, counts and times."""
    if metric.endswith("_percent") or metric == "coverage":  # of a hundred buckets
        return 0.0, 100.0
    if metric.startswith("share_") or metric.endswith(SHARES):
        return 0.0, 1.0
    return (0.0 if any(name in metric for name in COUNTS) else -math.inf), math.inf


def range_in(task: Task, config: Any, metric: str) -> Bounds:
    """The same with what the task knows of it: no more skills or cells than there are."""
    low, high = range_of(metric)
    return low, min(high, task.limits(config).get(metric, math.inf))
