"""Damage run folders for as long as one likes: `python -m tests.fuzz --minutes 30`.

Only verbs are drawn that can be done with the run as it was; a refusal that any folder gets says
nothing of damage. Every case is told apart by how it went wrong; the first of each kind is shown.
Exit code 1 if there was any.
"""

import argparse
import json
import shlex
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from irrl.runs.files import to_json_bytes, write_atomic
from irrl.runs.provenance import provenance
from tests.fuzz.bench import cases_of, make_bench, verbs_of
from tests.fuzz.tally import Tally
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


def draw(look, verbs, count, batch, end):
    """Look at so many cases, drawn anew for each batch, until it is time."""

    @seed(batch)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases_of(verbs))
    def some(case):
        if time.monotonic() < end:
            look(case)

    some()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0, help="of the first batch")
    parser.add_argument("--tasks", default="skills,digits,counting,gym")
    parser.add_argument("--output", type=Path, help="a JSON file for the counts")
    options = parser.parse_args()
    made, tally = provenance(), Tally()  # of the code as it is now, whatever happens meanwhile
    with tempfile.TemporaryDirectory() as place:
        ready = dict(benches(options.tasks.split(","), Path(place)))
        verbs = {name: verbs_of(bench) for name, bench in ready.items()}
        end, batch = time.monotonic() + 60 * options.minutes, options.seed
        while time.monotonic() < end:
            for name, bench in ready.items():
                count = BATCH if name == "skills" else BATCH // 5
                draw(partial(tally.look, name, bench), verbs[name], count, batch, end)
            batch += 1
    spent = round(time.process_time() / 60, 1)
    print(f"{tally.text()}\n{spent} minutes of the processor")
    if options.output is not None:
        about = {
            "command": shlex.join(["python", "-m", "tests.fuzz", *sys.argv[1:]]),
            "commit": made["commit"],
            "dirty": made["dirty"],
            "minutes": options.minutes,
        }
        write_atomic(options.output, to_json_bytes({**about, **tally.to_json()}))
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
