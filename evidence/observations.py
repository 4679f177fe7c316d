"""Insufficient observations: what is kept of the sweeps in `experiments/observations/`.

    python evidence/observations.py            keep what is finished, write the documents anew
    python evidence/observations.py --list     how many runs of each sweep are finished

Runs are in `runs/observations/`, what is kept of them in `results/observations/`, in the form of
`evidence/which_reward.py`.
"""

import json
import tomllib
from collections.abc import Sequence

from studies import RESULTS, ROOT
from study import COLUMNS
from which_reward import Kept, keep_sweeps, load

from irrl.analysis.ranges import range_of
from irrl.analysis.stats import mean_estimate
from irrl.analysis.tables import markdown_table

SWEEPS = ROOT / "experiments" / "observations"
KEPT = RESULTS / "observations"
HEADS = ("digits", "digits-long", "counting", "counting-long")
REWARDS = ("clipped-linear", "clipped-log")
SMALL = ("ensemble_disagreement", "train_bonus_mean", "train_reward_mean")


def main() -> None:
    if keep_sweeps(SWEEPS, KEPT, __doc__, SMALL):
        from documents import write_documents

        write_documents()


def kept_of(name: str) -> Kept | None:
    return load(name, KEPT)


def section() -> str:
    """All tables that there are data for."""
    parts = [skills_part(), *(heads_part(name) for name in HEADS)]
    if not any(parts):
        return ""
    return (
        "\n## Insufficient observations: a bonus for disagreement\n\nThe sweeps of "
        "`experiments/observations/`: the Jensen gap of a score as a bonus, two discriminators or "
        "two heads. Predictions and what came of them in its `predictions.md`, the derivation in "
        "[method.md](method.md#other-labels-than-classes).\n" + "".join(parts)
    )


def part(title: str, text: str, kept: Sequence[Kept], table: str) -> str:
    commands = "".join(f"    {k.command}\n" for k in kept)
    commits = sorted({commit[:10] for k in kept for commit in k.commits})
    return (
        f"\n### {title}\n\n{text}\n\n{commands}\ncommit {', '.join(commits)}; data in "
        f"`results/observations/`\n\n{table}"
    )


def cells(runs: Sequence[dict], task: str) -> list[str]:
    """Of runs that differ in their seed: how many, and each metric of the task's tables."""
    found = [str(len(runs))]
    for metric in COLUMNS[task].metrics:
        estimate = mean_estimate([run[metric] for run in runs])
        found.append(str(estimate.within(*range_of(metric))))
    return found


def mean_of(runs: Sequence[dict], metric: str) -> str:
    return f"{sum(run[metric] for run in runs) / len(runs):.4f}"


# --- skills ---


def without_sweep(reward: str) -> list[str]:
    """The same of a reward of `results/skills-fast`."""
    kept = json.loads((RESULTS / "skills-fast" / "comparison.json").read_text())["rewards"][reward]
    runs = [
        {metric: kept[metric]["values"][n] for metric in COLUMNS["skills"].metrics}
        for n in range(len(kept["seeds"]))
    ]
    return cells(runs, "skills")


def skills_part() -> str:
    names = ("linear-log", "linear-quadratic", "log-quadratic", "from-zero")
    found = {n: k for n in names if (k := kept_of(f"skills-{n}")) is not None}
    if not found:
        return ""

    def row(name: str, reward: str, kind: str, weight: str, first: str) -> list[list[str]]:
        runs = found[name].where(bonus_kind=kind) if name in found else []
        return [[reward, f"{kind} gap", weight, first, *cells(runs, "skills")]] if runs else []

    rows = [
        ["clipped linear", "none", "-", "-", *without_sweep("clipped-linear")],
        *row("linear-log", "clipped linear", "log", "1", "[0, 1)"),
        *row("linear-quadratic", "clipped linear", "quadratic", "40", "[0, 1)"),
        ["clipped log", "none", "-", "-", *without_sweep("clipped-log")],
        ["clipped log", "log gap (DISDAIN)", "20", "[0, 1)", *without_sweep("disdain")],
        *row("log-quadratic", "clipped log", "quadratic", "20", "[0, 1)"),
        *row("from-zero", "clipped log", "log", "20", "0"),
        *row("from-zero", "clipped log", "quadratic", "20", "0"),
    ]
    head = ["reward", "bonus", "weight", "bonus table starts in", "seeds"]
    table = markdown_table([*head, *COLUMNS["skills"].titles], rows)
    text = (
        "The `fast` preset with the paper's initial values, an ensemble of two. The bonus has a Q "
        "table of its own, whose first values, times the weight, are a promise that no gap has "
        "made yet; in the last rows there is none. Rows without a bonus and DISDAIN are those of "
        "the first study above. Weights were chosen with seed 10."
    )
    return part("Skills", text, list(found.values()), table)


# --- digits and counting ---


def heads_part(name: str) -> str:
    kept = kept_of(name)
    if kept is None:
        return ""
    plan = tomllib.loads((SWEEPS / f"{name}.toml").read_text())
    task, settings = plan["task"], plan["settings"]
    weights = sorted({run["bonus_weight"] for run in kept.runs})
    rows = [
        [reward, f"{weight:g}", *cells(runs, task), mean_of(runs, "ensemble_disagreement")]
        for reward in REWARDS
        for weight in weights
        if (runs := kept.where(reward=reward, bonus_weight=weight))
    ]
    head = ["reward", "bonus weight", "seeds", *COLUMNS[task].titles, "gap, nats"]
    table = markdown_table(head, rows)
    unit = "epochs" if task == "digits" else "episodes"
    title = f"{task.capitalize()}: two heads, {unit}: {settings[unit]:,}"
    text = (
        "Two heads on one hidden state in all rows; rewards and the bonus, the log gap, in units "
        "of the largest reward. Weight 0 pays no bonus."
    )
    return part(title, text, [kept], table)


if __name__ == "__main__":
    main()
