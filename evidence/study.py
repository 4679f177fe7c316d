"""What a study is, and what its table shows."""

from typing import NamedTuple


class Columns(NamedTuple):
    """What a task's tables show: metrics and their titles; the first is the primary metric."""

    metrics: tuple[str, ...]
    titles: tuple[str, ...]


COLUMNS = {
    "skills": Columns(
        ("n_skills", "n_skills_greedy", "cells_reached"), ("n skills", "greedy", "cells reached")
    ),
    "digits": Columns(
        ("accuracy_percent", "test_accuracy_percent", "glimpses"),
        ("validation %", "test %", "glimpses"),
    ),
    "gym": Columns(
        ("n_skills", "accuracy_percent", "cpu_seconds"),
        ("n skills", "codes told %", "CPU seconds"),
    ),
    "places": Columns(
        ("n_skills", "accuracy_percent", "buckets_reached", "final_distance", "cpu_seconds"),
        ("n skills", "codes told %", "buckets of 1 m", "metres from the start", "CPU seconds"),
    ),
    "labels": Columns(
        ("accuracy_percent", "environment_final_accuracy_percent", "cpu_seconds"),
        ("labels told %", "final accuracy by the environment %", "CPU seconds"),
    ),
    "regression": Columns(
        ("squared_error", "final_squared_error", "environment_mean_squared_error"),
        ("squared error per step", "at the end", "by the environment, in its unit"),
    ),
    "counting": Columns(
        ("accuracy_percent", "well_founded_percent", "moves"),
        ("right %", "right and well-founded %", "moves"),
    ),
}


class Study(NamedTuple):
    """Runs of `irrl compare`, and how they are shown."""

    title: str
    text: str
    flags: str
    hours: float = 0.0  # on two cores, where it is long
    epoch_by_epoch: bool = False  # short runs: show how each went, not only how it ended
    along: str | None = None  # whose curve of the authors' to follow

    @property
    def command(self) -> str:
        return f"irrl compare {self.flags}"

    @property
    def task(self) -> str:
        return self.flags.split()[0]

    @property
    def columns(self) -> Columns:
        by_preset = {
            "perception": "labels", "localisation": "regression", "lidar": "regression",
            "half-cheetah": "places",
        }  # fmt: skip
        found = [name for preset, name in by_preset.items() if f"--preset {preset}" in self.flags]
        return COLUMNS[found[0] if found else self.task]
