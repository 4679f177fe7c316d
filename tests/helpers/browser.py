"""The browser that opens reports in the tests: whichever is there, by its name."""

import shutil
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MAC = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")


def find_browser():
    """Its path. Without one the test fails: a skip would hide that a report was never opened."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None and MAC.exists():
        found = str(MAC)
    if found is None:
        raise RuntimeError(f"no browser to open the report in: install one of {', '.join(NAMES)}")
    return found
