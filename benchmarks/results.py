"""Make the runs behind `results/`, and write `docs/results.md` and the README's tables from them.

    python benchmarks/results.py              the quick ones: a quarter of an hour on two cores
    python benchmarks/results.py NAME ...     these; --list says which there are
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

import numpy as np

from irrl.authors import curve_point, texts
from irrl.report import THRESHOLD, YARDSTICK, markdown_table, standings, steps_to_threshold
from irrl.stats import Estimate, Reached, mean_estimate

ROOT = Path(__file__).resolve().parent.parent
RUNS = ROOT / "runs" / "results"
RESULTS = ROOT / "results"

ALL = "clipped-linear,clipped-log,linear,accuracy,disdain"
THREE = "clipped-linear,clipped-log,accuracy"
ORACLE = "runs/results/digits-ram-100/clipped-linear/seed-0"


class Study(NamedTuple):
    """Runs of `irrl compare`, and how they are shown."""

    title: str
    text: str
    flags: str
    authors: dict[str, str] | None = None
    hours: float = 0.0  # on two cores, where it is long

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
    "counting": Columns(
        ("accuracy", "well_founded", "moves"), ("right %", "right and well-founded %", "moves")
    ),
}


STUDIES = {
    "skills-fast": Study(
        "Five rewards",
        "The `fast` preset. The ceiling is 97.6 skills.",
        f"skills --rewards {ALL} --seeds 5",
        authors=texts("skills"),
    ),
    "skills-paper": Study(
        "The authors' set-up at full length",
        "40 million iterations with SGD 0.004, as the authors ran it, one seed: does `fast` stand "
        "for it?",
        "skills --preset paper --rewards clipped-linear,clipped-log,linear,accuracy --seeds 1",
        authors=texts("skills"),
        hours=0.5,
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
    "digits-ram": Study(
        "RAM on Cluttered MNIST: three rewards",
        "The `fast` recipe, ten epochs of its schedule.",
        f"digits --rewards {THREE} --seeds 3 --epochs 10 --checkpoint-every 2 --parts 1",
        authors=texts("ram"),
        hours=0.5,
    ),
    "digits-dt-ram": Study(
        "DT-RAM: three rewards",
        "The same for the model that decides when it has seen enough.",
        f"digits --model dt-ram --rewards {THREE} --seeds 3 --epochs 10 --parts 1",
        authors=texts("dt-ram"),
        hours=0.5,
    ),
    "digits-ram-100": Study(
        "RAM, the whole `fast` preset",
        "100 epochs. The discriminator of this run is the oracle of the studies below.",
        "digits --rewards clipped-linear --seeds 1 --parts 1",
        authors={
            "clipped-linear": " ".join(
                (
                    f"{curve_point('ram', 'clipped-linear', 100)} at 100 epochs,",
                    f"{curve_point('ram', 'clipped-linear', 1400)} at 1400",
                )
            )
        },
        hours=0.5,
    ),
    "digits-oracle": Study(
        "RAM paid by an oracle (reward hacking)",
        "The runs of the first study once more, paid by the frozen discriminator of a converged "
        "run. What a reward loses to the noise of a discriminator that is still learning is the "
        "gap between the two.",
        f"digits --oracle {ORACLE} --rewards {THREE} --seeds 3 --epochs 10 --parts 1",
        hours=0.6,
    ),
    "counting": Study(
        "Counting under occlusion: three rewards and three yardsticks",
        "The `fast` preset, but shorter and less patient in the beginning; 1,000 scenes that were "
        "not trained on. The yardsticks learn to answer "
        "with the same network, but not where to go: stay answers from the first view, random "
        "turns or stops by chance, sweep walks six moves to the opposite side. An answer is "
        "well-founded if each cube to be counted was seen in some view taken.",
        f"counting --rewards {THREE} --seeds 3 --yardsticks stay,random,sweep "
        "--yardstick-seeds 1 --episodes 80000 --discount 0.95 --parts 1",
        authors=texts("counting"),
        hours=1.0,
    ),
}
SCENES = ("data", "scenes", "--train", "20000", "--eval", "1000", "--resolution", "64")
"""What counting trains on, in the folder `scenes`."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("studies", nargs="*", metavar="NAME", help="studies to run")
    parser.add_argument("--no-runs", action="store_true", help="only write the documents")
    parser.add_argument("--list", action="store_true", help="list the studies")
    options = parser.parse_args()
    if options.list:
        for name, study in STUDIES.items():
            long = f" ({study.hours} hours on two cores)" if study.hours else ""
            print(f"{name}: {study.title}{long}")
        return
    if unknown := set(options.studies) - set(STUDIES):
        parser.error(f"no study {', '.join(sorted(unknown))}; --list says which there are")
    if not options.no_runs:
        RESULTS.mkdir(exist_ok=True)
        quick = [name for name, study in STUDIES.items() if not study.hours]
        for name in options.studies or quick:
            run_study(name, STUDIES[name])
        irrl("rewards", "--plot", "results/rewards.png")
        irrl("noise", "theory", "-o", "results/noise-theory.png")
        look_at_digits()
        look_at_counting()
    write_documents()


