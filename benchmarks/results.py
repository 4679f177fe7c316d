"""Make the runs behind `results/` and the README's figures, and put their small data there.

    python benchmarks/results.py            everything but the paper's full-scale runs
    python benchmarks/results.py paper      those, too: an hour on two cores

Runs go to `runs/results/`; what is finished is not run again.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RUNS = ROOT / "runs" / "results"
RESULTS = ROOT / "results"

ALL = "clipped-linear,clipped-log,linear,accuracy,disdain"
LOG_128 = "4.852"

STUDIES = {
    "skills-fast": ["--rewards", ALL, "--seeds", "5"],
    "skills-small-map": ["--preset", "small-map", "--rewards", ALL, "--seeds", "5"],
    "skills-visits": ["--preset", "visits", "--rewards", "clipped-log", "--seeds", "5"],
    # The same without random actions for DISDAIN, to be fair to it.
    "skills-disdain-greedy": ["--rewards", "disdain", "--seeds", "5", "--epsilon", "0"],
    # Is it the shape of the reward, or how optimistic the initial values are beside it?
    "skills-optimistic-log": [
        "--rewards", "clipped-log", "--seeds", "5", "--initial-value", LOG_128
    ],
    "skills-pessimistic-linear": [
        "--rewards", "clipped-linear", "--seeds", "5", "--initial-value", "0.206"
    ],
}  # fmt: skip
PAPER = {"skills-paper": ["--preset", "paper", "--rewards", ALL, "--seeds", "1"]}


def irrl(*arguments: str) -> None:
    print("irrl", *arguments, flush=True)
    subprocess.run([sys.executable, "-m", "irrl", *arguments], check=True, cwd=ROOT)


def main() -> None:
    RESULTS.mkdir(exist_ok=True)
    studies = {**STUDIES, **(PAPER if "paper" in sys.argv[1:] else {})}
    for name, flags in studies.items():
        out = RUNS / name
        irrl("compare", "skills", *flags, "--out", str(out.relative_to(ROOT)))
        target = RESULTS / name
        target.mkdir(exist_ok=True)
        for file in ("comparison.json", "comparison.md", "comparison.png"):
            shutil.copy(out / file, target / file)
        save_curves(out, target / "curves.json")
    irrl("rewards", "--plot", "results/rewards.png")
    irrl("noise", "theory", "-o", "results/noise-theory.png")


def save_curves(out: Path, path: Path) -> None:
    """n_skills over iterations of each run: the data behind the figure."""
    curves = {}
    for metrics in sorted(out.glob("*/seed-*/metrics.jsonl")):
        rows = [json.loads(line) for line in metrics.read_text().splitlines()]
        name = f"{metrics.parent.parent.name}/{metrics.parent.name}"
        curves[name] = [[row["step"], round(row["n_skills"], 2)] for row in rows]
    path.write_text(json.dumps(curves) + "\n")


if __name__ == "__main__":
    main()
