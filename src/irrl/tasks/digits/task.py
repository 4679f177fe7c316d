"""Hard attention on Cluttered MNIST, as a task. Light: what it does is imported when used."""

from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import fields

from irrl.runs.run import Run
from irrl.tasks.contract import (
    DataVerb,
    EpisodePicture,
    Metric,
    NamedFigure,
    Requirement,
    Task,
    imported,
)
from irrl.tasks.digits.authors import PUBLISHED, pace
from irrl.tasks.digits.config import MODELS
from irrl.tasks.digits.extensions.config import DigitsConfig
from irrl.tasks.digits.presets import PRESETS

_HERE, _TORCH = "irrl.tasks.digits", "irrl[torch]"


# --- panels of figures ---


def panels_of(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """A panel for each model, and one more for runs whose reward leaks a gradient."""
    panels = {}
    for model in MODELS:
        of_model = [run for run in runs if run.settings["model"] == model]
        for how, its in by_leak(of_model).items():
            if its:
                panels[", ".join(filter(None, [model.upper(), how]))] = its
    return panels


def by_leak(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Runs whose reward carries a gradient into the discriminator apart from the others.

    A reward that has no gradient, such as accuracy, is the same in both.
    """
    leaked = [run for run in runs if run.settings["leak_reward_gradient"]]
    others = [run for run in runs if run not in leaked]
    if not leaked:
        return {"": others}
    both = [run for run in others if run.config.reward_fn().shape is None]
    apart = {"": others} if len(others) > len(both) else {}
    return {**apart, "leaked": [*leaked, *both]}


# --- options of `irrl data` ---


def mnist_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--from", dest="source", metavar="DIR", help="folder with the four files, .gz or not"
    )


def show_options(parser: ArgumentParser) -> None:
    defaults = DigitsConfig()
    for name, metavar, help in (
        ("seed", "N", "seed of the samples"),
        ("placement", "NAME", "paper or uniform"),
        ("canvas_size", "N", "side of the canvas"),
        ("clutter", "N", "pieces of other digits"),
        ("clutter_size", "N", "side of such a piece"),
    ):
        default = getattr(defaults, name)
        parser.add_argument(
            f"--{name.replace('_', '-')}", type=type(default), default=default, metavar=metavar,
            help=f"{help} (default: %(default)s)",
        )  # fmt: skip
    parser.add_argument(
        "-o", "--output", default="digits.png", metavar="FILE",
        help="PNG, SVG or PDF (default: %(default)s)",
    )  # fmt: skip


# --- beside the authors ---

FREE = (
    "reward", "oracle", "seed", "model", "epochs", "batch_size", "parts", "device",
    "leak_reward_gradient", "test_images", "evaluate_every", "checkpoint_every",
)  # fmt: skip
"""In all other settings a run must be as the paper's for a verdict beside the authors' numbers.

Their paper has batches of 128, their scripts 256; their code leaks, their mathematics does not.
"""


def limits(config: DigitsConfig) -> dict[str, float]:
    """No more glimpses than an episode has."""
    return {"glimpses": float(config.glimpses)}


# --- the task ---

TASK = Task(
    name="digits",
    config=DigitsConfig,
    presets=PRESETS,
    primary=Metric("accuracy_percent", "validation accuracy (%)", high=100.0, threshold=80.0),
    prepare=imported(f"{_HERE}.train", "prepare", _TORCH),
    train=imported(f"{_HERE}.train", "train", _TORCH),
    evaluate=imported(f"{_HERE}.evaluate", "evaluate", _TORCH),
    check=imported(f"{_HERE}.train", "check", _TORCH),
    panels=(
        Metric("discriminator_posterior", "posterior of the label", high=1.0),
        Metric("glimpses", "glimpses"),
    ),
    columns=("best_accuracy_percent", "test_accuracy_percent", "glimpses", "seconds"),
    comparable=("model", "canvas_size", "placement", "epochs"),
    variant_by="model",
    titles={
        "ram": "Hard attention on Cluttered MNIST: RAM",
        "dt-ram": "Hard attention on Cluttered MNIST: DT-RAM",
    },
    panels_of=panels_of,
    published=PUBLISHED,
    as_published=(
        "canvas_size", "clutter", "clutter_size", "placement", "glimpses", "glimpse_size", "scales",
    ),
    recipe=tuple(f.name for f in fields(DigitsConfig) if f.name not in FREE),
    pace=pace,
    limits=limits,
    paper_labels={
        "reward-comparison": "Figure 7, fig:digit-recognition-baseline-comparison",
        "oracle-reward": "Figures 9 and 5, fig:digit-recognition-reward-hacking-ram, "
        "-ram-acc-and-log",
        "noise": "Figures 6, 10a and 10b, fig:noisy-visualization-log, -acc, -linear",
        "g-functions": "Figure 13, fig:digit-recognition-g-functions-no-reward-hacking",
    },
    figures={
        "case-study": NamedFigure(
            "Figure 14, fig:case-study-digit-recognition",
            "digit runs with their checkpoints, and MNIST",
            imported(f"{_HERE}.play", "case_study", _TORCH),
            "episodes in which agents trained with different rewards differ",
        )
    },
    picture=EpisodePicture(
        "Glimpse paths",
        "Paths over the same canvases, drawn at random as the picture says: start yellow, end "
        "red, guess and truth above",
        imported(f"{_HERE}.play", "glimpse_paths", _TORCH),
    ),
    play=imported(f"{_HERE}.play", "play", _TORCH),
    measure_noise=imported(f"{_HERE}.noise", "measure_noise", _TORCH),
    measure_gradient=imported(f"{_HERE}.gradient", "measure_gradient", _TORCH),
    requirements=(
        Requirement(
            "MNIST",
            "cluttered digits",
            "irrl data mnist",
            imported(f"{_HERE}.mnist", "look"),
        ),
    ),
    terms={
        "RAM": "recurrent attention model: it looks at a canvas through a fixed number of glimpses",
        "DT-RAM": "a RAM that decides by itself when it has seen enough",
        "glimpse": "a small square of the canvas, all that a RAM sees at a time",
        "leaked": "the reward carries a gradient into the discriminator, as in the authors' code",
    },
    data={
        "mnist": DataVerb("fetch MNIST", mnist_options, imported(f"{_HERE}.verbs", "mnist")),
        "show": DataVerb(
            "draw samples of cluttered digits", show_options, imported(f"{_HERE}.verbs", "show")
        ),
    },
)  # fmt: skip
