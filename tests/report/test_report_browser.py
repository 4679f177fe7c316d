"""The report in a real browser, opened from disk."""

import shutil

import pytest
from playwright.sync_api import sync_playwright

from irrl.analysis.stats import mean_estimate
from tests.helpers.browser import find_browser, open_page
from tests.helpers.command import irrl_command

COLOURS = {"clipped-linear": "rgb(0, 114, 178)", "clipped-log": "rgb(230, 159, 0)"}


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The page of four seeds of one reward and two of another; the folder's name is a trap."""
    folder = tmp_path_factory.mktemp("report")
    out = folder / "<img src=x onerror=alert(1)>"
    result = irrl_command("compare", "skills", "--preset", "smoke", "--rewards", ",".join(COLOURS),
                          "--seeds", "4", "--workers", "1", "--out", out)  # fmt: skip
    assert result.returncode == 0, result.stderr
    for seed in (2, 3):
        shutil.rmtree(out / "clipped-log" / f"seed-{seed}")
    result = irrl_command("report", out, "-o", folder / "report.html")
    assert result.returncode == 0, result.stderr
    shutil.rmtree(out)  # the page needs nothing beside it
    return folder / "report.html"


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=find_browser())
        yield opened
        opened.close()


@pytest.fixture
def page(browser, report):
    """The page with everything drawn, and what it asked for and complained about."""
    page = open_page(browser, viewport={"width": 1200, "height": 900})
    page.goto(report.as_uri())
    page.wait_for_selector("html[data-drawn=yes]")
    yield page
    page.close()


def lines(page):
    """Colours of the curves that are drawn, in the first chart; bands have no line."""
    return page.eval_on_selector_all(
        "#chart-0 path.js-line",
        """paths => paths.filter(p => parseFloat(getComputedStyle(p).strokeWidth) > 1)
                        .map(p => getComputedStyle(p).stroke)""",
    )


def thin_lines(page):
    """How many seeds can be seen."""
    return page.eval_on_selector_all(
        "#chart-0 path.js-line",
        """paths => paths.filter(p => {
             const width = parseFloat(getComputedStyle(p).strokeWidth);
             return width > 0 && width < 1 && getComputedStyle(p.closest(".trace")).opacity > 0;
           }).length""",
    )


def wait_until(page, holds):
    """The page may not evaluate text, so Playwright's own waiting does not work there."""
    for _ in range(300):
        if holds():
            return
        page.wait_for_timeout(50)
    raise AssertionError("waited in vain")


def test_it_opens_from_disk_without_network_or_complaint(page, report):
    assert page.requests[0] == report.as_uri()
    assert all(url.startswith(("file:", "data:", "blob:")) for url in page.requests)
    assert page.complaints == []
    assert sorted(lines(page)) == sorted(COLOURS.values())
    assert page.locator("table").first.is_visible()


def test_what_comes_from_folders_is_text(page):
    assert page.locator("img[src=x]").count() == 0
    assert "<img src=x onerror=alert(1)>" in page.locator("#run").inner_text()


def test_switching_a_reward_off_removes_its_line(page):
    box = page.locator('[data-reward="clipped-log"]').first
    box.uncheck()
    assert lines(page) == [COLOURS["clipped-linear"]]
    box.focus()
    page.keyboard.press("Space")  # by keyboard as well
    assert sorted(lines(page)) == sorted(COLOURS.values())


def test_seeds_smoothing_and_metric(page):
    assert thin_lines(page) == 2  # few seeds are always shown
    page.locator('[data-control="seeds"]').first.check()
    assert thin_lines(page) == 6

    path = page.locator("#chart-0 path.js-line").last
    before = path.get_attribute("d")
    page.locator('[data-control="smoothing"]').first.fill("2")
    smooth = path.get_attribute("d")
    assert smooth != before
    page.locator('[data-control="metric"]').first.select_option("cells_reached")
    assert path.get_attribute("d") != smooth
    assert page.locator("#chart-0 .ytitle").text_content() == "cells reached"
    assert page.complaints == []


def test_pointing_at_a_curve_shows_its_seeds(page):
    page.locator("#chart-0").scroll_into_view_if_needed()
    place = page.evaluate(
        """() => {
             const chart = document.getElementById("chart-0");
             const trace = chart.data.find(t => t.meta === "clipped-linear");
             const box = chart.getBoundingClientRect(), layout = chart._fullLayout;
             return [box.left + layout._size.l + layout.xaxis.d2p(trace.x[2]),
                     box.top + layout._size.t + layout.yaxis.d2p(trace.y[2])];
           }"""
    )
    page.mouse.move(*place)
    page.wait_for_selector("#chart-0 .hoverlayer .hovertext")
    assert "clipped-linear" in page.locator("#chart-0 .hoverlayer").text_content()
    wait_until(page, lambda: thin_lines(page) == 6)
    page.mouse.move(5, 5)
    wait_until(page, lambda: thin_lines(page) == 2)


