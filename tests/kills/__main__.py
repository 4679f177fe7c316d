"""`python -m tests.kills --random 200`: kills of runs of each task; none may make a change."""

import argparse
import tempfile
from pathlib import Path

from tests.helpers.command import irrl_command
from tests.kills.kills import kill_at_every_operation, kill_at_random

SCENES = ("--train", "64", "--eval", "32", "--resolution", "32", "--workers", "1")
SMALL = {
    "skills": {"iterations": 1_500, "checkpoint_every": 500},
    "digits": {"epochs": 2, "train_images": 128, "validation_images": 64, "test_images": 64},
    "counting": {},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", default="skills,digits,counting")
    parser.add_argument("--random", type=int, default=200, metavar="N", help="kills at random")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="of the file operations")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        for task in options.tasks.split(","):
            settings = dict(SMALL[task])
            if task == "counting":
                done = irrl_command("data", "scenes", *SCENES, "--out", place / "scenes")
                assert done.returncode == 0, done.stderr
                settings["scenes"] = str(place / "scenes")
            for kind in ("operations", "random"):
                (place / task / kind).mkdir(parents=True)
            kills, operations = kill_at_every_operation(
                place / task / "operations", task, settings, options.every
            )
            print(f"{task}: {kills} kills at {operations} file operations: all equal", flush=True)
            kills, runs = kill_at_random(place / task / "random", task, settings, options.random)
            print(f"{task}: {kills} kills at random in {runs} runs: all equal", flush=True)


if __name__ == "__main__":
    main()
