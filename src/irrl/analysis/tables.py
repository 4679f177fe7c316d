"""Comparisons as tables: on the terminal, and as Markdown."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from irrl.analysis.compare import Standing
from irrl.analysis.stats import Estimate, Reached
from irrl.runs.files import to_json_bytes, write_atomic
from irrl.tasks.contract import Task


def table_rows(result: dict[str, Any], task: Task) -> tuple[list[str], list[list[str]]]:
    """Header and cells of a comparison: mean and 95 % interval of each metric."""
    found_in = result["rewards"].values()
    metrics = [m for m in task.all_columns() if all(m in found for found in found_in)]
    header = ["reward", "seeds", *map(column_title, metrics)]
    reached = {n: found["steps_to"] for n, found in result["rewards"].items()}
    if task.primary.threshold is not None and any(reached.values()):
        header.append(f"steps to {task.primary.threshold:g}")
    beside = [f["standing"] for f in result["rewards"].values() if f["standing"]]
    if beside:
        header.append(f"P({beside[0]['reference']} better)")
    columns = {
        title: {n: found.get(key) or "-" for n, found in result["rewards"].items()}
        for title, key in (("authors", "authors"), ("beside authors", "beside_authors"))
    }
    said = {title: cells for title, cells in columns.items() if set(cells.values()) != {"-"}}
    rows = []
    for name, found in result["rewards"].items():
        means = {m: Estimate(**found[m]["mean"]) for m in metrics}
        # how long a run took is no estimate of anything
        shown = [f"{m.value:.1f}" if metric == "seconds" else str(m) for metric, m in means.items()]
        if any(reached.values()):
            shown.append(str(Reached(**found["steps_to"])) if found["steps_to"] else "-")
        if beside:
            own = found["standing"]
            shown.append(str(Standing.from_json(own)) if own else "-")
        shown += [cells[name] for cells in said.values()]
        rows.append([name, str(len(found["seeds"])), *shown])
    return [*header, *said], rows


def column_title(metric: str) -> str:
    """A metric in the head of a table: `accuracy_percent` is "accuracy %"."""
    return metric.replace("_percent", "_%").replace("_", " ")


TABLE_NOTE = (
    "Mean over seeds [95 % t interval], or (the seeds themselves) where there are three or fewer."
)
STEPS_NOTE = "Steps to a threshold: median [interval], or the seeds (how many get there)."
P_NOTE = (
    "P: how often a seed of the one is better than a seed of the other [bootstrap interval]; p: "
    "one-sided permutation test."
)
AUTHORS_NOTE = (
    "The authors' numbers stand with the training they belong to, and ours are compared with them "
    "after the same training."
)


def note_below(header: Sequence[str]) -> str:
    """How to read a table with these columns."""
    notes = {
        STEPS_NOTE: any(" to " in title for title in header),
        P_NOTE: any(title.startswith("P(") for title in header),
        AUTHORS_NOTE: "authors" in header,
    }
    return " ".join([TABLE_NOTE, *(note for note, is_needed in notes.items() if is_needed)])


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def save_comparison(folder: Path, result: dict[str, Any], task: Task) -> None:
    """Write ``comparison.json`` and ``comparison.md``."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / "comparison.json", to_json_bytes(result))
    header, rows = table_rows(result, task)
    note = f"{note_below(header)}\n\n    {result['command']}\n"
    changes = " (with changes)" if result["dirty"] else ""
    commit = f"\ncommit {', '.join(result['commits'])}{changes}\n\n"
    table = markdown_table(header, rows)
    text = (note + commit + table).encode(errors="backslashreplace")
    write_atomic(folder / "comparison.md", text)
