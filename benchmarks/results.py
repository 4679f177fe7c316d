"""Make the runs behind `results/`, and write `docs/results.md` and the README's table from them.

    python benchmarks/results.py              all but the paper's full-scale runs
    python benchmarks/results.py --paper      those as well: half an hour more on two cores
    python benchmarks/results.py --no-runs    only write the documents anew

Runs go to `runs/results/`; what is finished is not run again.
"""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from irrl.report import markdown_table
from irrl.stats import Estimate

ROOT = Path(__file__).resolve().parent.parent
RUNS = ROOT / "runs" / "results"
RESULTS = ROOT / "results"

ALL = "clipped-linear,clipped-log,linear,accuracy,disdain"
SKILLS_AUTHORS = {
    "clipped-linear": "85-90",
    "clipped-log": "~31",
    "linear": "about 23 below clipped",
    "accuracy": "~40",
    "disdain": "87-93",
}
"""Final n_skills of the authors, read off their figures (linear: from their text)."""


class Study(NamedTuple):
    """Runs of `irrl compare`, and how they are shown."""

    title: str
    text: str
    flags: str
    authors: dict[str, str] | None = None

    @property
    def task(self) -> str:
        return self.flags.split()[0]


class Columns(NamedTuple):
    """What a task's tables show: metrics and their titles; the first is the figure of merit."""

    metrics: tuple[str, ...]
    titles: tuple[str, ...]


COLUMNS = {
    "skills": Columns(
        ("n_skills", "n_skills_greedy", "cells_reached"), ("n skills", "greedy", "cells reached")
    ),
    "digits": Columns(
        ("accuracy", "test_accuracy", "steps"), ("validation %", "test %", "glimpses")
    ),
}


STUDIES = {
    "skills-fast": Study(
        "Five rewards",
        "The `fast` preset. The ceiling is 97.6 skills.",
        f"skills --rewards {ALL} --seeds 5",
        authors=SKILLS_AUTHORS,
    ),
    "skills-paper": Study(
        "The authors' set-up at full length",
        "40 million iterations with SGD 0.004, as the authors ran it, one seed: does `fast` stand "
        "for it?",
        "skills --preset paper --rewards clipped-linear,clipped-log,linear,accuracy --seeds 1",
        authors=SKILLS_AUTHORS,
    ),
    "skills-visits": Study(
        "Beyond the paper: a bonus for rarely visited cells",
        "The `visits` preset: no ensemble, no random actions. A code is drawn to cells in which "
        "none ends yet. No posterior can do that: there the discriminator is ignorant, and every "
        "clipped reward about zero.",
        "skills --preset visits --rewards clipped-log --seeds 5",
    ),
    "skills-disdain-greedy": Study(
        "DISDAIN without random actions",
        "For a fair comparison with `visits`: random actions alone cost a skill or two.",
        "skills --rewards disdain --seeds 5 --epsilon 0",
    ),
    "skills-optimistic-log": Study(
        "Is it the shape, or the optimism? The clipped log with initial values of its own scale",
        "Q tables start uniform in [0, 1). That is optimistic beside a reward of at most 0.99, "
        "and pessimistic beside one of at most log 128 = 4.85. Here the clipped log starts in "
        "[0, 4.85), and most of its gap to the clipped linear reward is gone.",
        "skills --rewards clipped-log --seeds 5 --initial-value 4.852",
    ),
    "skills-pessimistic-linear": Study(
        "The converse: the clipped linear reward with initial values as small as the log's",
        "Here the clipped linear reward starts in [0, 0.206), as far below its range as [0, 1) is "
        "below that of the log. It does not mind; the log does.",
        "skills --rewards clipped-linear --seeds 5 --initial-value 0.206",
    ),
    "skills-small-map": Study(
        "The small map",
        "24 codes, 8 steps, 22 cells other than the start within reach: at most 21.4 skills.",
        f"skills --preset small-map --rewards {ALL} --seeds 5",
    ),
}
FULL_SCALE = ("skills-paper",)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--paper", action="store_true", help="the full-scale runs as well")
    parser.add_argument("--no-runs", action="store_true", help="only write the documents")
    options = parser.parse_args()
    if not options.no_runs:
        RESULTS.mkdir(exist_ok=True)
        for name, study in STUDIES.items():
            if options.paper or name not in FULL_SCALE:
                run_study(name, study)
        irrl("rewards", "--plot", "results/rewards.png")
        irrl("noise", "theory", "-o", "results/noise-theory.png")
    write_documents()


