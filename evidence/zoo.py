"""`zoo/`: trained runs that a fresh clone can play, evaluate and judge by.

    python evidence/zoo.py NAME RUN [NAME RUN ...]    put finished runs there
    python evidence/zoo.py                            write zoo/README.md anew

Of a run its last checkpoint is kept, and all else that its folder has.
"""

import json
import re
import shutil
import sys
from pathlib import Path

from studies import ROOT

from irrl.analysis.tables import markdown_table
from irrl.runs.run import Run
from irrl.tasks import find_task, open_run

ZOO = ROOT / "zoo"
COMMANDS = (
    "irrl eval zoo/skills-visits",
    "irrl play zoo/skills-clipped-linear zoo/skills-clipped-log",
    "irrl eval zoo/digits-ram",
    "irrl play zoo/digits-ram",
    "irrl train digits --oracle zoo/digits-ram",
)


def main() -> None:
    words = sys.argv[1:]
    if len(words) % 2:
        raise SystemExit("give a name and a run folder, in pairs")
    for name, folder in zip(words[::2], words[1::2], strict=True):
        add(name, Path(folder))
    (ZOO / "README.md").write_text(readme())


def add(name: str, source: Path) -> None:
    """A copy of a finished run with its last checkpoint only."""
    run = open_run(source)
    if not (source / "summary.json").exists():
        raise SystemExit(f"{source} is not finished")
    if json.loads((source / "provenance.json").read_text())["dirty"]:
        raise SystemExit(f"{source} was run with changes that are not committed")
    last = (source / "checkpoints" / "last").read_text().strip()
    target = ZOO / name
    shutil.rmtree(target, ignore_errors=True)

    def older(folder: str, names: list[str]) -> list[str]:
        if Path(folder) == source:
            return [n for n in names if n == "tensorboard"]
        return [n for n in names if n.isdigit() and n != last]

    shutil.copytree(run.folder, target, ignore=older)


def runs() -> dict[str, Run]:
    """What is there, by name."""
    return {path.parent.name: open_run(path.parent) for path in sorted(ZOO.glob("*/config.json"))}


def readme() -> str:
    rows = []
    for name, run in runs().items():
        summary = json.loads((run.folder / "summary.json").read_text())
        made = json.loads((run.folder / "provenance.json").read_text())
        primary = find_task(run.config.task).for_variant(run.settings).primary
        rows.append(
            [
                f"`{name}`", f"{primary.title}: {summary[primary.name]:.1f}",
                f"`{made['command']}`", made["commit"][:10],
            ]
        )  # fmt: skip
    table = markdown_table(["run", "at the end of training", "made by", "commit"], rows)
    there = runs()
    commands = [
        f"    {c}" for c in COMMANDS if all(n in there for n in re.findall(r"zoo/(\S+)", c))
    ]
    lines = "\n".join(commands)
    return (
        "# The zoo\n\nA few trained runs, one seed each, as run folders with their last checkpoint "
        f"only. They need no training:\n\n{lines}\n\n{table}\n"
        "Digits need `irrl[torch]` and `irrl data mnist`. Written by `evidence/zoo.py`; the tests "
        "evaluate each run and find these numbers.\n"
    )


if __name__ == "__main__":
    main()
