"""The README's tables, from the small data in `results/`."""

import json

import numpy as np
from studies import FAST, FAST_DT, LEAK, ORACLE_RUN, PUBLISHED, RAM, RESULTS, SCENES, STUDIES, THREE
from tables import (
    SHOWN_FIRST,
    accuracies,
    accuracy,
    commits,
    load,
    noise_table,
    seeds_of,
    shown_estimate,
    table,
)

from irrl.analysis.compare import markdown_table
from irrl.analysis.stats import Estimate


def fill(text: str, name: str, block: str) -> str:
    """Put a block between two marks."""
    before, rest = text.split(f"<!-- {name} -->\n")
    after = rest.split(f"<!-- end of {name} -->\n")[1]
    return f"{before}<!-- {name} -->\n{block}<!-- end of {name} -->\n{after}"


def skills_block() -> str:
    fast = load("skills-fast")
    visits, optimistic = (
        str(Estimate(**load(name)["rewards"]["clipped-log"]["n_skills"]["mean"]))
        for name in ("skills-visits", "skills-optimistic-log")
    )
    return (
        f"{table(fast, STUDIES['skills-fast'])}\n"
        f"`{STUDIES['skills-fast'].command}`, commit {commits(fast)}\n\n"
        "Beyond the paper: `--preset visits`, a bonus for rarely visited cells in place of an "
        f"ensemble, learns **{visits}** skills. And a caveat: given initial values of its own "
        f"scale, the clipped log learns {optimistic}. [All results](docs/results.md), each with "
        "its command.\n"
    )


def digits_block() -> str:
    """How far RAM and DT-RAM come, three rewards side by side, and how noisy they are."""
    return "\n".join([best_digits(), compared_digits(), noisy_digits()])


def best_digits() -> str:
    glimpses = load("digits-dt-ram-fast")["rewards"]["clipped-linear"]["glimpses"]["mean"]
    return (
        "Hard attention on Cluttered MNIST: which digit lies among the clutter, from 18 glimpses "
        "of 4 x 4 pixels?\n\n"
        f"RAM, the `fast` preset, 100 epochs: {reached('digits-ram-fast')}. The authors' recipe is "
        f"at {RAM.curve_point('clipped-linear', 100)} by then, and at "
        f"{RAM.curve_point('clipped-linear', 1400)} after 1400. {made_by('digits-ram-fast')}"
        f"\n\nDT-RAM, 60 epochs: {reached('digits-dt-ram-fast')}, with {Estimate(**glimpses)} "
        f"glimpses on average. The authors: {PUBLISHED['dt-ram'].texts()['clipped-linear']} after "
        f"1500. {made_by('digits-dt-ram-fast')}\n\n"
        "![The same canvases, looked at by RAM and by DT-RAM](results/digits-play-fast.png)\n"
        f"`irrl play {FAST} {FAST_DT} --seed 0`: canvases drawn by chance.\n"
    )


def compared_digits() -> str:
    header = ["reward", *SHOWN_FIRST.values(), "authors' RAM, 1500", "authors' DT-RAM, 1500"]
    theirs = (PUBLISHED["ram"].texts(), PUBLISHED["dt-ram"].texts())
    rows = [
        [name, *(accuracy(study, name) for study in SHOWN_FIRST), *(t[name] for t in theirs)]
        for name in THREE.split(",")
    ]
    made_with = sorted({commit for study in SHOWN_FIRST for commit in load(study)["commits"]})
    return (
        "Which reward? Validation accuracy in percent after 4 epochs "
        f"(seeds: {seeds_of('digits-ram')}; DT-RAM, leaked: {seeds_of('digits-dt-ram-leak')}), "
        "with the paper's losses and Gaussian locator. In the "
        "authors' code log and linear rewards leak a gradient into the discriminator, which the "
        "paper's mathematics does not have: both ways here.\n\n"
        f"{markdown_table(header, rows)}\n"
        f"`{STUDIES['digits-ram'].command}`, the same with `{LEAK}`, with `--oracle {ORACLE_RUN}`, "
        f"and with `--model dt-ram`; commit {', '.join(c[:10] for c in made_with)}\n\n"
        f"{what_the_leak_does()}\n"
        "![Learning curves of three rewards: RAM and DT-RAM, detached and leaked]"
        "(results/digits-rewards.png)\n\n"
        "![RAM rewarded by its own discriminator and by an oracle](results/digits-oracle.png)\n"
    )


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
        "[Why](docs/method.md#what-the-leak-does), [all comparisons](docs/results.md).\n"
    )


def noisy_digits() -> str:
    measured = json.loads((RESULTS / "digits-noise.json").read_text())
    return (
        "How noisy is the discriminator? Its posterior of the true label less that of the oracle, "
        "16 epochs of `fast`, on the same glimpses. The paper takes this noise for symmetric about "
        f"zero; measured, it is not.\n\n{noise_table(measured)}\n"
        f"`{measured['command']}`, commit {measured['commit'][:10]}\n\n"
        "![Violins of discriminator noise](results/digits-noise.png)\n"
    )


def reached(study: str) -> str:
    found = load(study)["rewards"]["clipped-linear"]
    accuracy, test = (
        shown_estimate(found, m) for m in ("accuracy_percent", "test_accuracy_percent")
    )
    return f"**{accuracy} %** (seeds: {seeds_of(study)}; on test digits {test})"


def made_by(study: str) -> str:
    return f"`{STUDIES[study].command}`, commit {commits(load(study))}"


def counting_block() -> str:
    result, study = load("counting"), STUDIES["counting"]
    return (
        "Counting cubes some of which are hidden, walking around the table: 1,000 new scenes, and "
        f"what the authors reached in 2 million episodes.\n\n{table(result, study)}\n"
        f"`irrl {' '.join(SCENES)} --out scenes`, then `{study.command}`, commit "
        f"{commits(result)}\n\n"
        "![Learning curves of three rewards and three scripted baselines]"
        "(results/counting/comparison.png)\n\n"
        "![The same scenes, walked by agents with different rewards]"
        "(results/counting-play.png)\n"
    )
