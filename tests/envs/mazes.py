"""Ids of mazes as the package's own list of entry points has them, installed or not yet."""

import tomllib

import gymnasium

import irrl.envs  # noqa: F401
from tests.helpers.command import REPOSITORY

MAZE = "irrl/Maze-v0"


def register() -> None:
    if MAZE in gymnasium.registry:
        return
    groups = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["entry-points"]
    gymnasium.register(
        MAZE,
        entry_point=groups["irrl.envs"]["Maze-v0"],
        vector_entry_point=groups["irrl.envs.vector"]["Maze-v0"],
    )
