"""What matters most, in words and a few tables: `docs/results.md` begins with it."""

import json

import numpy as np
from gym_tables import skills_table
from studies import FAST, FAST_DT, LEAK, ORACLE_RUN, PUBLISHED, RAM, RESULTS, STUDIES, THREE
from tables import (
    SHOWN_FIRST,
    accuracies,
    accuracy,
    commits,
    is_there,
    load,
    seeds_of,
    shown_estimate,
)

from irrl.analysis.tables import markdown_table


def highlights() -> str:
    """The section. What is shown again further down stands there."""
    parts = [skills_highlights()]
    if all(map(is_there, SHOWN_FIRST)):
        parts += [best_digits(), compared_digits()]
    if is_there("gym-point-mass"):
        parts.append(
            "Skills in a plane and in four rooms, with networks in place of tables:\n\n"
            f"{skills_table()}\n"
            "![Where 32 skills of a point mass go, coloured by code](../results/gym-skills.png)\n"
        )
    return "\n## In short\n\n" + "\n".join(parts)


def skills_highlights() -> str:
    visits, optimistic = (
        shown_estimate(name, "clipped-log", "n_skills")
        for name in ("skills-visits", "skills-optimistic-log")
    )
    return (
        "Skills in four rooms: the step size of `fast` is 25 times the authors'; what counts is "
        "step size times iterations, so ours are read where they have had as much as theirs. "
        "Beyond the paper: `--preset visits` learns "
        f"**{visits}** skills (seeds: {seeds_of('skills-visits')}) with a bonus for rarely visited "
        "cells in place of an ensemble, one over the root of the visits, which is a baseline of "
        "DISDAIN's authors. And a caveat: given initial values of its own scale, the clipped log "
        f"learns {optimistic} (seeds: {seeds_of('skills-optimistic-log')}).\n"
    )


def best_digits() -> str:
    glimpses = shown_estimate("digits-dt-ram-fast", "clipped-linear", "glimpses")
    return (
        "Hard attention on Cluttered MNIST: which digit lies among the clutter, from 18 glimpses "
        "of 4 x 4 pixels?\n\n"
        f"RAM, the `fast` preset, 100 epochs: {reached('digits-ram-fast')}. That is another model "
        "than the paper's, and it trains on fresh canvases in each epoch, theirs on the same "
        f"54,000.{on_fixed_canvases()} The authors' recipe: "
        f"{RAM.curve_point('clipped-linear', 100)} at 100 epochs, "
        f"{PUBLISHED['ram'].texts()['clipped-linear']}. {made_by('digits-ram-fast')}"
        f"\n\nDT-RAM, 60 epochs: {reached('digits-dt-ram-fast')}, with {glimpses} glimpses on "
        f"average. The authors: {PUBLISHED['dt-ram'].texts()['clipped-linear']}. "
        f"{made_by('digits-dt-ram-fast')}\n\n"
        "![The same canvases, looked at by RAM and by DT-RAM](../results/digits-play-fast.png)\n"
        f"`irrl play {FAST} {FAST_DT} --seed 0`: canvases drawn by chance.\n"
    )


def on_fixed_canvases() -> str:
    """`fast` on the authors' kind of data beside the same on its own."""
    fresh, fixed = "digits-ram-fast-30", "digits-ram-fast-fixed"
    if not (is_there(fresh) and is_there(fixed)):
        return ""
    return (
        f" After 30 epochs it is at {reached(fixed)} on such fixed canvases, and at "
        f"{reached(fresh)} on fresh ones."
    )


