"""Ctrl-C and SIGTERM: the first ends a verb in order, a second one at once. One line either way."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM)
STOPPED = 130


@contextmanager
def in_order() -> Iterator[None]:
    """Turn the first signal into a KeyboardInterrupt; the next ends the process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = [signal.signal(sign, _stop) for sign in SIGNALS]
    try:
        yield
    finally:
        for sign, handler in zip(SIGNALS, before, strict=True):
            signal.signal(sign, handler)


def _stop(signum: int, frame: Any) -> NoReturn:
    for sign in SIGNALS:
        signal.signal(sign, _end)
    raise KeyboardInterrupt


def _end(signum: int, frame: Any) -> NoReturn:
    tell("at once; what was checkpointed can be resumed")
    os._exit(STOPPED)


def tell(text: str) -> None:
    """The one line about an end that was asked for; nothing that comes later is told."""
    for sign in SIGNALS:
        signal.signal(sign, signal.SIG_IGN)
    sys.stderr.write(f"\nirrl: stopped; {text}\n")
    sys.stderr.flush()
