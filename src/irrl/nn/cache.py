"""What is fetched once and kept: where, and how it comes there."""

import os
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

CACHE_VARIABLE = "IRRL_CACHE"
TIMEOUT = 20.0  # seconds without an answer

Progress = Callable[[str, int, int], None]  # name, bytes done, bytes in all


def cache_folder(what: str) -> Path:
    """Where things of a kind are kept: below $IRRL_CACHE, else below the user's cache folder."""
    if os.environ.get(CACHE_VARIABLE):
        return Path(os.environ[CACHE_VARIABLE]) / what
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "~/AppData/Local")
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "irrl" / what


def read_url(url: str, name: str, on_progress: Progress = lambda name, done, total: None) -> bytes:
    with urllib.request.urlopen(url, timeout=TIMEOUT) as response:
        total = int(response.headers.get("Content-Length") or 0)
        content = bytearray()
        while chunk := response.read(1 << 16):
            content += chunk
            on_progress(name, len(content), max(total, len(content)))
    if len(content) < total:
        raise ConnectionError(f"{name} broke off after {len(content)} of {total} bytes")
    return bytes(content)
