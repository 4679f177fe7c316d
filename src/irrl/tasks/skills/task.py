"""Unsupervised skill discovery in rooms, as a task. Light: what it does is imported when used."""

from irrl.tasks.contract import EpisodePicture, Metric, NamedFigure, Task, imported
from irrl.tasks.skills.authors import PUBLISHED, pace
from irrl.tasks.skills.ceiling import ceiling, limits
from irrl.tasks.skills.config import SkillsConfig
from irrl.tasks.skills.presets import PRESETS

_TRAIN, _EVALUATE, _FIGURES = (f"irrl.tasks.skills.{n}" for n in ("train", "evaluate", "figures"))

TASK = Task(
    name="skills",
    config=SkillsConfig,
    presets=PRESETS,
    primary=Metric("n_skills", "skills learned (Eq. 9)", "skills", threshold=80.0),
    check=imported(_TRAIN, "check"),
    prepare=imported(_TRAIN, "prepare"),
    train=imported(_TRAIN, "train"),
    evaluate=imported(_EVALUATE, "evaluate"),
    panels=(Metric("cells_reached", "cells reached"),),
    columns=("n_skills_greedy", "cells_reached", "seconds"),
    comparable=("map", "codes"),
    titles={"skills": "Skill discovery in rooms"},
    published={"skills": PUBLISHED},
    as_published=("map", "codes", "horizon", "initial_value", "bonus"),
    recipe=("batch_size", "epsilon", "discount", "lambda_", "bonus_weight"),
    pace=pace,
    ceiling=ceiling,
    limits=limits,
    paper_labels={
        "reward-comparison": "Figure 8a, fig:skill-discovery-baseline-comparison",
        "clipping": "Figure 11, fig:skill-discovery-reward-clipping",
    },
    figures={
        "occupancy": NamedFigure(
            "Figure 16, fig:skill-discovery-state-occupancy",
            "skill runs with their checkpoints",
            imported(_FIGURES, "occupancy_figure"),
            "in which cells skills end, early to late in training",
        )
    },
    picture=EpisodePicture(
        "Where skills end",
        "Share of episodes that end in each cell, early to late",
        imported(_FIGURES, "occupancy_figure"),
        is_quick=True,
    ),
    play=imported("irrl.tasks.skills.play", "play"),
    measure_gradient=imported("irrl.tasks.skills.gradient", "measure_gradient"),
    terms={
        "skills learned": "how many skills can be told apart by where they end: 2 to the power of "
        "the mean of log2 q - log2 p, Eq. 9 of the paper",
        "cells reached": "cells of the map in which some skill ends",
        "greedy": "without the random actions of training",
        "DISDAIN": "an ensemble of discriminators whose disagreement is a bonus for exploring",
    },
)
