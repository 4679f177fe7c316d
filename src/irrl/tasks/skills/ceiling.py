"""The most skills there can be, for the line above learning curves."""

import numpy as np

from irrl.tasks.skills.config import SkillsConfig
from irrl.tasks.skills.map import RoomMap, read_map


def ceiling(config: SkillsConfig) -> float:
    """The best value of Eq. 9 that a run of this configuration can reach."""
    return most_skills(read_map(config.map), config.codes, config.horizon)


def limits(config: SkillsConfig) -> dict[str, float]:
    """No more skills than that, and no more cells than can be reached."""
    within = read_map(config.map).distances <= config.horizon
    most = ceiling(config)
    cells = float(np.count_nonzero(within))
    return {"n_skills": most, "n_skills_greedy": most, "cells_reached": cells}


def most_skills(room_map: RoomMap, codes: int, horizon: int) -> float:
    """The most skills that deterministic walks can show.

    Codes are spread evenly over the cells. One that stays at the start, whose posterior is held
    uniform, adds no information; on the tiniest of maps some are better left there.
    """
    cells = int(np.count_nonzero(room_map.distances <= horizon)) - 1
    return max(_skills_when(away, cells, codes) for away in range(codes + 1))


def _skills_when(away: int, cells: int, codes: int) -> float:
    if away == 0 or cells == 0:
        return 1.0
    size, crowded = divmod(away, cells)
    sizes = [size] * (cells - crowded) + [size + 1] * crowded
    return float(2.0 ** (sum(n * np.log2(codes / n) for n in sizes if n > 0) / codes))