def run_study(name: str, study: Study) -> None:
    irrl("compare", *study.flags.split(), "--out", f"runs/results/{name}")
    target = RESULTS / name
    target.mkdir(exist_ok=True)
    for file in ("comparison.json", "comparison.png"):
        shutil.copy(RUNS / name / file, target / file)
    curves = {}
    for metrics in sorted((RUNS / name).glob("*/seed-*/metrics.jsonl")):
        rows = [json.loads(line) for line in metrics.read_text().splitlines()]
        key = f"{metrics.parent.parent.name}/{metrics.parent.name}"
        merit = COLUMNS[study.task].metrics[0]
        curves[key] = [[row["step"], round(row[merit], 2)] for row in rows]
    (target / "curves.json").write_text(json.dumps(curves) + "\n")


def irrl(*arguments: str) -> None:
    print("irrl", *arguments, flush=True)
    subprocess.run([sys.executable, "-m", "irrl", *arguments], check=True, cwd=ROOT)


def write_documents() -> None:
    parts = [
        "# Results\n\nWritten by `benchmarks/results.py` from the run folders; do not edit by "
        "hand. Means over seeds with a 95 % t interval. `n skills` is Eq. 9 under the "
        "policy that was trained, exact, not sampled; `greedy` leaves out its random actions.\n"
    ]
    for name, study in STUDIES.items():
        path = RESULTS / name / "comparison.json"
        if path.exists():
            result = json.loads(path.read_text())
            changed = ", with changes" if result["dirty"] else ""
            parts.append(
                f"\n## {study.title}\n\n{study.text}\n\n    irrl compare {study.flags}\n\n"
                f"commit {commits(result)}{changed}; data in `results/{name}/`\n\n"
                f"{table(result, study)}\n"
                f"![{study.title}](../results/{name}/comparison.png)\n"
            )
    (ROOT / "docs" / "results.md").write_text("".join(parts))

    fast = load("skills-fast")
    visits, optimistic = (
        str(Estimate(**load(name)["rewards"]["clipped-log"]["n_skills"]["mean"]))
        for name in ("skills-visits", "skills-optimistic-log")
    )
    block = (
        f"<!-- results -->\n{table(fast, STUDIES['skills-fast'])}\n"
        f"`irrl compare {STUDIES['skills-fast'].flags}`, commit {commits(fast)}\n\n"
        "Beyond the paper: `--preset visits`, a bonus for rarely visited cells in place of an "
        f"ensemble, learns **{visits}** skills. And a caveat: given initial values of its own "
        f"scale, the clipped log learns {optimistic}. [All results](docs/results.md), each with "
        "its command.\n<!-- end of results -->\n"
    )
    readme = (ROOT / "README.md").read_text()
    before, rest = readme.split("<!-- results -->\n")
    after = rest.split("<!-- end of results -->\n")[1]
    (ROOT / "README.md").write_text(before + block + after)


def load(study: str) -> dict[str, Any]:
    return json.loads((RESULTS / study / "comparison.json").read_text())


def commits(result: dict[str, Any]) -> str:
    return ", ".join(commit[:10] for commit in result["commits"])


def table(result: dict[str, Any], study: Study) -> str:
    metrics, titles = COLUMNS[study.task]
    rows = []
    for name, figures in result["rewards"].items():
        shown = [str(Estimate(**figures[metric]["mean"])) for metric in metrics]
        row = [name, str(len(figures["seeds"])), f"**{shown[0]}**", *shown[1:]]
        rows.append([*row, study.authors.get(name, "-")] if study.authors else row)
    header = ["reward", "seeds", *titles]
    return markdown_table([*header, f"authors' {titles[0]}"] if study.authors else header, rows)


if __name__ == "__main__":
    main()
