"""`docs/results.md` and the README's tables, from the small data in `results/`."""

import json
from typing import Any

import numpy as np
from studies import (
    COLUMNS,
    FAST,
    FAST_DT,
    LEAK,
    ORACLE_RUN,
    RESULTS,
    ROOT,
    SCENES,
    STUDIES,
    THREE,
    Study,
)

from irrl.analysis.compare import (
    THRESHOLD,
    YARDSTICK,
    markdown_table,
    standings,
    steps_to_threshold,
)
from irrl.analysis.plots import ORACLE
from irrl.analysis.stats import Estimate, Reached, mean_estimate
from irrl.authors import curve_point, curve_up_to, texts


def write_documents() -> None:
    parts = [
        "# Results\n\nWritten by `evidence/results.py` from the run folders; do not edit by "
        "hand. Means over seeds with a 95 % t interval; steps to a threshold are the median with "
        "its interval, and how many seeds get there; P is how often a seed of one reward is above "
        "one of the other, p that of a one-sided permutation test. `n skills` is Eq. 9 under the "
        "policy that was trained, exact, not sampled; `greedy` leaves out its random actions. "
        "Accuracy of digits is that of episodes without chance: on validation canvases at the end "
        "of a run, on canvases with test digits beside it. Counting is measured on scenes that "
        "were not trained on, with the likeliest action each time.\n"
    ]
    for name, study in STUDIES.items():
        if is_there(name):
            result = load(name)
            changed = ", with changes" if result["dirty"] else ""
            parts.append(
                f"\n## {study.title}\n\n{study.text}\n\n    {study.command}\n\n"
                f"commit {commits(result)}{changed}; data in `results/{name}/`\n\n"
                f"{table(result, study, beside=beside(name, study))}\n"
                f"![{study.title}](../results/{name}/comparison.png)\n"
            )
            if study.epoch_by_epoch:
                parts.append(f"\nValidation accuracy after each epoch:\n\n{epochs_table(name)}")
            if study.along:
                parts.append(f"\nOn the way:\n\n{along_table(name, study.along)}")
    if (RESULTS / "digits-play.png").exists():
        parts.append(
            "\n## Where they look\n\nThe same canvases, drawn by chance, looked at by RAM after "
            "the four epochs of the first comparison.\n\n"
            "![Glimpses of three policies](../results/digits-play.png)\n"
        )
    if is_there("digits-oracle"):
        parts.append(
            "\n## What the oracle adds\n\nSeed by seed, to runs paid by the discriminator that is "
            "trained beside them.\n\n    irrl figure oracle-reward runs/results/digits-ram "
            "runs/results/digits-ram-leak runs/results/digits-oracle -o results/digits-oracle.png"
            f"\n\n{oracle_table()}\n![Online and oracle](../results/digits-oracle.png)\n"
        )
    if (RESULTS / "digits-calibration.json").exists():
        parts.append(
            "\n## What the leak does to posteriors\n\nCalibration error on validation canvases at "
            "the end of these runs: by how much posteriors miss the frequency of being right.\n\n"
            f"{calibration_table()}"
        )
    if is_there("digits-paper-leak"):
        parts.append(
            "\n## The authors' recipe after 100 epochs\n\nFrom the studies above, one seed each."
            f"\n\n{recipe_table()}"
        )
    if (RESULTS / "digits-placement.json").exists():
        parts.append(placement_section())
    if (RESULTS / "digits-noise.json").exists():
        parts.append(noise_section())
    (ROOT / "docs" / "results.md").write_text("".join(parts))
    readme = (ROOT / "README.md").read_text()
    readme = fill(readme, "results", skills_block())
    if all(map(is_there, SHOWN_FIRST)):
        readme = fill(readme, "digits", digits_block())
    if is_there("counting"):
        readme = fill(readme, "counting", counting_block())
    (ROOT / "README.md").write_text(readme)


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


SHOWN_FIRST = {
    "digits-ram": "RAM",
    "digits-ram-leak": "RAM, leaked",
    "digits-oracle": "RAM, by an oracle",
    "digits-dt-ram": "DT-RAM",
    "digits-dt-ram-leak": "DT-RAM, leaked",
}
"""Comparisons of the README; all others are in docs/results.md."""


def digits_block() -> str:
    """How far RAM and DT-RAM come, three rewards side by side, and how noisy they are."""
    return "\n".join([best_digits(), compared_digits(), noisy_digits()])


def best_digits() -> str:
    glimpses = load("digits-dt-ram-fast")["rewards"]["clipped-linear"]["steps"]["mean"]
    return (
        "Hard attention on Cluttered MNIST: which digit lies among the clutter, from 18 glimpses "
        "of 4 x 4 pixels?\n\n"
        f"RAM, the `fast` preset, 100 epochs: {reached('digits-ram-fast')}. The authors' recipe is "
        f"at {curve_point('ram', 'clipped-linear', 100)} by then, and at "
        f"{curve_point('ram', 'clipped-linear', 1400)} after 1400. {made_by('digits-ram-fast')}"
        f"\n\nDT-RAM, 60 epochs: {reached('digits-dt-ram-fast')}, with {Estimate(**glimpses)} "
        f"glimpses on average. The authors: {texts('dt-ram')['clipped-linear']} after 1500. "
        f"{made_by('digits-dt-ram-fast')}\n\n"
        "![The same canvases, looked at by RAM and by DT-RAM](results/digits-play-fast.png)\n"
        f"`irrl play {FAST} {FAST_DT} --seed 0`: canvases drawn by chance.\n"
    )


