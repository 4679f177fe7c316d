"""The browser that opens reports in the tests: whichever is there, by its name."""

import shutil
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 120_000  # ms: a busy machine takes longer than Playwright's 30 s to open a page
MAC = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")


def find_browser():
    """Its path. Without one the test fails: a skip would hide that a report was never opened."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None and MAC.exists():
        found = str(MAC)
    if found is None:
        raise RuntimeError(f"no browser to open the report in: install one of {', '.join(NAMES)}")
    return found


def open_page(browser, **options):
    """A page that notes what it asks for and complains about."""
    page = browser.new_page(**options)
    page.set_default_timeout(PATIENCE)
    page.requests, page.complaints = [], []
    page.on("request", lambda request: page.requests.append(request.url))
    page.on("console", lambda message: page.complaints.append(message.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on("dialog", lambda dialog: page.complaints.append(dialog.message))
    return page
