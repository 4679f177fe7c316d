"""What a sweep costs beside its runs: many short skill runs, alone and together.

    python benchmarks/sweep.py [--runs 24] [--iterations 200000] [--workers N] [--output FILE]

Three times the same runs: one `irrl train` after another; `irrl sweep` on local processes; and
`irrl sweep` on a local Ray that is up already. A ratio is the wall time of the whole command over
the sum of the single runs divided by the number of workers: 1 if sharing the work cost nothing.
Beside it stands the ratio to the time in which the single runs trained, without the start of
Python and the writing of the first files, which a sweep does not spend on every run.
Nothing else should run on the machine meanwhile.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from irrl.runs.provenance import provenance
from irrl.sweeps.engine_ray import connect, import_ray
from irrl.tasks import open_run, open_runs

REWARDS = ("clipped-linear", "clipped-log")


def wall_seconds(*arguments: object) -> float:
    """Time of an `irrl` command from start to end."""
    begun = time.perf_counter()
    command = [sys.executable, "-m", "irrl", *map(str, arguments)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - begun


def single_runs(folder: Path, seeds: int, settings: list[str]) -> tuple[float, float]:
    """Sum of the wall times of one run after another, and of the time they say they trained."""
    walls = [
        wall_seconds("train", "skills", *settings, "--reward", reward, "--seed", seed,
                     "--out", folder / reward / f"seed-{seed}")
        for reward in REWARDS
        for seed in range(seeds)
    ]  # fmt: skip
    return sum(walls), sum(run.summary()["seconds"] for run in open_runs([str(folder)]))


def sweep(folder: Path, seeds: int, settings: list[str], *engine: object) -> float:
    grid = ["--reward", ",".join(REWARDS), "--seed", f"0..{seeds - 1}"]
    return wall_seconds("sweep", "skills", *settings, *grid, "--out", folder, *engine)


def ray_sweep(folder: Path, seeds: int, settings: list[str], workers: int) -> tuple[float, float]:
    """The time of a sweep on a Ray that is up, and how long that took to come up."""
    begun = time.perf_counter()
    ray = import_ray(None)
    connect(ray, None, workers)
    started = time.perf_counter() - begun
    try:
        address = ray.get_runtime_context().gcs_address
        return sweep(folder, seeds, settings, "--engine", "ray", "--address", address), started
    finally:
        ray.shutdown()


def check_alike(folders: list[Path]) -> None:
    """Raise unless all engines made the same numbers."""
    for run in open_runs([str(folders[0])]):
        for folder in folders[1:]:
            other = open_run(folder / run.folder.relative_to(folders[0]))
            if other.rows() != run.rows():
                raise SystemExit(f"{run.folder} and {other.folder} differ")


def measure(runs: int, iterations: int, workers: int) -> dict[str, Any]:
    seeds = runs // len(REWARDS)
    settings = ["--iterations", str(iterations)]
    with tempfile.TemporaryDirectory() as name:
        alone, local, ray = (Path(name) / part for part in ("alone", "local", "ray"))
        wall_seconds("train", "skills", "--preset", "smoke", "--out", Path(name) / "warm-up")
        single, trained = single_runs(alone, seeds, settings)
        local_wall = sweep(local, seeds, settings, "--workers", workers)
        ray_wall, ray_start = ray_sweep(ray, seeds, settings, workers)
        check_alike([alone, local, ray])
    return {
        "runs": seeds * len(REWARDS),
        "iterations": iterations,
        "workers": workers,
        "single_runs_seconds": round(single, 2),
        "single_runs_training_seconds": round(trained, 2),
        **ratios("local", local_wall, single, trained, workers),
        **ratios("ray", ray_wall, single, trained, workers),
        "ray_start_seconds": round(ray_start, 2),
    }


def ratios(
    engine: str, wall: float, single: float, trained: float, workers: int
) -> dict[str, float]:
    return {
        f"{engine}_seconds": round(wall, 2),
        f"{engine}_ratio": round(wall / (single / workers), 3),
        f"{engine}_ratio_to_training": round(wall / (trained / workers), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=24, help="an even number")
    parser.add_argument("--iterations", type=int, default=200_000, help="of each run")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--output", metavar="FILE", help="write JSON here, too")
    options = parser.parse_args()
    result = measure(options.runs, options.iterations, options.workers)
    print(*(f"{key} {value:,}" for key, value in result.items()), sep="\n")
    if options.output:
        made = provenance()
        made["command"] = "python benchmarks/sweep.py " + " ".join(sys.argv[1:])
        content = {"task": "skills", "sweep": result, **made}
        Path(options.output).write_text(json.dumps(content, indent=1) + "\n")
        print(f"written to {options.output}")


if __name__ == "__main__":
    main()
