"""The comparison of rewards as one picture: learning curves and where the skills end."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from irrl.checkpoint import checkpoint_paths, load_checkpoint
from irrl.errors import UserError
from irrl.plots import skills_comparison
from irrl.report import group_by_reward, learning_curves
from irrl.run import CHECKPOINTS, Run
from irrl.tasks.skills.map import RoomMap, read_map

METRICS = ("n_skills", "n_skills_greedy", "cells_reached", "seconds")
"""What a comparison of skill runs reports."""


def comparison_figure(runs: Sequence[Run]) -> Figure:
    """Learning curves over seeds, and the occupancy of final cells of the first seed."""
    groups = group_by_reward(runs)
    maps = {run.settings["map"] for run in runs}
    codes = {run.settings["codes"] for run in runs}
    if len(maps) > 1 or len(codes) > 1:
        raise UserError("runs on different maps or with different numbers of codes do not compare")
    room_map = read_map(maps.pop())
    return skills_comparison(
        {name: learning_curves(group, "n_skills") for name, group in groups.items()},
        {name: _stages(group[0], room_map) for name, group in groups.items()},
        ceiling(room_map, codes.pop(), min(run.settings["horizon"] for run in runs)),
    )


def _stages(run: Run, room_map: RoomMap) -> list[tuple[int, np.ndarray]]:
    """Occupancy at the start, half-way and at the end."""
    paths = checkpoint_paths(run.folder / CHECKPOINTS)
    chosen = dict.fromkeys(paths[i] for i in (0, len(paths) // 2, -1)) if paths else {}
    checkpoints = [load_checkpoint(path) for path in chosen]
    return [(c.step, room_map.paint(np.array(c.state["occupancy"]))) for c in checkpoints]


def ceiling(room_map: RoomMap, codes: int, horizon: int) -> float:
    """The most skills that deterministic walks can show: codes spread evenly over the cells.

    The start cell does not count: its posterior is held uniform.
    """
    reachable = int(np.count_nonzero(room_map.distances <= horizon)) - 1
    if reachable < 1:
        return 1.0
    shared, crowded = divmod(codes, reachable)
    cells = {shared: reachable - crowded, shared + 1: crowded}
    bits = sum(n * size * np.log2(size) for size, n in cells.items() if size > 0) / codes
    return float(codes / 2.0**bits)
