"""The one exception that the command line shows as a single line, and how a name is refused."""

import difflib
import reprlib
from collections.abc import Iterable


class UserError(ValueError):
    """Something the user asked for cannot be done; the message says what to do instead.

    Example:
        >>> raise UserError("epochs must be positive, got 0")
        Traceback (most recent call last):
            ...
        irrl.errors.UserError: epochs must be positive, got 0
    """


def unknown_name(kind: str, name: object, known: Iterable[str]) -> str:
    """One line for a name that is not known: the nearest one, and all there are.

    Args:
        kind: what the name is of.
        name: what was given.
        known: the names there are.

    Returns:
        The message of an error.

    Example:
        >>> unknown_name("reward", "liner", ["linear", "log"])
        "unknown reward 'liner'. Did you mean 'linear'? Known: linear, log"
    """
    names = list(known)
    close = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"unknown {kind} {name!r}.{hint} Known: {', '.join(names)}"


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60
_SHORT.maxlevel = 3


def shown(value: object) -> str:
    """A value as an error shows it: in one line, and a short one whatever it is.

    Args:
        value: what was given.

    Returns:
        Its representation, shortened in the middle.

    Example:
        >>> shown([1, "two"])
        "[1, 'two']"
        >>> len(shown("long" * 1000))
        60
    """
    try:
        return _SHORT.repr(value)
    except ValueError:  # a whole number of thousands of digits
        return f"{type(value).__name__} of many digits"
