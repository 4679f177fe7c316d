"""Ctrl-C and SIGTERM: the first ends a verb in order, a second one at once. One line either way."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM)
STOPPED = 130

_asked = False


@contextmanager
def in_order(is_program: bool) -> Iterator[None]:
    """Turn the first signal into a KeyboardInterrupt; the next ends the process.

    Of a program that was stopped, signals that come while Python ends are of no interest.
    """
    global _asked
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _asked = False
    before = [signal.signal(sign, _stop) for sign in SIGNALS]
    hook, sys.unraisablehook = sys.unraisablehook, _heard_nevertheless
    try:
        yield
    finally:
        if not (is_program and _asked):
            sys.unraisablehook = hook
            for sign, handler in zip(SIGNALS, before, strict=True):
                signal.signal(sign, handler)


def was_asked() -> bool:
    """Whether a signal came: what goes wrong after it, such as half a compilation, is its doing."""
    return _asked


def _stop(signum: int, frame: Any) -> NoReturn:
    global _asked
    _asked = True
    for sign in SIGNALS:
        signal.signal(sign, _end)
    raise KeyboardInterrupt


def _end(signum: int, frame: Any) -> NoReturn:
    tell("at once; what was checkpointed can be resumed")
    os._exit(STOPPED)


def _heard_nevertheless(unraisable: Any) -> None:
    """A compiler that calls back, or a finaliser, loses the exception; the wish stands.

    What else goes wrong with half-made objects after it is not told.
    """
    if not _asked:
        sys.__unraisablehook__(unraisable)
    elif issubclass(unraisable.exc_type, KeyboardInterrupt):
        _end(signal.SIGINT, None)


def tell(text: str) -> None:
    """The one line about an end that was asked for; nothing that comes later is told."""
    for sign in SIGNALS:
        signal.signal(sign, signal.SIG_IGN)
    with suppress(OSError):  # nobody hears it
        sys.stderr.write(f"\nirrl: stopped; {text}\n")
        sys.stderr.flush()
