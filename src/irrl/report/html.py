"""The report as one page of HTML that needs nothing else: data in, text out.

Whatever comes from run folders (names, commands, labels) is escaped; a content policy in the page
forbids the browser to fetch anything at all.
"""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any, NamedTuple

from irrl.report.glossary import explained, glossary

POLICY = (
    "default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
)


GLYPHS = {
    "square": "\u25a0", "square-open": "\u25a1", "circle": "\u25cf", "circle-open": "\u25cb",
    "triangle-up": "\u25b2", "triangle-up-open": "\u25b3", "triangle-down": "\u25bc",
    "triangle-down-open": "\u25bd", "diamond": "\u25c6", "diamond-open": "\u25c7",
    "triangle-left": "\u25c0", "triangle-left-open": "\u25c1", "triangle-right": "\u25b6",
    "triangle-right-open": "\u25b7", "star": "\u2605", "star-open": "\u2606",
}  # fmt: skip
"""Markers as letters, for those that have one."""


class Table(NamedTuple):
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""


class Picture(NamedTuple):
    """A picture or, where it could not be made, why."""

    title: str
    alt: str
    uri: str | None
    note: str = ""


class Section(NamedTuple):
    """A study: its table, its curves, its pictures."""

    title: str
    lines: Sequence[str]
    table: Table
    chart: dict[str, Any]
    pictures: Sequence[Picture]


class Page(NamedTuple):
    title: str
    headline: Sequence[str]
    provenance: Sequence[Table]
    sections: Sequence[Section]
    more: Sequence[tuple[str, Sequence[Table], Sequence[Picture]]]  # title, tables, pictures
    footer: str
    terms: Mapping[str, str] = {}  # words -> what they mean


def render(page: Page, charting: str) -> str:
    """The whole page; ``charting`` is the source of the charting library."""
    charts = [section.chart for section in page.sections]
    terms = page.terms
    body = [
        f"<h1>{escape(page.title)}</h1>",
        f'<section id="verdicts"><h2>Verdicts</h2>{_list(page.headline, terms)}</section>',
        _contents(page),
        *(_section(n, section, terms) for n, section in enumerate(page.sections)),
        *(_more(n, *more, terms) for n, more in enumerate(page.more)),
        *([glossary(terms)] if terms else []),
        '<section id="run"><h2>What was run</h2>',
        *(_table(table, {}) for table in page.provenance),
        "</section>",
        f'<footer class="soft"><p>{escape(page.footer)}</p></footer>',
    ]
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<link rel="icon" href="data:,">',
            f"<title>{escape(page.title)}</title>",
            f"<style>{_file('page.css')}</style>\n</head>\n<body>\n<main>",
            *body,
            "</main>",
            f'<script type="application/json" id="data">{_json(charts)}</script>',
            f"<script>{charting}</script>",
            f"<script>{_file('page.js')}</script>\n</body>\n</html>\n",
        ]
    )


def _file(name: str) -> str:
    return files("irrl.report").joinpath(name).read_text(encoding="utf-8")


