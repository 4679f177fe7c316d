"""Named settings of skill discovery: what each is for, and what it changes."""

from irrl.tasks.contract import Preset

PRESETS = {
    "fast": Preset(
        "the authors' final result in half a minute on one core",
        {"discriminator_learning_rate": 0.08},
    ),
    "paper": Preset(
        "the authors' set-up: 40 million iterations with SGD 0.004; ten minutes on one core",
        {
            "iterations": 40_000_000,
            "learning_rate": 0.004,
            "evaluate_every": 400_000,
            "checkpoint_every": 4_000_000,
        },
    ),
    "visits": Preset(
        "beyond the paper: clipped log with a bonus for rarely visited cells, no ensemble",
        {
            "reward": "clipped-log",
            "bonus": "visits",
            "epsilon": 0.0,
            "discriminator_learning_rate": 0.05,
        },
    ),
    "small-map": Preset(
        "24 cells, 24 codes, 8 steps: a quick check with a ceiling of 21.4 skills",
        {
            "map": "small",
            "codes": 24,
            "horizon": 8,
            "iterations": 400_000,
            "evaluate_every": 4_000,
            "checkpoint_every": 40_000,
        },
    ),
    "smoke": Preset(
        "the small map for a moment: does everything run?",
        {
            "map": "small",
            "codes": 24,
            "horizon": 8,
            "iterations": 2_000,
            "learning_rate": 0.4,
            "evaluate_every": 500,
            "checkpoint_every": 500,
        },
    ),
}
