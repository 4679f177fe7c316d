"""When a row of metrics or a checkpoint is due."""


def is_due(before: int, now: int, every: int, end: int) -> bool:
    """Whether a multiple of ``every`` was passed since step ``before``, or the end was reached.

    ``before`` is -1 where nothing was done yet: step 0 is due.
    """
    return now == end or now // every > before // every


def next_due(step: int, *intervals: int) -> int:
    """The first step after this one at which a multiple of some interval is reached."""
    return min(every * (step // every + 1) for every in intervals)
