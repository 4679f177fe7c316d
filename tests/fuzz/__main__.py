"""Damage run folders for as long as one likes: `python -m tests.fuzz --minutes 30`.

Every case is told apart by how it went wrong; the first of each kind is shown. Exit code 1 if there
was any.
"""

import argparse
import json
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.fuzz.bench import attempt, cases, make_bench
from tests.fuzz.oracle import BreachError
from tests.helpers.command import REPOSITORY, irrl_command
from tests.helpers.runs import run_in
from tests.tasks.gym.small import SMALL

BATCH = 100
KINDS = {  # of runs: a task, perhaps what of it, and settings
    "skills": {},
    "digits": {},
    "counting": {},
    **{f"gym {name}": settings for name, settings in SMALL.items()},
}
SCENES = ("--train", "64", "--eval", "32", "--resolution", "32", "--workers", "1")


def benches(tasks, place):
    for name in [name for name in KINDS if name.split()[0] in tasks]:
        task, chosen = name.split()[0], dict(KINDS[name])
        if task == "counting":
            done = irrl_command("data", "scenes", *SCENES, "--out", place / "scenes")
            assert done.returncode == 0, done.stderr
            chosen = {"scenes": str(place / "scenes")}
        runs = [run_in(place / f"{name}-{n}", task, seed=n, **chosen).folder for n in (0, 1)]
        yield name, make_bench(task, *runs, place / f"bench-{name}", chosen)
    for config in sorted((REPOSITORY / "zoo").glob("*/config.json")):
        task, run = json.loads(config.read_text())["task"], config.parent
        if task in tasks:
            name = f"zoo {run.name}"
            yield name, make_bench(task, run, run, place / name, goes_on=False)


def signature(error):
    """What tells one kind of failure from another."""
    if isinstance(error, BreachError):
        return f"BreachError: {str(error)[:60]}"
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(where.filename).name}, {where.name}"


def draw(look, count, batch, end):
    """Look at so many cases, drawn anew for each batch, until it is time."""

    @seed(batch)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def some(case):
        if time.monotonic() < end:
            look(case)

    some()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0, help="of the first batch")
    parser.add_argument("--tasks", default="skills,digits,counting,gym")
    options = parser.parse_args()
    ran, codes, wrong = Counter(), Counter(), {}

    def look(task, bench, case):
        try:
            codes[case[0], attempt(bench, *case)] += 1
        except Exception as error:
            kind = f"{task}: {signature(error)}"
            if kind not in wrong:
                print(f"{kind}\n    {case}\n    {str(error)[:300]}", flush=True)
            wrong.setdefault(kind, []).append(case)
        ran[task] += 1

    with tempfile.TemporaryDirectory() as place:
        ready = dict(benches(options.tasks.split(","), Path(place)))
        end, batch = time.monotonic() + 60 * options.minutes, options.seed
        while time.monotonic() < end:
            for task, bench in ready.items():
                count = BATCH if task == "skills" else BATCH // 5
                draw(
                    lambda case, task=task, bench=bench: look(task, bench, case), count, batch, end
                )
            batch += 1
    spent = round(time.process_time() / 60, 1)
    print(f"{sum(ran.values())} cases ({dict(ran)}) in {spent} minutes of the processor")
    print(f"exit codes {dict(codes)}")
    print(f"{sum(map(len, wrong.values()))} went wrong, in {len(wrong)} ways")
    for kind, found in sorted(wrong.items(), key=lambda item: -len(item[1])):
        print(f"  {len(found):5d}  {kind}")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