def _json(value: Any) -> str:
    """JSON that cannot end the script it stands in."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def _list(lines: Sequence[str], terms: Mapping[str, str]) -> str:
    told: set[str] = set()
    items = "".join(f"<li>{explained(line, terms, told)}</li>" for line in lines)
    return f'<ul class="headline">{items}</ul>'


def _contents(page: Page) -> str:
    links = [(f"study-{n}", section.title) for n, section in enumerate(page.sections)]
    links += [(f"more-{n}", title) for n, (title, _, _) in enumerate(page.more)]
    links += [("glossary", "Glossary")] * bool(page.terms) + [("run", "What was run")]
    items = "".join(f'<li><a href="#{key}">{escape(title)}</a></li>' for key, title in links)
    return f'<nav aria-label="Contents"><ul>{items}</ul></nav>'


def _section(n: int, section: Section, terms: Mapping[str, str]) -> str:
    told: set[str] = set()
    title = explained(section.title, terms, told)
    lines = "".join(f"<p>{explained(line, terms, told)}</p>" for line in section.lines)
    return (
        f'<section id="study-{n}"><h2>{title}</h2>{lines}{_table(section.table, terms)}'
        f"{_chart(n, section, terms)}{''.join(map(_picture, section.pictures))}</section>"
    )


def _more(
    n: int,
    title: str,
    tables: Sequence[Table],
    pictures: Sequence[Picture],
    terms: Mapping[str, str],
) -> str:
    inside = "".join([*map(_picture, pictures), *(_table(table, terms) for table in tables)])
    return f'<section id="more-{n}"><h2>{escape(title)}</h2>{inside}</section>'


def _table(table: Table, terms: Mapping[str, str]) -> str:
    """A table in a box that scrolls by itself, its note below: a phone is narrower than a table."""
    told: set[str] = set()
    head = "".join(f'<th scope="col">{explained(h, terms, told)}</th>' for h in table.header)
    rows = "".join(f"<tr>{_cells(row)}</tr>" for row in table.rows)
    note = f'<p class="note">{explained(table.caption, terms, told)}</p>' if table.caption else ""
    label = escape(", ".join(table.header[:3]))
    return (
        f'<div class="wide" role="region" tabindex="0" aria-label="Table: {label}"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{note}"
    )


def _cells(row: Sequence[str]) -> str:
    first, *others = row
    shown = [f'<th scope="row">{escape(first)}</th>']
    for cell in others:
        kind = f' class="{verdict}"' if (verdict := _verdict(cell)) else ""
        shown.append(f"<td{kind}>{escape(cell)}</td>")
    return "".join(shown)


def _verdict(cell: str) -> str | None:
    """Green only what agrees; what is above the authors is no reproduction either."""
    said = re.sub(r"^[\d.]+ by then: ", "", cell)
    if said == "agrees":
        return "good"
    return "bad" if re.fullmatch(r"below by [\d.]+", said) else None


def _chart(n: int, section: Section, terms: Mapping[str, str]) -> str:
    chart = section.chart
    rewards = "".join(_checkbox(group) for group in chart["groups"])
    metrics = "".join(
        f'<option value="{escape(key)}">{escape(title)}</option>'
        for key, title in chart["metrics"].items()
    )
    described = escape(f"Learning curves: {section.title}. The table above has their ends.")
    return f"""<figure>
<form class="controls" id="controls-{n}" onsubmit="return false" autocomplete="off">
<fieldset><legend>Shown</legend>{rewards}</fieldset>
<label>Curve <select data-control="metric">{metrics}</select></label>
<label>Smoothing <input type="range" data-control="smoothing" min="0" max="20" value="0"></label>
<label><input type="checkbox" data-control="seeds"> every seed</label>
</form>
<div class="chart" id="chart-{n}" role="img" aria-label="{described}"></div>
<figcaption>{explained(chart["caption"], terms)}</figcaption>
</figure>"""


def _checkbox(group: dict[str, Any]) -> str:
    kind = {"dash": " dash", "dot": " dot"}.get(group["dash"], "")
    label = escape(group["label"])
    colour = escape(group["colour"])
    return (
        f'<label><input type="checkbox" checked data-reward="{label}">'
        f'<span class="swatch{kind}" style="border-color:{colour}"></span>'
        f'<span class="mark" style="color:{colour}">{GLYPHS.get(group["symbol"], "")}</span>'
        f"{label}</label>"
    )


def _picture(picture: Picture) -> str:
    if picture.uri is None:
        why = escape(picture.note)
        return f'<h3>{escape(picture.title)}</h3><p class="soft">No picture: {why}</p>'
    return (
        f'<h3>{escape(picture.title)}</h3><figure><div class="wide" role="region" tabindex="0" '
        f'aria-label="{escape(picture.title)}"><img src="{escape(picture.uri)}" '
        f'alt="{escape(picture.alt)}"></div><figcaption>{escape(picture.alt)}'
        "</figcaption></figure>"
    )


def png_uri(png: bytes) -> str:
    """A picture as an address that holds all of it."""
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"
