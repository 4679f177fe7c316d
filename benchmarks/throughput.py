"""Throughput of training, against the limit of the machine in the same run.

    python benchmarks/throughput.py skills|digits|counting|gym|maze [--output FILE]

For skills: iterations and environment steps per second on one core, the ratio to the slow twin
of the tests, and the share of the limit. The limit is what the machine would reach if an iteration
cost nothing but one softmax over the codes for each cell in which its trajectories end, which the
reward cannot do without.

For digits: episodes per second of the paper's RAM and of the `fast` preset, at batch 256 on all
cores, and the share of the limit. The limit is what the machine would reach if an episode cost
nothing but the arithmetic of its matrix products, forward and backward, at the speed of one dense
product of 2304 x 256 by 256 x 256. Both are measured in turns, warm and for about as long, and the
best round of each counts: other work on the machine can only slow them.
By convention an episode costs six operations for each weight and glimpse (25 million for the
paper's RAM); not all of them are needed, such as gradients of the input: 23 million are.

For counting: pictures per second rendered on one core at 256 x 256, and the share of what a bare
MuJoCo loop (update, render, read) of the same scene reaches, in turns, the best round of each; and
views per second trained with the `fast` and `paper` presets on scenes made for this, with the share
of time that rendering one picture of each view once, rolling out and learning take.

For gym: environment steps in a second of CPU time of Stable-Baselines3's PPO with a reward model,
and the share of what the same agent reaches without one, in the same environments and with the same
observations; in turns, on one core, the best round of each.

For maze: environment steps in a second of CPU time of many mazes at once, alone and with skills'
codes, and the share of the limit: what a copy by NumPy of the arrays that a step reads and writes
would reach.
"""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from counting_rates import counting
from digits_rates import digits
from gym_rates import gym
from maze_rates import maze
from skills_rates import skills

from irrl.runs.provenance import provenance


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("task", choices=["skills", "digits", "counting", "gym", "maze"])
    parser.add_argument("--output", metavar="FILE", help="write JSON here, too")
    options = parser.parse_args()
    measure = {
        "skills": skills, "digits": digits, "counting": counting, "gym": gym, "maze": maze,
    }  # fmt: skip
    measured = measure[options.task]()
    result = {"task": options.task, "throughput": measured}
    if options.output:
        made = provenance()
        made["command"] = "python benchmarks/throughput.py " + " ".join(sys.argv[1:])
        Path(options.output).write_text(json.dumps({**result, **made}, indent=1) + "\n")
        print(f"written to {options.output}")


if __name__ == "__main__":
    main()