def compared_digits() -> str:
    rows = [[name, *(accuracy(study, name) for study in SHOWN_FIRST)] for name in THREE.split(",")]
    made_with = sorted({commit for study in SHOWN_FIRST for commit in load(study)["commits"]})
    return (
        "Which reward? Validation accuracy in percent after 4 epochs "
        f"(seeds: {seeds_of('digits-ram')}; DT-RAM, leaked: {seeds_of('digits-dt-ram-leak')}; on "
        f"test digits means within {largest_gap_to_test():.1f} points of these), "
        "with the paper's losses and Gaussian locator. The authors' curves begin at 100 epochs. In "
        "their code log and linear rewards leak a gradient into the discriminator, which the "
        "paper's mathematics does not have: both ways here.\n\n"
        f"{markdown_table(['reward', *SHOWN_FIRST.values()], rows)}\n"
        f"`{STUDIES['digits-ram'].command}`, the same with `{LEAK}`, with `--oracle {ORACLE_RUN}`, "
        f"and with `--model dt-ram`; commit {', '.join(c[:10] for c in made_with)}\n\n"
        f"{what_the_leak_does()}\n"
        "![Learning curves of three rewards: RAM and DT-RAM, detached and leaked]"
        "(../results/digits-rewards.png)\n\n"
        "![RAM rewarded by its own discriminator and by an oracle](../results/digits-oracle.png)\n"
    )


def largest_gap_to_test() -> float:
    """Of all means in the comparison: validation beside test."""
    validation, test = (
        np.array(
            [np.mean(f[m]["values"]) for s in SHOWN_FIRST for f in load(s)["rewards"].values()]
        )
        for m in ("accuracy_percent", "test_accuracy_percent")
    )
    return float(np.abs(validation - test).max())


def what_the_leak_does() -> str:
    """The finding, in words whose numbers come from the runs."""
    gap = {
        study: np.mean(accuracies(study, "clipped-linear"))
        - np.mean(accuracies(study, "clipped-log"))
        for study in SHOWN_FIRST
    }
    return (
        "Linear less log, in points: "
        f"{gap['digits-ram-leak']:+.1f} (RAM) and {gap['digits-dt-ram-leak']:+.1f} (DT-RAM) with "
        f"the leak, {gap['digits-ram']:+.1f} and {gap['digits-dt-ram']:+.1f} without. So the "
        "paper's order of the two, and its smallest gap to the oracle for linear, come with the "
        "leak; for DT-RAM the leak takes away the log's lead, no more. Accuracy is last either "
        "way. "
        "[Why](method.md#what-the-leak-does).\n"
    )


def reached(study: str) -> str:
    validation, test = (
        shown_estimate(study, "clipped-linear", m)
        for m in ("accuracy_percent", "test_accuracy_percent")
    )
    return f"**{validation} %** of validation, {test} % of test digits (seeds: {seeds_of(study)})"


def made_by(study: str) -> str:
    return f"`{STUDIES[study].command}`, commit {commits(load(study))}"


# --- speed ---


def sweep_speed() -> str:
    sweep = json.loads((RESULTS / "throughput-sweep.json").read_text())["sweep"]
    return (
        f"{sweep['runs']} short runs as one sweep on {sweep['workers']} cores take "
        f"{sweep['local_ratio_to_training']:.2f} times half the time they train one by one, on a "
        f"local Ray {sweep['ray_ratio_to_training']:.2f} (`results/throughput-sweep.json`).\n"
    )


def speed_table() -> str:
    """Everything that was measured, not the best of it."""
    rows = []
    for task, (share, of) in {
        "skills": ("times_the_twin", "times the slow twin of the tests"),
        "digits": ("share_of_limit", "of what dense products of its size allow"),
        "counting": ("share_of_bare", "of bare MuJoCo"),
        "gym": ("share_of_stock", "of stock PPO without a reward model"),
    }.items():
        kept = json.loads((RESULTS / f"throughput-{task}.json").read_text())
        for what, found in kept["throughput"].items():
            rate, number = next((k, v) for k, v in found.items() if "per_" in k)
            beside = "-"
            if share in found:
                shown = f"{found[share]:g}" if "times" in share else f"{100 * found[share]:.0f} %"
                beside = f"{shown} {of}"
            cores = str(found.get("threads", 1))
            rows.append(
                [
                    task,
                    what,
                    cores,
                    f"{number:,} {rate.replace('_', ' ').replace('cpu', 'CPU')}",
                    beside,
                ]
            )
    return markdown_table(["task", "what", "cores", "speed", "beside"], rows)
