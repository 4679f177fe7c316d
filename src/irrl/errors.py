"""The one exception that the command line shows as a single line, and how a name is refused."""

import difflib
from collections.abc import Iterable


class UserError(ValueError):
    """Something the user asked for cannot be done; the message says what to do instead."""


def unknown_name(kind: str, name: object, known: Iterable[str]) -> str:
    """One line for a name that is not known: the nearest one, and all there are."""
    names = list(known)
    close = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"unknown {kind} {name!r}.{hint} Known: {', '.join(names)}"