def compared_digits() -> str:
    header = ["reward", *SHOWN_FIRST.values(), "authors' RAM, 1500", "authors' DT-RAM, 1500"]
    theirs = (texts("ram"), texts("dt-ram"))
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
        "![RAM paid by its own discriminator and by an oracle](results/digits-oracle.png)\n"
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


def accuracy(study: str, name: str) -> str:
    """Of a reward in a study, in words; not every study has every reward."""
    found = accuracies(study, name)
    return str(mean_estimate(found)) if found else "-"


def accuracies(study: str, name: str) -> list[float]:
    """Of each seed, from 0 on; none if the study is not there or has no such reward."""
    rewards = load(study)["rewards"] if is_there(study) else {}
    figures = rewards.get(name) or rewards.get(name + ORACLE)
    return figures["accuracy"]["values"] if figures else []


def reached(study: str) -> str:
    figures = load(study)["rewards"]["clipped-linear"]
    accuracy, test = (Estimate(**figures[m]["mean"]) for m in ("accuracy", "test_accuracy"))
    return f"**{accuracy} %** (seeds: {seeds_of(study)}; on test digits {test})"


def made_by(study: str) -> str:
    return f"`{STUDIES[study].command}`, commit {commits(load(study))}"


def seeds_of(study: str) -> int:
    return min(len(figures["seeds"]) for figures in load(study)["rewards"].values())


def counting_block() -> str:
    result, study = load("counting"), STUDIES["counting"]
    return (
        "Counting cubes some of which are hidden, walking around the table: 1,000 new scenes, and "
        f"what the authors reached in 2 million episodes.\n\n{table(result, study)}\n"
        f"`irrl {' '.join(SCENES)} --out scenes`, then `{study.command}`, commit "
        f"{commits(result)}\n\n"
        "![Learning curves of three rewards and three yardsticks](results/counting/comparison.png)"
        "\n\n![The same scenes, walked by agents that were paid differently]"
        "(results/counting-play.png)\n"
    )


def epochs_table(name: str) -> str:
    """The figure of merit after each epoch: who leads while the discriminator is immature."""
    found = {reward: curves(name, reward)[:, 1:] for reward in load(name)["rewards"]}
    epochs = next(iter(found.values()))[0, :, 0]
    rows = [[r, *(str(mean_estimate(values)) for values in c[:, :, 1].T)] for r, c in found.items()]
    return markdown_table(["reward", *(f"epoch {epoch:g}" for epoch in epochs)], rows)


def placement_section() -> str:
    """The run on the authors' placement, tested on both."""
    found = json.loads((RESULTS / "digits-placement.json").read_text())
    return (
        "\n## Both placements\n\nThe run of the whole `fast` preset was trained on the authors' "
        "placement (47 % of digits at the bottom edge). It is right on "
        f"{found['paper']:.1f} % of canvases with test digits; where these lie anywhere, on "
        f"{found['uniform']:.1f} %.\n\n    irrl eval {FAST} --placement uniform\n\n"
        f"Trained on either for 16 epochs, validated on its own: "
        f"{accuracy('digits-judge', 'clipped-linear')} (the authors') and "
        f"{accuracy('digits-uniform', 'clipped-linear')} % (anywhere).\n"
    )


def along_table(name: str, model: str) -> str:
    """Our curve beside the authors', where theirs is known."""
    rows = []
    for reward in load(name)["rewards"]:
        found = curves(name, reward)
        for step, theirs in zip(*curve_up_to(model, reward, found[0, -1, 0]), strict=True):
            ours = mean_estimate(found[:, found[0, :, 0] == step, 1][:, 0])
            rows.append([reward, str(step), f"**{ours}**", str(theirs)])
    return markdown_table(["reward", "epoch", "here", "authors"], rows)


def oracle_table() -> str:
    """Accuracy with the oracle less accuracy without, of the same seeds; with and without leak."""
    rows = []
    for name in THREE.split(","):
        paid = accuracies("digits-oracle", name)
        shown = [str(mean_estimate(paid))]
        for study in ("digits-ram", "digits-ram-leak"):
            online = accuracies(study, name)
            gap = f"**{mean_estimate(np.subtract(paid, online))}**" if online else "-"
            shown += [accuracy(study, name), gap]
        rows.append([name, str(len(paid)), *shown])
    header = "reward,seeds,oracle,online,gap,online with leak,gap with leak"
    return markdown_table(header.split(","), rows)


def calibration_table() -> str:
    found = json.loads((RESULTS / "digits-calibration.json").read_text())
    rows = [
        [name, *(in_thousandths(of_study.get(name, [])) for of_study in found.values())]
        for name in THREE.split(",")
    ]
    return markdown_table(["reward", *(SHOWN_FIRST[study] for study in found)], rows)


