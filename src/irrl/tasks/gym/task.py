"""Anybody's Gymnasium environment, as a task. Light: what it does is imported when used."""

from irrl.tasks.contract import EpisodePicture, Metric, Task, imported
from irrl.tasks.gym.config import GymConfig
from irrl.tasks.gym.peers import peers
from irrl.tasks.gym.presets import PRESETS

INSTALL = "irrl[sb3]"
ACCURACY = Metric("accuracy_percent", "labels told (%)", "%", high=100.0, threshold=80.0)
SQUARED_ERROR = Metric(
    "squared_error", "squared error per step (a blind guess has 1)", higher_is_better=False
)
MAZE = "irrl/Maze-v0"
BY_VARIANT = (
    "accuracy_percent",
    "environment_final_accuracy_percent",
    "squared_error",
    "final_squared_error",
    "environment_mean_squared_error",
    "n_skills",
    "coverage",
    "buckets_reached",
    "final_distance",
)
"""Numbers of a summary that some environments and labels have."""

N_SKILLS = Metric("n_skills", "skills learned (Eq. 9)", "skills")


def ceiling(config: GymConfig) -> float:
    """No more skills than codes, no more right answers than all, no error below none."""
    return {"skills": float(config.codes), "labels": 100.0}.get(config.mode, 0.0)


def limits(config: GymConfig) -> dict[str, float]:
    """The same where skills are counted, and buckets; per cent have their range by name."""
    if config.mode != "skills":
        return {}
    return {"n_skills": ceiling(config), "coverage": _largest_coverage(config)}


def _largest_coverage(config: GymConfig) -> float:
    maze = config.all_env_options().get("map")
    if config.env != MAZE or not isinstance(maze, str):
        return 100.0
    from irrl.envs.maze_map import read_maze
    from irrl.envs.maze_metrics import largest_coverage

    return float(largest_coverage(read_maze(maze)))


TASK = Task(
    name="gym",
    config=GymConfig,
    presets=PRESETS,
    primary=N_SKILLS,
    primary_of={"labels": ACCURACY, "regression": SQUARED_ERROR},
    check=imported("irrl.tasks.gym.learner", "check", INSTALL),
    prepare=imported("irrl.tasks.gym.learner", "prepare", INSTALL),
    train=imported("irrl.tasks.gym.train", "train", INSTALL),
    evaluate=imported("irrl.tasks.gym.evaluate", "evaluate", INSTALL),
    panels=(
        ACCURACY,
        Metric("discriminator_calibration_error", "calibration error"),
        Metric("reward_mean", "mean reward"),
    ),
    panels_by={
        "regression": (
            Metric("final_squared_error", "squared error at the end"),
            Metric("pit_calibration_error", "calibration error (PIT)", high=0.5),
            Metric("reward_mean", "mean reward", low=None),
        )
    },
    columns=(*BY_VARIANT, "seconds", "cpu_seconds"),
    optional=BY_VARIANT,
    comparable=("env", "env_options", "mode", "codes", "labels", "steps"),
    variant_by="mode",
    titles={
        "skills": "Skills in an environment",
        "labels": "Labels of an environment",
        "regression": "Numbers of an environment",
    },
    ceiling=ceiling,
    limits=limits,
    peers=peers,
    picture=EpisodePicture(
        "What they do",
        "Episodes of trained policies, sampled at random",
        imported("irrl.tasks.gym.play", "report_picture", INSTALL),
    ),
    play=imported("irrl.tasks.gym.play", "play", INSTALL),
)
