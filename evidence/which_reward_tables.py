"""Tables of `experiments/which-reward/`: a number stands beside those of the same length."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from studies import RAM
from tables import load as load_study
from which_reward import Kept, load

from irrl.analysis.ranges import range_of
from irrl.analysis.stats import mean_estimate
from irrl.analysis.tables import markdown_table

OPTIMISM = (0.0, 0.2, 0.5, 1.0, 2.0, 4.0)
SKILLS = ("clipped-log", "clipped-root-2", "clipped-linear", "linear", "accuracy")
CEILING = 97.6
THREE = ("clipped-linear", "clipped-log", "accuracy")


def cell(values: Sequence[float], metric: str) -> str:
    """Mean and interval of seeds, or the seeds where they are few."""
    if not values:
        return "-"
    return str(mean_estimate(values).within(*range_of(metric)))


def skills_cell(values: Sequence[float]) -> str:
    """Skills of 128 codes on the large map, of which there are no more than the ceiling."""
    return str(mean_estimate(values).within(0.0, CEILING)) if values else "-"


def section() -> str:
    """All tables that there are data for."""
    parts = [
        skills_part("skills", 128), skills_part("skills", 24), rates_part(), short_digits_part(),
        fast_digits_part(), paper_part(), counting_part(), clipping_part(), recipe_part(),
    ]  # fmt: skip
    found = [part for part in parts if part]
    if not found:
        return ""
    return (
        "\n## Which reward, when\n\nThe sweeps of `experiments/which-reward/`, predictions in its "
        "`predictions.md`, advice in [which-reward.md](which-reward.md).\n" + "".join(found)
    )


def part(title: str, text: str, kept: Sequence[Kept | None], table: str, figure: str = "") -> str:
    there = [k for k in kept if k is not None]
    commands = "".join(f"    {k.command}\n" for k in there)
    commits = sorted({commit[:10] for k in there for commit in k.commits})
    picture = f"\n![{title}](../results/which-reward/{figure}.png)\n" if figure else ""
    return f"\n### {title}\n\n{text}\n\n{commands}\ncommit {', '.join(commits)}\n\n{table}{picture}"


def skills_part(name: str, codes: int) -> str:
    kept = load(name)
    if kept is None:
        return ""
    rows = [
        [r, *(str(mean_estimate(values).within(0.0, codes)) if values else "-" for values in found)]
        for r in SKILLS
        if (found := [kept.values("n_skills", reward=r, codes=codes, optimism=o) for o in OPTIMISM])
    ]
    table = markdown_table(["reward", *(f"rho {o:g}" for o in OPTIMISM)], rows)
    text = (
        "n skills; rho is the upper end of the initial Q values over the largest reward. The "
        f"paper's initial values are rho {1 / (1 - 1 / codes):.2f} for linear and "
        f"{1 / np.log(codes):.2f} for log."
    )
    return part(f"Skills, {codes} codes: shape and optimism", text, [kept], table, "skills")


def rates_part() -> str:
    kept, middle = load("skills-rates"), load("skills")
    if kept is None or middle is None:
        return ""
    rows = []
    for codes, reward, optimism in product((128, 24), SKILLS, (0.2, 1.0, 4.0)):
        same = {"reward": reward, "codes": codes, "optimism": optimism}
        slow, fast = (
            kept.values("n_skills", discriminator_learning_rate=rate, **same)
            for rate in (0.05, 0.15)
        )
        if slow or fast:
            found = (slow, middle.values("n_skills", **same), fast)
            shown = [cell(values, "n_skills") for values in found]
            rows.append([f"{codes} codes, {reward}, rho {optimism:g}", *shown])
    table = markdown_table(["", "0.5", "0.8", "1.5"], rows)
    text = "n skills by the discriminator's step size, in that of the policy."
    return part("Skills: the discriminator's step size", text, [kept], table)


def short_digits_part() -> str:
    names = ("digits-ram", "digits-ram-leak", "digits-ram-oracle",
             "digits-dt-ram", "digits-dt-ram-leak", "digits-dt-ram-oracle")  # fmt: skip
    sweeps = {name: load(name) for name in names}
    if not any(sweeps.values()):
        return ""
    rows = []
    for name, kept in sweeps.items():
        for how in ("none", "scale") if "dt-ram" not in name else ("scale",):
            if kept is None:
                continue
            chosen = {} if "dt-ram" in name else {"normalise_advantage": how}
            cells = [
                cell(kept.values("accuracy_percent", reward=r, **chosen), "accuracy_percent")
                for r in THREE
            ]
            if any(c != "-" for c in cells):
                model = "DT-RAM" if "dt-ram" in name else "RAM"
                judge = {"leak": "own, leaked", "oracle": "oracle"}.get(name.split("-")[-1], "own")
                rows.append([model, judge, "yes" if how == "scale" else "no", *cells])
    header = ["model", "judge", "normalised advantages", *THREE]
    text = (
        "Validation accuracy in per cent after four epochs of the paper's losses: models that are "
        "still poor."
    )
    return part("Digits, four epochs", text, list(sweeps.values()), markdown_table(header, rows))


def fast_digits_part() -> str:
    kept = load("digits-fast")
    if kept is None:
        return ""
    rows = [
        ["RAM" if model == "ram" else "DT-RAM", reward,
         *(cell(kept.values(m, model=model, reward=reward), m)
           for m in ("accuracy_percent", "test_accuracy_percent", "glimpses"))]
        for model in ("ram", "dt-ram") for reward in THREE if kept.where(model=model, reward=reward)
    ]  # fmt: skip
    table = markdown_table(["model", "reward", "validation %", "test %", "glimpses"], rows)
    return part("Digits at 30 epochs", "`fast`: models that are good.", [kept], table)


def paper_part() -> str:
    leaked, detached = load("digits-paper-leak"), load("digits-paper")
    if leaked is None and detached is None:
        return ""
    epochs = (100, 200, 400, 600)
    rows = []
    for how, kept in (("leaked", leaked), ("detached", detached)):
        for reward in THREE:
            for run in kept.where(reward=reward) if kept else []:
                curve = dict(run["curve"])
                cells = [f"{curve[e]:.1f}" if e in curve else "-" for e in epochs]
                rows.append([f"{reward}, {how}, seed {run['seed']}", *cells])
    rows += [
        [f"{reward}, authors", *(str(RAM.curve_point(reward, e)) for e in epochs)]
        for reward in THREE
    ]
    table = markdown_table(["validation %", *(f"epoch {e}" for e in epochs)], rows)
    text = "The `paper` preset, 600 of its 1500 epochs."
    return part("The authors' recipe", text, [leaked, detached], table, "paper")


def counting_part() -> str:
    kept = load("counting")
    if kept is None:
        return ""
    rows = [
        [reward, f"{discount:g}",
         *(cell(kept.values(m, reward=reward, final_discount=discount), m)
           for m in ("accuracy_percent", "well_founded_percent", "moves"))]
        for reward in THREE for discount in (0.9, 0.95, 0.97)
        if kept.where(reward=reward, final_discount=discount)
    ]  # fmt: skip
    header = ["reward", "final discount", "right %", "right and well-founded %", "moves"]
    text = "The final discount decides how far the agent walks: compare at equal moves."
    table = markdown_table(header, rows)
    return part("Counting at equal moves", text, [kept], table, "counting")


def clipping_part() -> str:
    """The paper's Appendix C: what clipping adds, seed by seed."""
    rows, used = clipping_of_skills()
    places: tuple[Any, ...] = (
        ("RAM", "digits-ram", "digits-clipping",
         {"normalise_advantage": "scale"}, {"model": "ram"}),
        ("DT-RAM", "digits-dt-ram", "digits-clipping", {}, {"model": "dt-ram"}),
        ("counting", "counting", "counting-clipping", {"final_discount": 0.9}, {}),
    )  # fmt: skip
    metric = "accuracy_percent"
    for title, with_name, without_name, with_, without in places:
        clipped, plain = load(with_name), load(without_name)
        if clipped is None or plain is None:
            continue
        used += [clipped, plain]
        for reward in ("linear", "log"):
            a = clipped.values(metric, reward=f"clipped-{reward}", **with_)
            b = plain.values(metric, reward=reward, **without)
            rows += clipping_rows(title, reward, metric, a, b)
    if not rows:
        return ""
    header = ["task", "reward", "clipped", "not clipped", "difference", "seeds"]
    return part("Clipping", "What it adds, the same seeds.", used, markdown_table(header, rows))


