"""From studies to the parts of a page: headline, tables, curves, pictures."""

import io
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from irrl.analysis.compare import BASELINE, REFERENCE, is_reward
from irrl.analysis.plots import colour_of, dashes_of, is_filled, marker_of, what_is_drawn
from irrl.analysis.ranges import range_in
from irrl.analysis.stats import FEW, reach_of_mean
from irrl.analysis.tables import column_title, note_below
from irrl.errors import UserError
from irrl.report.figures import first_seeds
from irrl.report.glossary import TERMS, used_in
from irrl.report.html import Page, Picture, Section, Table, png_uri
from irrl.report.noise import NoiseSection
from irrl.report.studies import Row, Study, share_of_authors
from irrl.runs.provenance import provenance
from irrl.runs.run import Run

SYMBOLS = {
    "s": "square", "o": "circle", "^": "triangle-up", "D": "diamond", "v": "triangle-down",
    "<": "triangle-left", ">": "triangle-right", "P": "cross", "X": "x", "p": "pentagon",
    "h": "hexagon", "*": "star",
}  # fmt: skip
"""What Plotly calls the markers of Matplotlib."""

POINTS = 500
"""Of a curve, at most so many are shown."""


def make_page(
    studies: Sequence[Study], noise: Sequence[NoiseSection], left_out: Sequence[str] = ()
) -> Page:
    runs = [run for study in studies for run in study.runs]
    made = provenance()
    commit = f", commit {made['commit'][:10]}" if made["commit"] else ""
    several = len({study.title for study in studies}) < len(studies)
    page = Page(
        "Internally rewarded reinforcement learning: report",
        [*headline(studies), *(f"Left out: {line}." for line in left_out)],
        [made_table(runs), runs_table(runs)],
        [section(study, several) for study in studies],
        list(noise),
        f"Made by `{made['command']}`, irrl {made['irrl']}{commit}. This page needs no network.",
    )
    return with_terms(page, studies)


# --- words and tables ---


def with_terms(page: Page, studies: Sequence[Study]) -> Page:
    """The page with a glossary of the words that stand on it, general ones and its tasks'."""
    terms = {**TERMS, **{t: text for study in studies for t, text in study.task.terms.items()}}
    tables = [table for _, found, _ in page.more for table in found]
    tables += [section.table for section in page.sections]
    text = [*page.headline]
    for section in page.sections:
        text += [section.title, *section.lines, section.chart["caption"]]
    for table in tables:
        text += [*table.header, table.caption, *(cell for row in table.rows for cell in row)]
    return page._replace(terms=used_in("\n".join(text), terms))


def headline(studies: Sequence[Study]) -> list[str]:
    lines = []
    for study in studies:
        rewards = [row for row in study.rows if is_reward(row.label)]
        if not rewards:
            continue
        best = rewards[0]  # rows are sorted
        line = f"{study.title} ({study.set_up}): best is {best.label}, {_with_seeds(best)}."
        own = next((row for row in rewards if row.label == REFERENCE and row.verdict != "-"), None)
        if own is not None and own.theirs is not None:
            theirs = f"{own.theirs.anchor.text} at {own.theirs.length}"
            line += f" {REFERENCE} beside the authors' {theirs}: {own.verdict}."
        if study.order:
            line += f" {study.order[0].upper()}{study.order[1:]}."
        lines.append(line)
    share = share_of_authors(studies, REFERENCE)
    if share is not None:
        ends = "" if share.low is None else f" [{share.low:.2f}, {share.high:.2f}]"
        lines.append(
            f"Over all tasks, {REFERENCE} as a share of the authors' number after the same "
            f"training: interquartile mean {share.value:.2f}{ends}, {share.seeds} runs, stratified "
            "bootstrap."
        )
    return lines


def _with_seeds(row: Row) -> str:
    return f"{row.final} over {len(row.seeds)} seed{'s' * (len(row.seeds) > 1)}"


def made_table(runs: Sequence[Run]) -> Table:
    """Commands, versions and machines, each once."""
    kinds: dict[tuple[str, ...], int] = {}
    for run in runs:
        made = run.provenance()
        machine = made.get("machine", {})
        processor = machine.get("processor") or machine.get("system", "?")
        changes = " with changes" if made.get("dirty") else ""
        key = (
            str(made.get("command", "not known")),
            f"{made.get('irrl', '?')}, {str(made.get('commit'))[:10]}{changes}",
            f"{processor}, {machine.get('cores')} cores",
        )
        kinds[key] = kinds.get(key, 0) + 1
    rows = [[command, str(n), version, on] for (command, version, on), n in kinds.items()]
    return Table(["command", "runs", "irrl, commit", "machine"], rows)


def runs_table(runs: Sequence[Run]) -> Table:
    """Hours of each task: what all of this cost."""
    seconds: dict[str, list[float]] = {}
    for run in runs:
        spent = run.final("seconds") if "seconds" in run.summary() else 0.0
        seconds.setdefault(run.task, []).append(spent)
    rows = [[t, str(len(s)), f"{sum(s) / 3600:.2f}"] for t, s in seconds.items()]
    return Table(["task", "finished runs", "hours in all"], rows)


def section(study: Study, several: bool) -> Section:
    lines = [] if several else [f"Set-up: {study.set_up}."]
    if study.order:
        lines.append(f"{study.order[0].upper()}{study.order[1:]}.")
    lines += peers(study)
    title = f"{study.title} ({study.set_up})" if several else study.title
    return Section(title, lines, study_table(study), chart(study), pictures(study))