def test_bands_are_the_intervals_of_the_tables(page):
    """A t interval of the mean, clipped to what the metric can be; none of few seeds."""
    (linear, log), study = page.evaluate("""() => [STUDIES[0].groups.map(g => g), STUDIES[0]]""")
    banded = {g["label"]: g for g in (linear, log)}
    assert banded["clipped-log"]["reach"] is None
    low, high = study["ranges"]["n_skills"]
    traces = page.evaluate(
        """() => document.getElementById("chart-0").data
             .filter(t => t.line && t.line.width === 0).map(t => Array.from(t.y))"""
    )
    seeds = banded["clipped-linear"]["values"]["n_skills"]
    wanted = [mean_estimate(values).within(low, high) for values in zip(*seeds, strict=True)]
    assert traces[0] == pytest.approx([e.low for e in wanted], abs=1e-6)
    assert traces[1] == pytest.approx([e.high for e in wanted], abs=1e-6)
    assert len(traces) == 2


@pytest.mark.parametrize("phone", [360, 380])
def test_a_phone_shows_it_without_scrolling_sideways(page, phone):
    page.set_viewport_size({"width": phone, "height": 740})
    width = "document.querySelector('#chart-0 .main-svg').clientWidth"
    wait_until(page, lambda: 0 < page.evaluate(width) <= phone)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    boxes = page.eval_on_selector_all(
        ".wide",
        """all => all.map(b => [b.scrollWidth, b.clientWidth, b.getBoundingClientRect().right,
                                getComputedStyle(b).overflowX, b.tabIndex])""",
    )
    assert boxes and all(
        right <= phone and how == "auto" and tab == 0 for _, _, right, how, tab in boxes
    )
    assert any(inside > outside for inside, outside, *_ in boxes)  # wide ones scroll by themselves


def test_on_a_phone_names_stay_and_notes_are_not_as_wide_as_the_table(page):
    page.set_viewport_size({"width": 380, "height": 740})
    table = page.locator("#study-0 .wide").first
    table.evaluate("box => { box.scrollLeft = box.scrollWidth; }")
    name = table.locator("tbody th").first.bounding_box()
    assert name["x"] >= 0 and name["width"] >= 100  # words are not cut into letters
    assert page.locator("#study-0 .note").bounding_box()["width"] <= 380


def test_verdicts_come_first_and_what_was_run_last(page):
    parts = page.eval_on_selector_all("main > section", "all => all.map(s => s.id)")
    assert parts == ["verdicts", "study-0", "glossary", "run"]
    links = page.eval_on_selector_all("nav a", "all => all.map(a => a.getAttribute('href'))")
    assert links == ["#study-0", "#glossary", "#run"]


def test_words_are_explained_where_they_stand_and_in_the_glossary(page):
    found = page.eval_on_selector_all(
        "#study-0 abbr", "all => all.map(a => [a.textContent.toLowerCase(), a.title])"
    )
    explained = dict(found)
    assert {"reward", "seed", "skills learned", "area"} <= set(explained)
    listed = page.eval_on_selector_all(
        "#glossary dt", "all => all.map(t => [t.textContent, t.nextElementSibling.textContent])"
    )
    assert {term.lower(): text for term, text in listed}.items() >= explained.items()
    word = page.locator("#study-0 abbr").first
    word.focus()  # as a finger does, or the keyboard
    shown = word.evaluate("a => getComputedStyle(a, '::after').content")
    assert shown.strip('"') == word.get_attribute("title")


def test_rewards_have_markers_of_their_own(page):
    symbols = page.evaluate(
        """() => document.getElementById("chart-0").data.filter(t => t.meta)
                   .map(t => [t.meta, t.marker.symbol, t.mode])"""
    )
    assert sorted(symbols) == [["clipped-linear", "square", "lines+markers"],
                               ["clipped-log", "circle", "lines+markers"]]  # fmt: skip
    marks = page.eval_on_selector_all("#controls-0 .mark", "all => all.map(m => m.textContent)")
    assert sorted(marks) == ["\u25a0", "\u25cf"]


def test_on_paper_there_are_curves_and_tables_but_no_controls(page):
    page.emulate_media(media="print")
    page.wait_for_selector("#chart-0 .legend .legendtext")
    assert not page.locator("#controls-0").is_visible() and not page.locator("nav").is_visible()
    assert page.locator("table").first.is_visible()
    assert sorted(lines(page)[:2]) == sorted(COLOURS.values())
    names = page.locator("#chart-0 .legendtext").all_text_contents()
    assert sorted(names) == sorted(COLOURS)  # told by a legend where there are no controls
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_every_picture_is_there_and_described(page):
    images = page.eval_on_selector_all("img", "all => all.map(i => [i.naturalWidth, i.alt])")
    assert images and all(width > 100 and alt for width, alt in images)
