"""`python -m tests.kills --random 200`: kills of runs of each task; none may make a change."""

import argparse
import tempfile
from pathlib import Path

from tests.helpers.command import irrl_command
from tests.kills.kills import kill_at_every_operation, kill_at_random
from tests.tasks.gym.small import SMALL

SCENES = ("--train", "64", "--eval", "32", "--resolution", "32", "--workers", "1")
KINDS = {  # of runs: a task, perhaps what of it, and settings
    "skills": {"iterations": 1_500, "checkpoint_every": 500},
    "digits": {"epochs": 2, "train_images": 128, "validation_images": 64, "test_images": 64},
    "counting": {},
    **{f"gym {name}": settings for name, settings in SMALL.items()},
}


def told(what, found):
    """Say what was found; returns the number of differences."""
    equal = "; ".join(found.differences) or "all equal"
    print(f"{what}: {found.kills} kills in {found.runs} runs: {equal}", flush=True)
    return len(found.differences)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", default="skills,digits,counting,gym")
    parser.add_argument("--random", type=int, default=200, metavar="N", help="kills at random")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="of the file operations")
    options, wrong = parser.parse_args(), 0
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name in [name for name in KINDS if name.split()[0] in options.tasks.split(",")]:
            task, settings = name.split()[0], dict(KINDS[name])
            if task == "counting":
                done = irrl_command("data", "scenes", *SCENES, "--out", place / "scenes")
                assert done.returncode == 0, done.stderr
                settings["scenes"] = str(place / "scenes")
            at, random = place / name / "operations", place / name / "random"
            at.mkdir(parents=True)
            random.mkdir()
            found = kill_at_every_operation(at, task, settings, options.every)
            wrong += told(f"{name}, before file operations", found)
            found = kill_at_random(random, task, settings, options.random)
            wrong += told(f"{name}, at random", found)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