def peers(study: Study) -> list[str]:
    """What others publish for the same environment, by their source."""
    found: dict[str, list[str]] = {}
    for peer in study.task.peers(next(iter(study.groups.values()))[0].settings):
        found.setdefault(peer.source, []).append(f"{peer.method} {peer.text} ({peer.length})")
    return [f"Published by others: {'; '.join(rows)}. {source}" for source, rows in found.items()]


def study_table(study: Study) -> Table:
    """A row for each reward; a column is there only if some row has something to say in it."""
    task = study.task
    threshold = task.primary.threshold or 0.0
    reference = next((r.standing.reference for r in study.rows if r.standing), "")
    columns: dict[str, Callable[[Row], str]] = {
        "reward": lambda row: row.label,
        "seeds": lambda row: str(len(row.seeds)),
        task.primary.title: lambda row: str(row.final),
        "authors": lambda row: row.theirs.text if row.theirs else "-",
        "beside authors": lambda row: row.verdict,
        f"{task.config.length} to {threshold:g}": _speed,
        f"P({reference} better)": lambda row: str(row.standing) if row.standing else "-",
    }
    for metric in study.rows[0].others:
        columns[column_title(metric)] = lambda row, m=metric: str(row.others[m])  # type: ignore[misc]
    columns["interquartile mean"] = lambda row: (
        str(row.interquartile) if len(row.seeds) > FEW else "-"
    )
    columns["area"] = lambda row: str(row.area)
    cells = {title: [show(row) for row in study.rows] for title, show in columns.items()}
    kept = {title: column for title, column in cells.items() if set(column) != {"-"}}
    rows = [list(row) for row in zip(*kept.values(), strict=True)]
    more = "Area: mean height of the curve."
    if "interquartile mean" in kept:
        more += " Interquartile mean [bootstrap interval]."
    return Table(list(kept), rows, f"{note_below(list(kept))} {more}")


def _speed(row: Row) -> str:
    theirs = row.theirs.anchor.steps_to_80 if row.theirs else None
    if row.reached is None or (not row.reached.reached and theirs is None):
        return "-"
    return str(row.reached) + (f"; authors ~{theirs:g}" if theirs else "")


# --- curves ---


def chart(study: Study) -> dict[str, Any]:
    panels = {name: metric.title for name, metric in study.task.all_panels().items()}
    groups = [_group(study, row.label, list(panels)) for row in study.rows]
    crosses = " Crosses: the authors." if any(g["authors"]["steps"] for g in groups) else ""
    drawn = what_is_drawn([len(row.seeds) for row in study.rows])
    hidden = "; point at a curve to see its seeds" if any(g["reach"] for g in groups) else ""
    config = study.runs[0].config
    return {
        "step": study.task.config.length,
        "primary": study.task.primary.name,
        "metrics": panels,
        "ranges": {name: _ends(range_in(study.task, config, name)) for name in panels},
        "groups": groups,
        "caption": f"{drawn[0].upper()}{drawn[1:]}{hidden}.{crosses}",
    }


def _ends(bounds: tuple[float, float]) -> list[float | None]:
    return [x if math.isfinite(x) else None for x in bounds]


def _group(study: Study, label: str, metrics: Sequence[str]) -> dict[str, Any]:
    curves = study.curves[label]
    steps = curves[metrics[0]][0]
    kept = thinned(len(steps))
    values = {m: [_rounded(row[kept]) for row in curves[m][1]] for m in metrics}
    theirs = next((row.theirs for row in study.rows if row.label == label), None)
    points: tuple[list[int], list[float]] = ([], [])
    pace = study.task.pace(study.groups[label][0].settings)
    if theirs and study.published:
        points = study.published.curve_up_to(label, float(steps[-1]) * pace)
    seeds = len(study.groups[label])
    return {
        "label": label,
        **line_style(label),
        "steps": steps[kept].tolist(),
        "values": values,
        "reach": reach_of_mean(seeds) if seeds > FEW else None,  # few are drawn one by one
        "authors": {"steps": [step / pace for step in points[0]], "values": points[1]},
    }


def line_style(label: str) -> dict[str, str]:
    """Colour and marker of a reward are the same everywhere; scripted baselines are grey."""
    if label.endswith(BASELINE):
        return {"colour": "#767676", "dash": "dot", "symbol": ""}
    dash = {"-": "solid", "--": "dash", ":": "dot"}[dashes_of(label)]
    hollow = "" if is_filled(label) else "-open"
    return {
        "colour": colour_of(label),
        "dash": dash,
        "symbol": SYMBOLS.get(marker_of(label), "circle-dot") + hollow,
    }


def thinned(length: int, points: int = POINTS) -> np.ndarray:
    """Which points of a curve are shown: the first, the last, and as many between as may be."""
    return np.unique(np.linspace(0, length - 1, min(length, points)).round().astype(int))


def _rounded(values: np.ndarray) -> list[float]:
    return [float(f"{value:.5g}") for value in values]


# --- pictures ---


def pictures(study: Study) -> list[Picture]:
    """What the policies of a study do, or why that cannot be shown here."""
    its = study.task.picture
    if its is None:
        return []
    learned = {n: g for n, g in study.groups.items() if is_reward(n)} or study.groups
    firsts = ", ".join(f"{label} seed {g[0].settings['seed']}" for label, g in learned.items())
    try:
        uri = data_uri(its.plot(first_seeds(study.runs)))
        return [Picture(its.title, f"{its.description}. Runs: {firsts}.", uri)]
    except (UserError, OSError, ImportError) as error:
        return [Picture(its.title, its.description, None, " ".join(str(error).split()))]


def data_uri(figure: Figure) -> str:
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=130, bbox_inches="tight")
    return png_uri(content.getvalue())