def clipping_of_skills() -> tuple[list[list[str]], list[Kept]]:
    """With the authors' first values: all but the unclipped log are in `results/skills-fast`."""
    kept = load("skills-clipping")
    if kept is None:
        return [], []
    fast = load_study("skills-fast")["rewards"]
    known = {name: found["n_skills"]["values"] for name, found in fast.items()}
    known["log"] = kept.values("n_skills", reward="log")
    rows = [
        row
        for name in ("linear", "log")
        for row in clipping_rows("skills", name, "n_skills", known[f"clipped-{name}"], known[name])
    ]
    return rows, [kept]


def clipping_rows(
    task: str, reward: str, metric: str, clipped: Sequence[float], plain: Sequence[float]
) -> list[list[str]]:
    """A row where both have been run; the difference is of the seeds that both have."""
    n = min(len(clipped), len(plain))
    if not n:
        return []
    gain = mean_estimate(np.subtract(clipped[:n], plain[:n]))
    return [[task, reward, cell(clipped, metric), cell(plain, metric), str(gain), str(n)]]


def recipe_part() -> str:
    kept = load("skills-recipe")
    if kept is None:
        return ""
    weights = sorted({run["bonus_weight"] for run in kept.runs})
    rows = [
        [r, *(skills_cell(kept.values("n_skills", reward=r, bonus_weight=w)) for w in weights)]
        for r in SKILLS
        if kept.where(reward=r)
    ]
    text = (
        "First values of the largest reward, a visits bonus in its unit, no random actions: n "
        f"skills of at most {CEILING}. The default weight is 20."
    )
    table = markdown_table(["reward", *(f"bonus weight {w:g}" for w in weights)], rows)
    return part("One scale-free recipe for skills", text, [kept], table)
