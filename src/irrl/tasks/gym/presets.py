"""Named settings for environments of anybody's: what each is for, and what it changes."""

from irrl.tasks.contract import Preset

_MAZE = {
    "env": "irrl/Maze-v0",
    "codes": 50,
    "deterministic": True,
    "bonus": "visits",
    "bonus_weight": 0.2,
    "pay": "differences",
    "observe": "inputs",
    "envs": 200,
    "rollout": 20,
    "steps": 1_000_000,
    "discount": 1.0,
    "schedule": "cosine",
    "evaluate_every": 100_000,
    "evaluate_episodes": 100,
}

_LOCALISATION = {
    "env": "ap_gym:LightDark-v0",
    "mode": "regression",
    "reward": "ball",
    "pay": "steps",
    "varying_length": True,
    "last_action": True,
    "frequencies": 0,
    "beta_nll": 0.5,
    "discriminator_core": "gru",
    "discriminator_width": 64,
    "discriminator_learning_rate": 3e-3,
    "discriminator_schedule": "cosine",
    "discriminator_batch_size": 64,
    "samples_per_episode": 32,
    "observe": "belief",
    "steps": 144_000,
    "rollout": 50,
    "batch_size": 640,
    "n_epochs": 10,
    "schedule": "cosine",
    "lambda_": 0.9,
    "log_std": -0.5,
    "deterministic": True,
    "checkpoint_every": 144_000,
    "evaluate_every": 144_000,
    "evaluate_episodes": 1_024,
}

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
    "maze": Preset(
        "skills in a maze with bottlenecks, 50 codes, ten million steps: a minute on one core",
        {**_MAZE, "env_options": '{"map": "bottleneck", "repeat": 10}'},
    ),
    "u-maze": Preset(
        "the same around a corner and back",
        {**_MAZE, "env_options": '{"map": "u-maze", "repeat": 10}'},
    ),
    "half-cheetah": Preset(
        "skills of MuJoCo's HalfCheetah by how far it gets, 8 codes (needs irrl[mujoco]): two "
        "minutes on one core",
        {
            "env": "HalfCheetah-v5",
            "env_options": '{"exclude_current_positions_from_observation": false, '
            '"frame_skip": 20}',  # an action lasts a fifth of a second
            "max_episode_steps": 25,
            "sees": "0",
            "codes": 8,
            "deterministic": True,
            "reward_unit": "largest",
            "bonus": "visits",
            "bonus_weight": 0.23,
            "bucket": 1.0,
            "pay": "differences",
            "discount": 1.0,
            "observe": "standardised",
            "action_gain": 1.0,
            "log_std": -1.0,
            "frequencies": 1,
            "store": 512,
            "rollout": 25,
            "n_epochs": 10,
            "steps": 240_000,
            "schedule": "cosine",
            "evaluate_every": 40_000,
            "evaluate_episodes": 64,
            "checkpoint_every": 240_000,
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
        "labels that are numbers, one for each step; LightDark of ap_gym: a minute", _LOCALISATION
    ),
    "lidar": Preset(
        "the same by the walls around: LIDARLocMazeStatic of ap_gym: four minutes, most its own",
        {
            **_LOCALISATION,
            "env": "ap_gym:LIDARLocMazeStatic-v0",
            "steps": 128_000,
            "evaluate_every": 64_000,
            "evaluate_episodes": 128,
            "checkpoint_every": 128_000,
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