def look_at_digits() -> None:
    """What is measured and drawn of runs that are there."""
    runs = [f"runs/results/digits-ram/{name}/seed-0" for name in THREE.split(",")]
    if all((ROOT / run / "summary.json").exists() for run in (*runs, ORACLE)):
        irrl("noise", "measure", *runs, "--oracle", ORACLE, "-o", "results/digits-noise.png")
        irrl("play", *runs, "-o", "results/digits-play.png")


def look_at_counting() -> None:
    runs = [f"runs/results/counting/{name}/seed-0" for name in THREE.split(",")]
    if all((ROOT / run / "summary.json").exists() for run in runs):
        flags = ("--images", "3", "--seed", "0", "-o", "results/counting-play.png")
        irrl("play", *runs, *flags)


def run_study(name: str, study: Study) -> None:
    if study.task == "counting":
        irrl(*SCENES, "--out", "scenes")
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
        "hand. Means over seeds with a 95 % t interval; steps to a threshold are the median with "
        "its interval, and how many seeds get there; P is how often a seed of one reward is above "
        "one of the other, p that of a one-sided permutation test. `n skills` is Eq. 9 under the "
        "policy that was trained, exact, not sampled; `greedy` leaves out its random actions. "
        "Accuracy of digits is that of episodes without chance: on validation canvases at the end "
        "of a run, on canvases with test digits beside it. Counting is measured on scenes that "
        "were not trained on, with the likeliest action each time.\n"
    ]
    for name, study in STUDIES.items():
        if is_there(name):
            result = load(name)
            changed = ", with changes" if result["dirty"] else ""
            parts.append(
                f"\n## {study.title}\n\n{study.text}\n\n    irrl compare {study.flags}\n\n"
                f"commit {commits(result)}{changed}; data in `results/{name}/`\n\n"
                f"{table(result, study, beside=beside(name, study))}\n"
                f"![{study.title}](../results/{name}/comparison.png)\n"
            )
    if is_there("digits-oracle"):
        parts.append(f"\n### What the oracle adds\n\n{oracle_table()}")
    if (RESULTS / "digits-noise.json").exists():
        parts.append(noise_section())
    (ROOT / "docs" / "results.md").write_text("".join(parts))
    readme = (ROOT / "README.md").read_text()
    readme = fill(readme, "results", skills_block())
    if is_there("digits-ram"):
        readme = fill(readme, "digits", digits_block())
    if is_there("counting"):
        readme = fill(readme, "counting", counting_block())
    (ROOT / "README.md").write_text(readme)


def fill(text: str, name: str, block: str) -> str:
    """Put a block between two marks."""
    before, rest = text.split(f"<!-- {name} -->\n")
    after = rest.split(f"<!-- end of {name} -->\n")[1]
    return f"{before}<!-- {name} -->\n{block}<!-- end of {name} -->\n{after}"


def skills_block() -> str:
    fast = load("skills-fast")
    visits, optimistic = (
        str(Estimate(**load(name)["rewards"]["clipped-log"]["n_skills"]["mean"]))
        for name in ("skills-visits", "skills-optimistic-log")
    )
    return (
        f"{table(fast, STUDIES['skills-fast'])}\n"
        f"`irrl compare {STUDIES['skills-fast'].flags}`, commit {commits(fast)}\n\n"
        "Beyond the paper: `--preset visits`, a bonus for rarely visited cells in place of an "
        f"ensemble, learns **{visits}** skills. And a caveat: given initial values of its own "
        f"scale, the clipped log learns {optimistic}. [All results](docs/results.md), each with "
        "its command.\n"
    )


def digits_block() -> str:
    """RAM and DT-RAM side by side, with what the authors reached."""
    models = {"RAM": ("digits-ram", "ram"), "DT-RAM": ("digits-dt-ram", "dt-ram")}
    models = {title: pair for title, pair in models.items() if is_there(pair[0])}
    rows = []
    for name in THREE.split(","):
        row = [name]
        for study, model in models.values():
            figures = load(study)["rewards"][name]["accuracy"]["mean"]
            row += [f"**{Estimate(**figures)}**", texts(model)[name]]
        if is_there("digits-oracle"):
            oracle = load("digits-oracle")["rewards"][f"{name} (oracle)"]["accuracy"]["mean"]
            row.append(str(Estimate(**oracle)))
        rows.append(row)
    header = ["reward"]
    for title in models:
        header += [title, "authors, 1500 epochs"]
    if is_there("digits-oracle"):
        header.append("RAM, paid by an oracle")
    lines = [
        f"`irrl compare {STUDIES[study].flags}`, commit {commits(load(study))}"
        for study, _ in (*models.values(), ("digits-oracle", ""))
        if is_there(study)
    ]
    return (
        "Hard attention on Cluttered MNIST, validation accuracy in percent, and what the authors "
        f"reached in 1500 epochs:\n\n{markdown_table(header, rows)}\n" + "  \n".join(lines) + "\n"
    )


