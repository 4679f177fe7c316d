"""Named settings for each task. A preset is one entry: what it is for, and what it changes."""

from typing import Any, NamedTuple


class Preset(NamedTuple):
    description: str
    settings: dict[str, Any]


DEFAULT_PRESET = "fast"

PRESETS: dict[str, dict[str, Preset]] = {
    "skills": {
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
    },
    "digits": {
        "fast": Preset(
            "RAM that learns several times faster than the authors' recipe on two cores",
            {
                "core": "map",
                "width": 256,
                "glimpse_width": 256,
                "location_features": 6,
                "object_centred": True,
                "policy_memory": 128,
                "locator_width": 128,
                "baseline_width": 128,
                "initial_policy": 0.01,
                "moves": "centred",
                "centre_light": 0.4,
                "centre_fade": 0.8,
                "centre_forgets": True,
                "grid": 9,
                "equivariant": True,
                "inhibition": 4.0,
                "epochs": 100,
                "fresh_canvases": True,
                "learning_rate": 5e-3,
                "policy_learning_rate": 2e-3,
                "policy_warmup_epochs": 1.0,
                "schedule": "cosine",
                "location_std": 0.04,
                "credit": "dense",
                "discount": 0.9,
                "lambda_": 0.8,
                "supervision": "all",
                "normalise_advantage": True,
                "initial_stop": 0.02,
                "entropy_weight": 0.03,
            },
        ),
        "paper": Preset("the authors' recipe: 1500 epochs of plain RAM, hours on two cores", {}),
        "smoke": Preset(
            "a tiny model on a few hundred canvases: does everything run?",
            {
                "train_images": 512,
                "validation_images": 256,
                "test_images": 256,
                "steps": 6,
                "width": 32,
                "glimpse_width": 16,
                "locator_width": 16,
                "core": "gru",
                "location_features": 2,
                "policy_memory": 8,
                "object_centred": True,
                "moves": "relative",
                "credit": "dense",
                "supervision": "all",
                "epochs": 4,
                "batch_size": 64,
                "learning_rate": 3e-3,
                "checkpoint_every": 1,
            },
        ),
    },
    "counting": {
        "fast": Preset(
            "a small encoder on pictures of 64 x 64 that is told what to look for: for two cores",
            {
                "train_scenes": 20_000,
                "resolution": 64,
                "encoder": "small",
                "dropout": 0.0,
                "core": "gru",
                "head_width": 64,
                "initial_policy": 0.01,
                "episodes": 120_000,
                "batch_episodes": 256,
                "ppo_passes": 2,
                "minibatch_episodes": 64,
                "learning_rate": 3e-3,
                "schedule": "cosine",
                "discount": 0.99,
                "final_discount": 0.9,
                "entropy_weight": 0.08,
                "max_gradient": 2.0,
                "supervision": "all",
                "normalise_advantage": True,
                "evaluate_every": 5_000,
                "checkpoint_every": 20_000,
            },
        ),
        "paper": Preset("the authors' recipe: ResNet-18, 2 million episodes; it needs a GPU", {}),
        "smoke": Preset(
            "a tiny model on a few scenes: does everything run?",
            {
                "train_scenes": 64,
                "eval_scenes": 32,
                "resolution": 32,
                "encoder": "small",
                "encoder_widths": "8,16",
                "core": "gru",
                "width": 32,
                "initial_policy": 0.01,
                "episodes": 256,
                "batch_episodes": 64,
                "ppo_passes": 2,
                "minibatch_episodes": 32,
                "learning_rate": 1e-3,
                "supervision": "all",
                "normalise_advantage": True,
                "evaluate_every": 64,
                "checkpoint_every": 64,
            },
        ),
    },
}
