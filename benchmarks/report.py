"""Time, size and opening time of a report of 50 runs.

    python benchmarks/report.py [DIR ...] [--runs N] [--output FILE] [--keep FILE]

The runs are copies of finished ones below the folders named, with other seeds, curves of 500 points
and a little noise on their numbers. Without folders, smoke runs of all three tasks are trained
first (which takes MNIST and a way to draw). Opening is from the navigation until the last curve is
drawn, in a headless browser that has just started; the best of three counts, as other work on the
machine can only slow it. Processor seconds are those of the page's own thread: what opening takes
where nothing else runs.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from irrl.runs.provenance import provenance
from irrl.runs.run import CHECKPOINTS, METRICS, SUMMARY, Run
from irrl.tasks import sound_runs
from tests.helpers.browser import find_browser

POINTS = 500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", nargs="*", metavar="DIR", help="finished runs to copy")
    parser.add_argument("--runs", type=int, default=50, metavar="N", help="runs in the report")
    parser.add_argument("--output", metavar="FILE", help="JSON file to write")
    parser.add_argument("--keep", metavar="FILE", help="also keep the report")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folders = options.folders or [str(smoke_runs(folder / "smoke"))]
        sources, _ = sound_runs(folders, finished=True)
        copy_runs(sources, folder / "runs", options.runs)
        report = folder / "report.html"
        begun = time.perf_counter()
        irrl("report", folder / "runs", "-o", report)
        result = {
            "runs": options.runs,
            "tasks": sorted({run.task for run in sources}),
            "seconds_to_make": round(time.perf_counter() - begun, 2),
            "megabytes": round(report.stat().st_size / 1e6, 2),
            **opening_times(report),
            "load_average": os.getloadavg()[0],  # of the machine, busy with other things or not
        }
        if options.keep:
            shutil.copy(report, options.keep)
    print(json.dumps(result, indent=1))
    if options.output:
        made = provenance()
        made["command"] = " ".join(["python", "benchmarks/report.py", *sys.argv[1:]])
        Path(options.output).write_text(json.dumps({**result, **made}, indent=1) + "\n")


def irrl(*arguments: Any) -> None:
    subprocess.run([sys.executable, "-m", "irrl", *map(str, arguments)], check=True)


def smoke_runs(folder: Path) -> Path:
    """Three rewards of each task, trained for a moment."""
    smoke = ("--preset", "smoke", "--seeds", 1, "--workers", 1)
    rewards = ("--rewards", "clipped-linear,clipped-log,accuracy")
    sizes = ("--train", 64, "--eval", 32, "--resolution", 32)
    irrl("data", "scenes", *sizes, "--out", folder.parent / "scenes")
    for task in ("skills", "digits", "counting"):
        scenes = ("--scenes", folder.parent / "scenes") if task == "counting" else ()
        irrl("compare", task, *smoke, *rewards, *scenes, "--out", folder / task)
    return folder


def copy_runs(sources: list[Run], target: Path, number: int) -> None:
    for n in range(number):
        source = sources[n % len(sources)]
        copy_run(source, target / f"run-{n}", seed=1000 + n)


def copy_run(source: Run, folder: Path, seed: int) -> None:
    """The same run under another seed; its checkpoints stay as they are."""
    rng = np.random.default_rng([seed, *source.settings["reward"].encode()])
    folder.mkdir(parents=True)
    for path in source.folder.glob("*.json"):
        shutil.copy(path, folder)
    config = {"task": source.task, **source.settings, "seed": seed}
    (folder / "config.json").write_text(json.dumps(config))
    summary = {key: jittered(value, rng) for key, value in source.summary().items()}
    (folder / SUMMARY).write_text(json.dumps(summary))
    rows = stretched(source.rows(), rng)
    (folder / METRICS).write_text("".join(json.dumps(row) + "\n" for row in rows))
    shutil.copytree(source.folder / CHECKPOINTS, folder / CHECKPOINTS)


def jittered(value: Any, rng: np.random.Generator) -> Any:
    return value * (1.0 + 0.02 * rng.standard_normal()) if isinstance(value, float) else value


def stretched(rows: list[dict[str, Any]], rng: np.random.Generator) -> list[dict[str, Any]]:
    """As many points as a long run has, between those that are there."""
    places = np.linspace(0, len(rows) - 1, POINTS)
    names = [name for name in rows[0] if name != "step"]
    columns = {
        name: np.interp(places, np.arange(len(rows)), [float(row[name]) for row in rows])
        * (1.0 + 0.02 * rng.standard_normal(POINTS))
        for name in names
    }
    return [
        {"step": n, **{name: float(column[n]) for name, column in columns.items()}}
        for n in range(POINTS)
    ]


def opening_times(report: Path, rounds: int = 3) -> dict[str, float]:
    """Best of some rounds, in seconds: text on the screen, all curves drawn, work of the page."""
    found = [open_once(report) for _ in range(rounds)]
    return {name: round(min(times[name] for times in found), 2) for name in found[0]}


def open_once(report: Path) -> dict[str, float]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser())
        page = browser.new_page()
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        begun = time.perf_counter()
        page.goto(report.as_uri())
        page.wait_for_selector("html[data-drawn=yes]", timeout=300_000)
        drawn = time.perf_counter() - begun
        metrics = {m["name"]: m["value"] for m in session.send("Performance.getMetrics")["metrics"]}
        paint = page.evaluate("performance.getEntriesByType('paint')[0].startTime")
        browser.close()
    return {
        "seconds_to_first_paint": paint / 1000.0,
        "seconds_to_open": drawn,
        "processor_seconds_to_open": metrics["TaskDuration"],
    }


if __name__ == "__main__":
    main()