def counting_block() -> str:
    result, study = load("counting"), STUDIES["counting"]
    return (
        "Counting cubes some of which are hidden, walking around the table: 1,000 new scenes, and "
        f"what the authors reached in 2 million episodes.\n\n{table(result, study)}\n"
        f"`irrl {' '.join(SCENES)} --out scenes`, then `irrl compare {study.flags}`, commit "
        f"{commits(result)}\n\n"
        "![Learning curves of three rewards and three yardsticks](results/counting/comparison.png)"
        "\n\n![The same scenes, walked by agents that were paid differently]"
        "(results/counting-play.png)\n"
    )


def oracle_table() -> str:
    """Accuracy with the oracle less accuracy without, of the same seeds."""
    online, oracle = load("digits-ram")["rewards"], load("digits-oracle")["rewards"]
    rows = []
    for name in THREE.split(","):
        with_oracle = oracle[f"{name} (oracle)"]["accuracy"]
        pairs = zip(with_oracle["values"], online[name]["accuracy"]["values"], strict=True)
        gap = mean_estimate([a - b for a, b in pairs])
        shown = [str(Estimate(**f["mean"])) for f in (online[name]["accuracy"], with_oracle)]
        rows.append([name, *shown, f"**{gap}**"])
    return markdown_table(["reward", "online", "oracle", "gap, seed by seed"], rows)


def noise_section() -> str:
    measured = json.loads((RESULTS / "digits-noise.json").read_text())
    rows, noise = [], []
    for run, figures in measured["runs"].items():
        name = run.split("/")[-2]
        for d in figures["delta"]:
            shown = [f"{d[k]:+.3f}" for k in ("mean", "deviation", "skewness")]
            p = [f"{d[k]:.2g}" for k in ("p_zero_mean", "p_symmetric")]
            rows.append([name, str(d["epoch"]), *shown, *p])
        for r in figures["rewards"]:
            keys = ("bias", "predicted_bias", "deviation", "predicted_deviation")
            if r["reward"] == name:
                noise.append([name, str(r["epoch"]), *(f"{r[k]:+.3f}" for k in keys)])
    first = [
        "run paid by",
        "epoch",
        "mean",
        "deviation",
        "skewness",
        "p(zero mean)",
        "p(symmetric)",
    ]
    second = ["reward", "epoch", "bias", "2nd order", "deviation", "2nd order"]
    return (
        "\n## Discriminator noise, measured\n\nPosterior of the true label by the online "
        "discriminator less that by the oracle, on the same glimpses of 1,000 test canvases.\n\n"
        f"    {measured['command']}\n\ncommit {measured['commit'][:10]}; data in "
        f"`results/digits-noise.json`\n\n{markdown_table(first, rows)}\n"
        "What this noise does to the reward that paid the run, and what `irrl.noise` predicts from "
        f"its first moments:\n\n{markdown_table(second, noise)}\n"
        "![Violins of discriminator noise](../results/digits-noise.png)\n"
    )


def is_there(study: str) -> bool:
    return (RESULTS / study / "comparison.json").exists()


def load(study: str) -> dict[str, Any]:
    return json.loads((RESULTS / study / "comparison.json").read_text())


def commits(result: dict[str, Any]) -> str:
    return ", ".join(commit[:10] for commit in result["commits"])


def beside(name: str, study: Study) -> dict[str, dict[str, str]]:
    """Columns more, from the values and curves that are kept: title -> reward -> cell."""
    merit = COLUMNS[study.task].metrics[0]
    finals = {r: figures[merit]["values"] for r, figures in load(name)["rewards"].items()}
    curves = json.loads((RESULTS / name / "curves.json").read_text())
    speeds = {r: to_threshold(curves, r) for r in finals}
    columns = {}
    if any(speed.reached for speed in speeds.values()):
        columns[f"steps to {THRESHOLD:g}"] = {r: str(speed) for r, speed in speeds.items()}
    found = standings(finals)
    if found and min(map(len, finals.values())) > 1:
        reference = next(iter(found.values())).reference
        columns[f"P({reference} above it)"] = {r: str(s) for r, s in found.items()}
    return columns


def to_threshold(curves: dict[str, list], label: str) -> Reached:
    folder = label.removesuffix(" (oracle)").removesuffix(YARDSTICK)
    rows = [points for key, points in curves.items() if key.split("/")[0] == folder]
    return steps_to_threshold((np.array(rows[0])[:, 0], np.array(rows)[:, :, 1]))


def table(
    result: dict[str, Any], study: Study, beside: dict[str, dict[str, str]] | None = None
) -> str:
    metrics, titles = COLUMNS[study.task]
    more = beside or {}
    rows = []
    for name, figures in result["rewards"].items():
        shown = [str(Estimate(**figures[metric]["mean"])) for metric in metrics]
        row = [name, str(len(figures["seeds"])), f"**{shown[0]}**", *shown[1:]]
        row += [cells.get(name, "-") for cells in more.values()]
        rows.append([*row, study.authors.get(name, "-")] if study.authors else row)
    header = ["reward", "seeds", *titles, *more]
    return markdown_table([*header, f"authors' {titles[0]}"] if study.authors else header, rows)


if __name__ == "__main__":
    main()
