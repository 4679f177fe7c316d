"""`docs/results.md` and the README's table, from the small data in `results/`."""

import json

from gradient_tables import gradient_sections
from gym_tables import circle_square_section
from highlights import highlights, speed_table, sweep_speed
from language import section as language_section
from observations import section as observations_section
from readme import fill, headline_block
from studies import FAST, ORACLE_RUN, RESULTS, ROOT, STUDIES
from tables import (
    accuracy,
    along_table,
    beside,
    calibration_table,
    commits,
    epochs_table,
    has_curves,
    is_there,
    load,
    noise_of_rewards_table,
    noise_table,
    oracle_accuracy,
    oracle_table,
    recipe_table,
    table,
)
from upside import upside_table
from which_reward_tables import section as which_reward_section


def write_documents() -> None:
    (ROOT / "docs" / "results.md").write_text(results_text())
    path = ROOT / "README.md"
    path.write_text(readme_text(path.read_text()))


def readme_text(readme: str) -> str:
    """The README with its tables anew."""
    return fill(fill(readme, "headlines", headline_block()), "upside", upside_table())


def results_text() -> str:
    parts = [
        "# Results\n\nWritten by `evidence/results.py` from the run folders; do not edit by "
        "hand. Means over seeds with a 95 % t interval [in brackets] or, of three seeds and fewer, "
        "the seeds themselves (in parentheses); figures say above each panel what they draw. Steps "
        "to a threshold are the median with its interval, or the seeds, and how many get there; P "
        "is how often a seed of one reward is better than one of the other, p that of a one-sided "
        "permutation test. `n skills` is Eq. 9 under the policy that was trained, exact, not "
        "sampled; `greedy` leaves out its random actions. Accuracy of digits is that of "
        "episodes without chance: on validation canvases at "
        "the end of a run, on canvases with test digits beside it. Counting is measured on scenes "
        "that were not trained on, with the likeliest action each time.\n\n"
        "The authors' numbers stand where the task is theirs and the run was trained at least as "
        "long as one of their numbers was (epochs; episodes; for skills step size times "
        "iterations), with that length. Ours is compared with theirs after the same training, read "
        "off our curve, and of digits only for their model: elsewhere there is no verdict. "
        "*Agrees* means that our mean is in the range that their number, mostly read off a figure, "
        "stands for.\n",
        highlights(),
    ]
    for name, study in STUDIES.items():
        if is_there(name):
            result = load(name)
            changed = ", with changes" if result["dirty"] else ""
            parts.append(
                f"\n## {study.title}\n\n{study.text}\n\n    {study.command}\n\n"
                f"commit {commits(result)}{changed}; data in `results/{name}/`\n\n"
                f"{table(name, study, beside(name, study))}"
            )
            if has_curves(name):
                parts.append(f"\n![{study.title}](../results/{name}/comparison.png)\n")
            if study.epoch_by_epoch:
                parts.append(f"\nValidation accuracy after each epoch:\n\n{epochs_table(name)}")
            if study.along:
                parts.append(f"\nOn the way:\n\n{along_table(name, study.along)}")
    parts.append(which_reward_section())
    parts.append(observations_section())
    if is_there("gym-circle-square"):
        parts.append(circle_square_section())
    parts.append(language_section())
    if (RESULTS / "digits-play.png").exists():
        parts.append(
            "\n## Where they look\n\nThe same canvases, drawn by chance, looked at by RAM after "
            "the four epochs of the first comparison.\n\n"
            "![Glimpses of three policies](../results/digits-play.png)\n"
        )
    if is_there("digits-oracle"):
        parts.append(
            "\n## What the oracle adds\n\nSeed by seed, to runs rewarded by the discriminator "
            "that is trained beside them.\n\n    irrl figure oracle-reward runs/results/digits-ram "
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
    parts.append(gradient_sections())
    parts.append(f"\n## Throughput\n\n`make bench`; one machine, two cores.\n\n{speed_table()}")
    parts.append(f"\n{sweep_speed()}")
    return "".join(parts)


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


def noise_section() -> str:
    measured = json.loads((RESULTS / "digits-noise.json").read_text())
    return (
        "\n## Discriminator noise, measured\n\nPosterior of the true label by the online "
        "discriminator less that by the oracle, on the same glimpses of 1,000 test canvases; one "
        f"seed of each. The oracle, `{ORACLE_RUN}`, is {oracle_accuracy()}. Before training, runs "
        "of one seed are the same. p of symmetry is that of a test by 2,000 drawings of signs, "
        "which cannot get below 0.0005; p of a zero mean is not told below 0.0001, where a normal "
        "approximation is not to be believed.\n\n"
        f"    {measured['command']}\n\ncommit {measured['commit'][:10]}; data in "
        f"`results/digits-noise.json`\n\n{noise_table(measured)}\n"
        "What this noise does to the reward of the run, and what `irrl.noise` predicts from "
        f"its first moments:\n\n{noise_of_rewards_table(measured)}\n"
        "![Violins of discriminator noise](../results/digits-noise.png)\n"
    )
