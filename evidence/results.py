"""Make the runs behind `results/`, and write `docs/results.md` and the README's tables from them.

    python evidence/results.py              the quick ones: a quarter of an hour on two cores
    python evidence/results.py NAME ...     these; --list says which there are
    python evidence/results.py --no-runs    only write the documents anew

Runs go to `runs/results/`; what is finished is not run again.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys

from documents import write_documents
from redraw import redraw
from studies import (
    FAST,
    FAST_DT,
    ORACLE_RUN,
    RESULTS,
    ROOT,
    SCENES,
    STUDIES,
    THREE,
    TWO,
    Study,
)
from tables import has_curves

RUNS = ROOT / "runs" / "results"
EPISODES = "51200"  # whose policy gradients are measured: 400 batches


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
        irrl("rewards", "--plot", "results/rewards.png", "--force")
        irrl("noise", "theory", "-o", "results/noise-theory.png", "--force")
        look_at_digits()
        look_at_counting()
        look_at_skills()
        look_at_gradients()
    redraw()
    write_documents()


def look_at_digits() -> None:
    """What is measured and drawn of runs that are there."""
    keep_calibration("digits-ram", "digits-ram-leak", "digits-dt-ram", "digits-dt-ram-leak")
    runs = [f"runs/results/digits-ram/{name}/seed-0" for name in THREE.split(",")]
    if all((ROOT / run / "summary.json").exists() for run in (*runs, ORACLE_RUN)):
        irrl("noise", "measure", *runs, "--oracle", ORACLE_RUN, "-o", "results/digits-noise.png",
             "--force")  # fmt: skip
        draw_cases("digits-play.png", *runs)
    if all((ROOT / run / "summary.json").exists() for run in (FAST, FAST_DT)):
        keep_sheet("digits-play-fast.png", FAST, FAST_DT)
    if (ROOT / FAST / "summary.json").exists():
        found = {p: irrl("eval", FAST, "--placement", p, "--json") for p in ("paper", "uniform")}
        accuracy = {p: json.loads(text)["test_accuracy_percent"] for p, text in found.items()}
        (RESULTS / "digits-placement.json").write_text(json.dumps(accuracy, indent=1) + "\n")


def draw_cases(name: str, *runs: str) -> None:
    """Episodes in which agents differ."""
    irrl("figure", "case-study", *runs, "-o", f"results/{name}", "--force")


def keep_calibration(*studies: str) -> None:
    """How far posteriors are from how often they are right, for each seed of each reward."""
    found: dict[str, dict[str, list[float]]] = {}
    for study in studies:
        for path in sorted((RUNS / study).glob("*/seed-*/summary.json")):
            error = json.loads(path.read_text())["discriminator_calibration_error"]
            found.setdefault(study, {}).setdefault(path.parts[-3], []).append(error)
    if len(found) == len(studies):
        (RESULTS / "digits-calibration.json").write_text(json.dumps(found, indent=1) + "\n")


def look_at_counting() -> None:
    runs = [f"runs/results/counting/{name}/seed-0" for name in THREE.split(",")]
    if all((ROOT / run / "summary.json").exists() for run in runs):
        draw_cases("counting-play.png", *runs)


def look_at_skills() -> None:
    runs = [f"runs/results/gym-point-mass/{name}/seed-0" for name in THREE.split(",")]
    if all((ROOT / run / "summary.json").exists() for run in runs):
        keep_sheet("gym-skills.png", *runs, "--episodes", "2")
    drawn = [f"gym-half-cheetah/{name}" for name in TWO.split(",")] + ["gym-half-cheetah-diayn/log"]
    runs = [f"runs/results/{each}/seed-0" for each in drawn]
    if all((ROOT / run / "summary.json").exists() for run in runs):
        keep_sheet("gym-half-cheetah/paths.png", *runs, "--episodes", "4")


def look_at_gradients() -> None:
    """Policy gradients of runs that are there, beside an oracle's."""
    judged = ("--oracle", ORACLE_RUN, "--episodes", EPISODES)
    ram = [f"digits-ram/{name}" for name in THREE.split(",")]
    measure("digits-gradient", ram, "5", *judged)
    measure("digits-dt-ram-gradient", ["digits-dt-ram/clipped-linear"], "2", *judged)
    measure("skills-gradient", [f"skills-fast/{name}" for name in TWO.split(",")], "6")


def measure(name: str, studies: list[str], checkpoints: str, *options: str) -> None:
    runs = [f"runs/results/{study}/seed-0" for study in studies]
    needed = [*runs, ORACLE_RUN] if "--oracle" in options else runs
    if all((ROOT / run / "summary.json").exists() for run in needed):
        irrl("noise", "gradient", *runs, "--checkpoints", checkpoints, *options,
             "-o", f"results/{name}.png", "--force")  # fmt: skip


def keep_sheet(name: str, *arguments: str) -> None:
    """Play, and keep the sheet; the animation stays with the runs."""
    irrl("play", *arguments, "--seed", "0", "-o", f"runs/results/{name}", "--force")
    shutil.copy(RUNS / name, RESULTS / name)


def run_study(name: str, study: Study) -> None:
    if study.task == "counting":
        irrl(*SCENES, "--out", "scenes")
    irrl("compare", *study.flags.split(), "--out", f"runs/results/{name}")
    keep_study(name, study)


def keep_study(name: str, study: Study) -> None:
    """What is small of finished runs."""
    target = RESULTS / name
    target.mkdir(exist_ok=True)
    shutil.copy(RUNS / name / "comparison.json", target)
    curves = {}
    for metrics in sorted((RUNS / name).glob("*/seed-*/metrics.jsonl")):
        rows = [json.loads(line) for line in metrics.read_text().splitlines()]
        key = f"{metrics.parent.parent.name}/{metrics.parent.name}"
        primary = study.columns.metrics[0]
        curves[key] = [
            [row["step"], round(row[primary], 2 if row[primary] >= 1.0 else 5)] for row in rows
        ]
    (target / "curves.json").write_text(json.dumps(curves) + "\n")
    if has_curves(name):
        for path in (RUNS / name).glob("comparison-*.png"):  # comparison.png is drawn by `redraw`
            shutil.copy(path, target)


def irrl(*arguments: str) -> str:
    print("irrl", *arguments, flush=True)
    command = [sys.executable, "-m", "irrl", *arguments]
    paths = [str(ROOT / "evidence"), os.environ.get("PYTHONPATH", "")]  # for its environments
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    done = subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=env)
    print(done.stdout, flush=True)
    return done.stdout


if __name__ == "__main__":
    main()
