"""The language model that learns to be friendly: what is kept of its study, table and figure.

    python evidence/language.py RUNS     keep the finished runs of `experiments/language`

`results/language/` has a file for each run; `docs/results.md` takes table and figure from there.
"""

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from studies import RESULTS

from irrl.analysis.tables import markdown_table

KEPT = RESULTS / "language"
REWARDS, KINDS = ("score", "linear", "log"), ("frozen", "co-trained")
LOOKS = {"score": "tab:gray", "linear": "tab:blue", "log": "tab:orange"}


class Run(NamedTuple):
    """One run: at each look the step, the judge's gold, nats from the first policy, the score."""

    reward: str
    kind: str
    seed: int
    steps: np.ndarray
    gold: np.ndarray
    kl: np.ndarray
    score: np.ndarray
    settings: dict[str, Any]
    commit: str

    def gold_at(self, nats: float) -> float:
        """Gold where the KL first gets to so many nats, on a line between looks."""
        farthest = np.maximum.accumulate(self.kl)
        return float(np.interp(nats, farthest, self.gold))

    @property
    def fall(self) -> float:
        """From the best look to the last."""
        return float(self.gold.max() - self.gold[-1])


def load_runs() -> list[Run]:
    return [_run(json.loads(path.read_text())) for path in sorted(KEPT.glob("*.json"))]


def _run(found: dict[str, Any]) -> Run:
    def column(name: str) -> np.ndarray:
        return np.array([look[name] for look in found["curve"]])

    return Run(
        reward=found["reward"], kind=found["kind"], seed=found["seed"],
        steps=column("step"), gold=column("gold"), kl=column("kl"), score=column("score"),
        settings=found["settings"], commit=found["commit"],
    )  # fmt: skip


def where(runs: list[Run], reward: str, kind: str) -> list[Run]:
    return sorted((r for r in runs if (r.reward, r.kind) == (reward, kind)), key=lambda r: r.seed)


def section() -> str:
    """For `docs/results.md`; nothing where no run is kept."""
    runs = load_runs()
    if not runs:
        return ""
    equal = min(10.0, *(float(run.kl.max()) for run in runs))
    rows = []
    for reward in REWARDS:
        for kind in KINDS:
            if found := where(runs, reward, kind):
                rows.append(_row(found, equal))
    header = [
        "reward", "preference model", "gold at half", "gold at the end", "fall from its best",
        f"gold at {equal:.1f} nats", "KL at the end", "score at the end",
    ]  # fmt: skip
    given = runs[0].settings
    command = (
        f"python experiments/language/sentiment.py OUT --steps {given['steps']} "
        f"--every {given['every']} --before {given['before']} "
        f"--learning-rate {given['learning_rate']:g}"
    )
    commits = ", ".join(sorted({run.commit[:10] for run in runs}))
    return (
        "\n## A language model that learns to be friendly\n\nSmolLM2-135M, its last four layers "
        "trained by TRL's GRPO; the preference model is frozen after 256 comparisons, or learns "
        "on from what the policy writes. The gold is the judge's own mean sentiment (-1 to 1) of "
        "64 completions, with a standard error of at most 0.1 where it is 0.6; seeds one by one. "
        "The scores of co-trained models are on a scale that moves.\n\n"
        f"    {command}\n\ncommit {commits}; data in `results/language/`; predictions in "
        f"`experiments/language/predictions.md`\n\n{markdown_table(header, rows)}\n"
        "![Gold against KL](../results/language/gold.png)\n"
    )


def _row(found: list[Run], equal: float) -> list[str]:
    def seeds(values: list[float], digits: int = 2) -> str:
        return ", ".join(f"{value:.{digits}f}" for value in values)

    half = [float(np.interp(run.steps[-1] / 2, run.steps, run.gold)) for run in found]
    return [
        found[0].reward, found[0].kind, seeds(half), seeds([float(r.gold[-1]) for r in found]),
        seeds([run.fall for run in found]), seeds([run.gold_at(equal) for run in found]),
        seeds([float(r.kl[-1]) for r in found], 1), seeds([float(r.score[-1]) for r in found], 1),
    ]  # fmt: skip


def plot(runs: list[Run]) -> Figure:
    """Gold against the distance from the first policy, a line for each seed."""
    figure = Figure(figsize=(9.5, 3.8), layout="constrained")
    axes = figure.subplots(1, 2, sharex=True, sharey=True)
    for ax, kind in zip(axes, KINDS, strict=True):
        for reward, marker in zip(REWARDS, "sox", strict=True):
            for n, run in enumerate(where(runs, reward, kind)):
                label = {"label": reward} if n == 0 else {}
                ax.plot(run.kl, run.gold, marker=marker, color=LOOKS[reward], lw=1.2, **label)
        ax.set(title=f"preference model {kind}", xlabel="KL from the first policy, nats")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("gold: the judge's sentiment")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("runs", type=Path, help="the OUT of the study")
    KEPT.mkdir(parents=True, exist_ok=True)
    for path in sorted(parser.parse_args().runs.glob("*.json")):
        (KEPT / path.name).write_text(path.read_text())
    plot(load_runs()).savefig(KEPT / "gold.png", dpi=130, metadata={"Software": None})
    from documents import write_documents

    write_documents()


if __name__ == "__main__":
    main()
