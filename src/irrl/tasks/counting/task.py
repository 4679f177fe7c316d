"""Object counting under occlusion, as the rest of the package knows it."""

from irrl.tasks.contract import (
    EpisodePicture,
    Metric,
    NamedFigure,
    Requirement,
    Task,
    imported,
)
from irrl.tasks.counting.authors import PUBLISHED
from irrl.tasks.counting.config import SCRIPTED, CountingConfig
from irrl.tasks.counting.data_verbs import DATA_VERBS
from irrl.tasks.counting.presets import PRESETS

INSTALL = "irrl[counting]"


def limits(config: CountingConfig) -> dict[str, float]:
    """No more moves than an episode has."""
    return {"moves": float(config.max_moves)}


TASK = Task(
    name="counting",
    config=CountingConfig,
    presets=PRESETS,
    primary=Metric("accuracy_percent", "right answers (%)", "%", high=100.0, threshold=80.0),
    panels=(
        Metric("well_founded_percent", "right and well-founded answers (%)", "%", high=100.0),
        Metric("moves", "moves"),
    ),
    columns=("well_founded_percent", "moves", "seconds"),
    comparable=("resolution", "encoder", "max_moves", "episodes"),
    check=imported("irrl.tasks.counting.prepare", "check", INSTALL),
    prepare=imported("irrl.tasks.counting.prepare", "prepare", INSTALL),
    train=imported("irrl.tasks.counting.train", "train", INSTALL),
    evaluate=imported("irrl.tasks.counting.evaluate", "evaluate", INSTALL),
    titles={"counting": "Object counting under occlusion"},
    scripted_baselines={name: {"behaviour_policy": name} for name in SCRIPTED},
    published={"counting": PUBLISHED},
    as_published=("max_moves", "prior"),
    limits=limits,
    paper_labels={"reward-comparison": "Figure 8b, fig:object-counting-baseline-comparison"},
    figures={
        "case-study": NamedFigure(
            "Figure 15, fig:object-counting-cases",
            "counting runs with their checkpoints, and the scenes",
            imported("irrl.tasks.counting.play", "case_study", INSTALL),
            "episodes in which agents trained with different rewards differ",
        )
    },
    picture=EpisodePicture(
        "Walks",
        "Walks around the same scenes, drawn at random as the picture says: views in order, the "
        "action below each, and the answer",
        imported("irrl.tasks.counting.play", "report_picture", INSTALL),
    ),
    play=imported("irrl.tasks.counting.play", "play", INSTALL),
    data=DATA_VERBS,
    requirements=(
        Requirement(
            "MuJoCo's drawing",
            "pictures of scenes, for object counting",
            "pip install 'irrl[counting]'; apt-get install libegl1 libgl1 libgl1-mesa-dri",
            imported("irrl.tasks.counting.render", "look"),
        ),
    ),
    terms={
        "well founded": "right, and each cube to be counted was seen in some view that was taken",
        "scripted baseline": "an agent that learns to answer, but not how to move: it stays, moves "
        "at random, or sweeps all around",
    },
)
