"""What the gradient of a batch is worth under each reward: tables from `irrl noise gradient`."""

import json
from collections.abc import Mapping
from typing import Any

from studies import RESULTS

from irrl.analysis.gradient import AGREEMENT, PARTS, cell, label
from irrl.analysis.noise import oracle_text
from irrl.analysis.stats import Estimate
from irrl.analysis.tables import markdown_table

MEASURED = {
    "digits-gradient": (
        "The policy gradient under each reward: RAM",
        "The runs of the first comparison of digits, one seed of each, at their checkpoints: "
        "gradients of one batch of 128 episodes by the run's discriminator, beside those that the "
        "oracle gives on the same episodes. Whatever a run was trained with, all rewards are "
        "measured on it.",
    ),
    "digits-dt-ram-gradient": (
        "The policy gradient under each reward: DT-RAM",
        "The same for the run of DT-RAM with the clipped linear reward, first and last checkpoint.",
    ),
    "skills-gradient": (
        "The policy gradient under each reward: skills",
        "Exact, from the tables of two runs of `fast`, seed 0, and the true posterior that follows "
        "from them. Nothing is sampled, so there are no intervals.",
    ),
}
"""What is in `results/`, and how it is told."""


def gradient_sections() -> str:
    return "".join(
        section(name, title, text)
        for name, (title, text) in MEASURED.items()
        if (RESULTS / f"{name}.json").exists()
    )


def section(name: str, title: str, text: str) -> str:
    record = json.loads((RESULTS / f"{name}.json").read_text())
    judge = f" {oracle_text(record['oracle'])}" if "oracle" in record else ""
    batches = {found["batches"] for found in record["runs"].values()} - {None}
    of = f" {min(batches)} batches; 95 % intervals over batches." if batches else ""
    parts = [
        f"\n## {title}\n\n{text}{judge}{of} [Method](method.md#what-a-shape-does-to-the-gradient) "
        f"has the definitions.\n\n    {record['command']}\n\ncommit {record['commit'][:10]}; data "
        f"in `results/{name}.json`\n"
    ]
    for run, found in record["runs"].items():
        rows = found["rewards"]
        parts.append(f"\n`{run}`, agreement of one batch with targets, signal-to-noise:\n\n")
        parts.append(table(rows, AGREEMENT))
        parts.append("\nThe parts: without sampling noise; what is kept; the paper's theory:\n\n")
        parts.append(table(rows, PARTS))
    parts.append(f"\n![{title}](../results/{name}.png)\n")
    return "".join(parts)


def table(rows: list[dict[str, Any]], columns: Mapping[str, str]) -> str:
    cells = [
        [
            f"{row['step']:,}",
            label(row),
            *(shown(row[key], columns is AGREEMENT) for key in columns),
        ]
        for row in rows
    ]
    return markdown_table(["step", "reward", *columns.values()], cells)


def shown(value: Any, with_interval: bool) -> str:
    if isinstance(value, dict):
        return cell(Estimate(**value, seeds=0), with_interval)
    return cell(value)
