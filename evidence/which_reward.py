"""Which reward, when: what is kept of the sweeps in `experiments/which-reward/`.

    python evidence/which_reward.py            keep what is finished, write tables and figures anew
    python evidence/which_reward.py --list     how many runs of each sweep are finished

Runs are in `runs/which/`; `results/which-reward/` has a file for each sweep: its command, the
commits it was run at, and for each run its settings and its last metrics. A study may take several
sittings, on several machines: what was kept of an earlier one stays, unless the same run is here.
"""

import argparse
import json
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from studies import RESULTS, ROOT
from study import COLUMNS

from irrl.runs.config import flag_name

SWEEPS = ROOT / "experiments" / "which-reward"
KEPT = RESULTS / "which-reward"
CURVES = ("digits-paper", "digits-paper-leak", "digits-fast")
"""Sweeps whose runs are looked at on the way."""


class Kept(NamedTuple):
    """The finished runs of a sweep: settings of the grid and metrics, by name."""

    command: str
    commits: list[str]
    runs: list[dict[str, Any]]

    def where(self, **settings: Any) -> list[dict[str, Any]]:
        """Runs with these settings, by seed."""
        found = [run for run in self.runs if all(run[k] == v for k, v in settings.items())]
        return sorted(found, key=lambda run: run["seed"])

    def values(self, metric: str, **settings: Any) -> list[float]:
        return [run[metric] for run in self.where(**settings)]


def main() -> None:
    if keep_sweeps(SWEEPS, KEPT, __doc__):
        from documents import write_documents
        from which_reward_figures import write_figures

        write_figures()
        write_documents()


def keep_sweeps(sweeps: Path, kept_in: Path, text: str, small: tuple[str, ...] = ()) -> bool:
    """Keep what is finished, or only say what is: whether something may have been kept."""
    parser = argparse.ArgumentParser(description=text.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="say what is finished")
    options = parser.parse_args()
    for path in sorted(sweeps.glob("*.toml")):
        runs = finished(path)
        if options.list:
            print(f"{path.stem}: {len(runs)} finished")
        elif runs:
            keep(path, runs, kept_in, small)
    return not options.list


def finished(path: Path) -> list[Path]:
    """Folders of the runs of a sweep that have ended."""
    out = ROOT / tomllib.loads(path.read_text())["out"]
    return sorted(summary.parent for summary in out.glob("**/seed-*/summary.json"))


def keep(path: Path, folders: list[Path], kept_in: Path, small: tuple[str, ...]) -> None:
    """Write what is to be kept of finished runs; ``small`` are metrics that need more digits."""
    plan = tomllib.loads(path.read_text())
    varied = sorted({name.replace("-", "_") for name in plan["grid"]} | {"reward", "seed"})
    metrics = COLUMNS[plan["task"]].metrics
    before = load(path.stem, kept_in)
    runs = {} if before is None else {_identity(run, varied): run for run in before.runs}
    commits = set() if before is None else set(before.commits)
    for folder in folders:
        config, summary, provenance = (
            json.loads((folder / f"{name}.json").read_text())
            for name in ("config", "summary", "provenance")
        )
        if provenance["dirty"]:
            raise SystemExit(f"{folder} was run with changes that are not committed")
        commits.add(provenance["commit"])
        run = {name: config[name] for name in varied}
        run |= {name: round(summary[name], 3) for name in metrics}
        run |= {name: round(summary[name], 6) for name in small if name in summary}
        if path.stem in CURVES:
            rows = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
            run["curve"] = [[row["step"], round(row[metrics[0]], 2)] for row in rows]
        runs[_identity(run, varied)] = run
    command = f"irrl sweep {path.relative_to(ROOT)}"
    kept = {"command": command, "commits": sorted(commits)}
    kept_in.mkdir(parents=True, exist_ok=True)
    lines = ",\n  ".join(json.dumps(runs[identity]) for identity in sorted(runs))
    head = json.dumps(kept)[:-1]
    (kept_in / f"{path.stem}.json").write_text(f'{head}, "runs": [\n  {lines}\n]}}\n')


def _identity(run: dict[str, Any], varied: list[str]) -> tuple[Any, ...]:
    return tuple(run[name] for name in varied)


def load(name: str, kept_in: Path = KEPT) -> Kept | None:
    """What is kept of a sweep; None if nothing is."""
    path = kept_in / f"{name}.json"
    return Kept(**json.loads(path.read_text())) if path.exists() else None


def varied_settings(name: str) -> list[str]:
    """Settings that differ between runs of a sweep, as flags; reward and seed aside."""
    grid = tomllib.loads((SWEEPS / f"{name}.toml").read_text())["grid"]
    return [flag_name(setting) for setting in grid if setting not in ("reward", "seed")]


if __name__ == "__main__":
    main()
