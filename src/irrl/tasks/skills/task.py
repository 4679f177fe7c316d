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
        "reward-comparison": "fig:skill-discovery-baseline-comparison",
        "clipping": "fig:skill-discovery-reward-clipping",
    },
    figures={
        "occupancy": NamedFigure(
            "fig:skill-discovery-state-occupancy",
            "skill runs with their checkpoints",
            imported(_FIGURES, "occupancy_figure"),
        )
    },
    picture=EpisodePicture(
        "Where skills end",
        "Share of episodes that end in each cell, early to late",
        imported(_FIGURES, "occupancy_figure"),
    ),
    play=imported("irrl.tasks.skills.play", "play"),
    plot_beside=imported(_FIGURES, "plot_beside"),
    measure_gradient=imported("irrl.tasks.skills.gradient", "measure_gradient"),
)
