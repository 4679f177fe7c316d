"""Skills in mazes: the studies, and the tables of `docs/mazes.md`.

    python evidence/mazes.py NAME ...     run these studies; --list says which there are
    python evidence/mazes.py --random     measure what random actions reach
    python evidence/mazes.py              only keep and draw what was run, and write the tables

Runs go to `runs/results/`; what is finished is not run again.
"""

import argparse
import json
from typing import Any

import numpy as np
from beside import estimate_of
from gym_tables import half_cheetah_table
from readme import fill
from studies import RESULTS, ROOT
from study import Study
from tables import commits, is_there, load
from upside import AS_LONG_AS_TRAINING, upside_table

from irrl.analysis.stats import mean_estimate
from irrl.analysis.tables import markdown_table
from irrl.envs.maze_metrics import BUCKETS
from irrl.envs.maze_vector import MazeVector
from results import RUNS, keep_sheet, keep_study, run_study

PAGE = ROOT / "docs" / "mazes.md"
DIAYN = "--rewards log --judge state --pay steps --bonus-weight 0 --discount 0.99"
EACH_STEP = (
    "--env-options {} --rollout 200 --batch-size 4000 --steps 2000000 --evaluate-every 400000"
)

MAZE_STUDIES = {
    "gym-maze": Study(
        "Bottleneck",
        "The preset `maze`.",
        "gym --preset maze --rewards clipped-linear,clipped-log --seeds 5",
    ),
    "gym-maze-log-bonus": Study(
        "Bottleneck, a bonus in the log's units",
        "A visits bonus of the same share of the largest reward: log 50 is four times 0.98.",
        "gym --preset maze --rewards clipped-log --bonus-weight 0.8 --seeds 3",
    ),
    "gym-maze-diayn": Study(
        "Bottleneck, DIAYN-50",
        "The unclipped log at every state, no bonus, in the same trainer.",
        f"gym --preset maze {DIAYN} --seeds 5",
    ),
    "gym-maze-diayn-each-step": Study(
        "Bottleneck, DIAYN-50, an action for each step",
        "The same in the maze as it is, without repeated actions, for two million steps.",
        f"gym --preset maze {DIAYN} {EACH_STEP} --seeds 1",
    ),
    "gym-u-maze": Study(
        "U-Maze",
        "The preset `u-maze`.",
        "gym --preset u-maze --rewards clipped-linear --seeds 5",
    ),
}
COLUMNS = {
    "coverage": "buckets of 100",
    "n_skills": "n skills",
    "accuracy_percent": "codes told %",
    "cpu_seconds": "CPU seconds",
}
PICTURES = {
    "gym-maze": ("gym-maze/clipped-linear", "gym-maze/clipped-log", "gym-maze-diayn/log"),
    "gym-u-maze": ("gym-u-maze/clipped-linear",),
}
RANDOM = {"50 episodes": (50, 40), AS_LONG_AS_TRAINING: (50_000, 3)}
"""Episodes, and how many seeds."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("studies", nargs="*", metavar="NAME", help="studies to run")
    parser.add_argument("--random", action="store_true", help="measure random actions")
    parser.add_argument("--list", action="store_true", help="list the studies")
    options = parser.parse_args()
    if options.list:
        for name, study in MAZE_STUDIES.items():
            print(f"{name}: {study.title}")
        return
    if unknown := set(options.studies) - set(MAZE_STUDIES):
        parser.error(f"no study {', '.join(sorted(unknown))}; --list says which there are")
    for name in options.studies:
        run_study(name, MAZE_STUDIES[name])
    for name, study in MAZE_STUDIES.items():
        if (RUNS / name / "comparison.json").exists():
            keep_study(name, study)
    if options.random:
        (RESULTS / "gym-maze-random.json").write_text(json.dumps(measure_random(), indent=1) + "\n")
    for name, drawn in PICTURES.items():
        runs = [f"runs/results/{each}/seed-0" for each in drawn]
        if all((ROOT / run / "summary.json").exists() for run in runs):
            keep_sheet(f"{name}/paths.png", *runs, "--episodes", "1")
    PAGE.write_text(page_text(PAGE.read_text()))


# --- random actions ---


def measure_random() -> dict[str, Any]:
    """Buckets that uniform actions reach in the mazes, by number of episodes: each seed."""
    return {
        text: {
            maze: [random_coverage(maze, episodes, seed) for seed in range(seeds)]
            for maze in ("bottleneck", "u-maze")
        }
        for text, (episodes, seeds) in RANDOM.items()
    }


def random_coverage(maze: str, episodes: int, seed: int) -> int:
    """Buckets that so many episodes of uniform actions reach together."""
    envs, rng = MazeVector(episodes, map=maze), np.random.default_rng(seed)
    places, _ = envs.reset(seed=seed)
    reached = np.zeros((BUCKETS, BUCKETS), bool)
    for _ in range(envs.agents.horizon):  # the last place is not looked at: the next has begun
        across, up = np.minimum((places + 1.0) / 2.0 * BUCKETS, BUCKETS - 1).astype(int).T
        reached[up, across] = True
        places = envs.step(rng.uniform(-1.0, 1.0, (episodes, 2)).astype(np.float32))[0]
    return int(reached.sum())


# --- tables ---


def page_text(page: str) -> str:
    """The page with tables of what is kept."""
    block = f"{random_table()}\n{studies_table()}\n{commands_text()}\n"
    page = fill(fill(page, "mazes", block), "upside", upside_table())
    return fill(page, "half-cheetah", half_cheetah_table())


def random_table() -> str:
    kept = RESULTS / "gym-maze-random.json"
    found = json.loads(kept.read_text()) if kept.exists() else {}
    rows = [
        [text, *(str(mean_estimate(values)) for values in mazes.values())]
        for text, mazes in found.items()
    ]
    return markdown_table(["uniform actions", "Bottleneck", "U-Maze"], rows)


def studies_table() -> str:
    rows = []
    for name, study in MAZE_STUDIES.items():
        for reward, found in load(name)["rewards"].items() if is_there(name) else ():
            values = {metric: found[metric]["values"] for metric in COLUMNS}
            shown = [str(estimate_of(study, reward, m, each)) for m, each in values.items()]
            worst = f"{min(values['coverage']):.0f}"
            rows.append(
                [study.title, reward, str(len(found["seeds"])), *shown[:1], worst, *shown[1:]]
            )
    titles = list(COLUMNS.values())
    titles.insert(1, "worst seed")
    return markdown_table(["", "reward", "seeds", *titles], rows)


def commands_text() -> str:
    rows = [
        f"- {study.title}: `{study.command}`, commit {commits(load(name))}. {study.text}"
        for name, study in MAZE_STUDIES.items()
        if is_there(name)
    ]
    return "\n".join(rows)


if __name__ == "__main__":
    main()
