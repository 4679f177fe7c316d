"""Every page of the site in a real browser, opened from disk, at two widths."""

import pytest
from playwright.sync_api import sync_playwright

from tests.helpers.browser import find_browser, open_page

DESK, PHONE = {"width": 1200, "height": 900}, {"width": 360, "height": 740}
LOADED = """async () => {
    for (const image of document.images) { image.loading = "eager"; await image.decode(); }
    return [...document.images].map(image => image.naturalWidth);
}"""
UNHIGHLIGHTED = """() => [...document.querySelectorAll("pre code")].filter(code =>
    /^(import|def|class|>>>) /m.test(code.innerText) && !code.querySelector("span[class]:not([id])")
).map(code => code.innerText.slice(0, 60))"""
TOO_WIDE = "document.documentElement.scrollWidth - innerWidth"


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=find_browser())
        yield opened
        opened.close()


@pytest.fixture
def page(browser):
    """A page, and what it asked for and complained about."""
    page = open_page(browser, viewport=DESK)
    yield page
    page.close()


def test_all_pages_open_without_net_or_complaint_and_fit_a_phone(page, site):
    pages = sorted(set(site.rglob("*.html")) - {site / "404.html"})  # which servers show
    pictures, faults = 0, {}
    for path in pages:
        page.complaints.clear()
        page.set_viewport_size(DESK)
        page.goto(path.as_uri())
        widths = page.evaluate(LOADED)
        pictures += len(widths)
        found = [*page.complaints, *page.evaluate(UNHIGHLIGHTED)]
        if 0 in widths:
            found.append("a picture is missing")
        page.set_viewport_size(PHONE)
        if page.evaluate(TOO_WIDE) > 0:
            found.append("too wide for a phone")
        if found:
            faults[path.relative_to(site).as_posix()] = found
    assert faults == {}
    assert len(pages) > 35 and pictures > 40
    assert all(url.startswith(("file:", "data:", "blob:")) for url in page.requests)


def test_search_works_from_disk(page, site):
    page.goto((site / "guide" / "skills.html").as_uri())
    page.locator("input.md-search__input").click()
    page.keyboard.type("DISDAIN")
    results = page.locator(".md-search-result__link")
    results.first.wait_for(timeout=60_000)
    texts = " ".join(results.all_inner_texts())
    assert "Glossary" in texts or "disdain" in texts.lower()
    results.first.click()
    assert page.url.startswith(site.as_uri()) and "skills.html?" not in page.url
    assert page.complaints == []
