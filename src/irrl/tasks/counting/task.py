"""Object counting under occlusion, as the rest of the package knows it."""

from irrl.tasks.contract import EpisodePicture, Metric, NamedFigure, Task, imported
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
    paper_labels={"reward-comparison": "fig:object-counting-baseline-comparison"},
    figures={
        "case-study": NamedFigure(
            "fig:object-counting-cases",
            "counting runs with their checkpoints, and the scenes",
            imported("irrl.tasks.counting.play", "case_study", INSTALL),
        )
    },
    picture=EpisodePicture(
        "Walks",
        "Walks around the same scenes, sampled at random: views in order, the action below each, "
        "and the answer",
        imported("irrl.tasks.counting.play", "report_picture", INSTALL),
    ),
    play=imported("irrl.tasks.counting.play", "play", INSTALL),
    data=DATA_VERBS,
)