def in_thousandths(values: list[float]) -> str:
    """Mean and range of figures that are too small for one decimal."""
    if not values:
        return "-"
    return f"{np.mean(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def recipe_table() -> str:
    """Three rewards after 100 epochs of the authors' recipe."""
    studies = {"digits-paper-leak": "leaked", "digits-ram-paper": "detached"}
    rows = []
    for name in THREE.split(","):
        values = [accuracy(study, name) for study in studies]
        if name == "accuracy":  # nothing to leak
            values = ["-", accuracy("digits-paper-accuracy", name)]
        rows.append([name, *values, str(curve_point("ram", name, 100))])
    return markdown_table(["reward", *studies.values(), "authors"], rows)


def noise_table(measured: dict[str, Any]) -> str:
    """The noise itself: is its mean zero, is it symmetric?"""
    rows = []
    for run, figures in measured["runs"].items():
        for d in figures["delta"]:
            shown = [f"{d[k]:+.3f}" for k in ("mean", "deviation", "skewness")]
            p = [f"{d[k]:.2g}" for k in ("p_zero_mean", "p_symmetric")]
            rows.append([run.split("/")[-2], str(d["epoch"]), *shown, *p])
    header = "run paid by,epoch,mean,deviation,skewness,p(zero mean),p(symmetric)"
    return markdown_table(header.split(","), rows)


def noise_of_rewards_table(measured: dict[str, Any]) -> str:
    """What the noise does to the reward that paid a run, measured and predicted."""
    rows, keys = [], ("bias", "predicted_bias", "deviation", "predicted_deviation")
    for run, figures in measured["runs"].items():
        name = run.split("/")[-2]
        for r in figures["rewards"]:
            if r["reward"] == name:
                rows.append([name, str(r["epoch"]), *(f"{r[k]:+.3f}" for k in keys)])
    return markdown_table(["reward", "epoch", "bias", "2nd order", "deviation", "2nd order"], rows)


def noise_section() -> str:
    measured = json.loads((RESULTS / "digits-noise.json").read_text())
    return (
        "\n## Discriminator noise, measured\n\nPosterior of the true label by the online "
        "discriminator less that by the oracle, on the same glimpses of 1,000 test canvases.\n\n"
        f"    {measured['command']}\n\ncommit {measured['commit'][:10]}; data in "
        f"`results/digits-noise.json`\n\n{noise_table(measured)}\n"
        "What this noise does to the reward that paid the run, and what `irrl.noise` predicts from "
        f"its first moments:\n\n{noise_of_rewards_table(measured)}\n"
        "![Violins of discriminator noise](../results/digits-noise.png)\n"
    )


def is_there(study: str) -> bool:
    return (RESULTS / study / "comparison.json").exists()


def load(study: str) -> dict[str, Any]:
    return json.loads((RESULTS / study / "comparison.json").read_text())


def commits(result: dict[str, Any]) -> str:
    return ", ".join(commit[:10] for commit in result["commits"])


def beside(name: str, study: Study) -> dict[str, dict[str, str]]:
    """Columns more, from the values and curves that are kept: title -> reward -> cell."""
    merit = COLUMNS[study.task].metrics[0]
    finals = {r: figures[merit]["values"] for r, figures in load(name)["rewards"].items()}
    speeds = {r: to_threshold(curves(name, r)) for r in finals}
    columns = {}
    if any(speed.reached for speed in speeds.values()):
        columns[f"steps to {THRESHOLD:g}"] = {r: str(speed) for r, speed in speeds.items()}
    found = standings(finals)
    if found and min(map(len, finals.values())) > 1:
        reference = next(iter(found.values())).reference
        columns[f"P({reference} above it)"] = {r: str(s) for r, s in found.items()}
    return columns


def curves(study: str, label: str) -> np.ndarray:
    """Steps and figure of merit of a reward or yardstick: (seeds, steps, 2)."""
    folder = label.removesuffix(ORACLE).removesuffix(YARDSTICK)
    found = json.loads((RESULTS / study / "curves.json").read_text())
    return np.array([points for key, points in found.items() if key.split("/")[0] == folder])


def to_threshold(found: np.ndarray) -> Reached:
    return steps_to_threshold((found[0, :, 0], found[:, :, 1]))


def table(
    result: dict[str, Any], study: Study, beside: dict[str, dict[str, str]] | None = None
) -> str:
    metrics, titles = COLUMNS[study.task]
    more = beside or {}
    rows = []
    for name, figures in result["rewards"].items():
        shown = [str(Estimate(**figures[metric]["mean"])) for metric in metrics]
        row = [name, str(len(figures["seeds"])), f"**{shown[0]}**", *shown[1:]]
        row += [cells.get(name, "-") for cells in more.values()]
        rows.append([*row, study.authors.get(name, "-")] if study.authors else row)
    header = ["reward", "seeds", *titles, *more]
    return markdown_table([*header, f"authors' {titles[0]}"] if study.authors else header, rows)
