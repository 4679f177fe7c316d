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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", default="skills,digits,counting,gym")
    parser.add_argument("--random", type=int, default=200, metavar="N", help="kills at random")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="of the file operations")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name in [name for name in KINDS if name.split()[0] in options.tasks.split(",")]:
            task, settings = name.split()[0], dict(KINDS[name])
            if task == "counting":
                done = irrl_command("data", "scenes", *SCENES, "--out", place / "scenes")
                assert done.returncode == 0, done.stderr
                settings["scenes"] = str(place / "scenes")
            for kind in ("operations", "random"):
                (place / name / kind).mkdir(parents=True)
            kills, operations = kill_at_every_operation(
                place / name / "operations", task, settings, options.every
            )
            print(f"{name}: {kills} kills at {operations} file operations: all equal", flush=True)
            kills, runs = kill_at_random(place / name / "random", task, settings, options.random)
            print(f"{name}: {kills} kills at random in {runs} runs: all equal", flush=True)


if __name__ == "__main__":
    main()
