"""Named settings for environments of anybody's: what each is for, and what it changes."""

from irrl.tasks.contract import Preset

PRESETS = {
    "fast": Preset(
        "skills of a point mass, 32 codes: a minute on one core", {"schedule": "cosine"}
    ),
    "four-rooms": Preset(
        "skills in four rooms, 128 codes, with networks in place of tables: two minutes",
        {
            "env": "irrl/FourRooms-v0",
            "codes": 128,
            "rollout": 20,
            "batch_size": 320,
            "steps": 1_600_000,
            "checkpoint_every": 400_000,
            "evaluate_every": 80_000,
            "evaluate_episodes": 512,
        },
    ),
    "perception": Preset(
        "labels in anybody's environment of active perception; CircleSquare of ap_gym: a minute",
        {
            "env": "ap_gym:CircleSquare-v0",
            "mode": "labels",
            "observe": "inputs",
            "steps": 250_000,
            "rollout": 16,
            "batch_size": 256,
            "lambda_": 0.9,
            "checkpoint_every": 125_000,
            "evaluate_every": 12_500,
            "evaluate_episodes": 512,
        },
    ),
    "localisation": Preset(
        "labels that are numbers, one for each step; LightDark of ap_gym: a minute",
        {
            "env": "ap_gym:LightDark-v0",
            "mode": "regression",
            "reward": "ball",
            "pay": "steps",
            "varying_length": True,
            "discriminator_core": "gru",
            "last_action": True,
            "frequencies": 0,
            "samples_per_episode": 32,
            "discriminator_batch_size": 64,
            "observe": "belief",
            "steps": 80_000,
            "rollout": 50,
            "batch_size": 256,
            "schedule": "cosine",
            "lambda_": 0.9,
            "log_std": -1.0,
            "deterministic": True,
            "checkpoint_every": 80_000,
            "evaluate_every": 40_000,
            "evaluate_episodes": 256,
        },
    ),
    "replay": Preset(
        "skills of a point mass with SAC, whose replay buffer is paid anew each time it is sampled",
        {
            "agent": "sac",
            "envs": 16,
            "steps": 200_000,
            "rollout": 2,
            "gradient_steps": 8,
            "batch_size": 256,
            "checkpoint_every": 50_000,
            "evaluate_every": 10_000,
        },
    ),
    "smoke": Preset(
        "a moment: does everything run?",
        {
            "codes": 4,
            "envs": 8,
            "steps": 3_200,
            "batch_size": 100,
            "widths": "16",
            "discriminator_width": 16,
            "evaluate_episodes": 8,
            "evaluate_every": 400,
            "checkpoint_every": 800,
            "buffer_size": 2_000,
            "learning_starts": 200,
        },
    ),
}
