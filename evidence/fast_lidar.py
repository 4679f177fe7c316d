"""LIDARLocMazeStatic of ap_gym, several times as fast: the same places, readings and rewards.

ap_gym meets each ray with all walls of its map by geometry. Here it goes from cell to cell, and by
geometry only where it comes near a corner. Nothing is kept for pictures of what was seen.
"""

from functools import cache
from typing import Any

import ap_gym  # noqa: F401 - registers the environment
import gymnasium
import numba
import numpy as np
import shapely  # type: ignore[import-untyped]
from ap_gym.envs.lidar_localization2d import LIDARLocalization2DEnv

ID = "LIDARLocMazeStatic-v0"
NEAR = 1e-4  # to a corner, in cells
UNKNOWN = -1.0
POINT, LINE = 0, 1
SEVERAL = (4, 5)  # points, lines


@numba.njit(cache=True)
def cell_by_cell(occupied: Any, place: Any, targets: Any) -> Any:
    """How far rays get: infinitely far, or unknown where one meets a corner on its way."""
    found = np.empty(len(targets))
    for n in range(len(targets)):
        way = targets[n] - place
        at = np.floor(place)
        share = 0.0  # of the way that is gone
        found[n] = np.inf
        while True:
            x_next = y_next = np.inf
            if way[0] != 0:
                x_next = (at[0] + (way[0] > 0) - place[0]) / way[0]
            if way[1] != 0:
                y_next = (at[1] + (way[1] > 0) - place[1]) / way[1]
            share = min(x_next, y_next)
            side = 1 if x_next <= y_next else 0  # the other axis of the one that is crossed
            where = place[side] + share * way[side]
            if share - NEAR > 1 or not share < np.inf:
                break
            if abs(where - np.rint(where)) < NEAR or abs(share - 1) < NEAR or share < NEAR:
                found[n] = UNKNOWN
                break
            at[1 - side] += 1 if way[1 - side] > 0 else -1
            x, y = int(at[0]), int(at[1])
            if x < 0 or y < 0 or y >= occupied.shape[0] or x >= occupied.shape[1]:
                break
            if occupied[y, x]:
                found[n] = share * np.sqrt(way[0] ** 2 + way[1] ** 2)
                break
    return found


@cache
def all_walls(floor_map: bytes, rows: int) -> Any:
    """The occupied cells, as one geometry."""
    y, x = np.nonzero(np.frombuffer(floor_map, np.bool_).reshape(rows, -1))
    return shapely.union_all(shapely.box(x, y, x + 1, y + 1))


def by_geometry(walls: Any, place: np.ndarray, target: np.ndarray) -> float:
    """How far a ray gets by ap_gym's rules: one that only touches a corner does not start."""
    met = shapely.intersection(shapely.LineString([place, target]), walls)
    kind = shapely.get_type_id(met)
    if kind == LINE and not shapely.is_empty(met):
        return float(np.linalg.norm(shapely.get_coordinates(met)[0] - place))
    if kind == POINT:
        return 0.0
    if kind in SEVERAL:
        firsts = [shapely.get_coordinates(part)[0] for part in shapely.get_parts(met)]
        return float(np.linalg.norm(np.array(firsts, np.float32) - place, axis=-1).min())
    return np.inf


class FastLidar(LIDARLocalization2DEnv):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        beams = len(self._LIDARLocalization2DEnv__lidar_directions)
        self._LIDARLocalization2DEnv__scan_points: np.ndarray = np.zeros((beams, 0, 2))

    def _LIDARLocalization2DEnv__lidar_scan(  # noqa: N802 - a private method of ap_gym's
        self, pos: np.ndarray, target_pos: np.ndarray, eps: float = 1e-3
    ) -> tuple[np.ndarray, np.ndarray]:
        occupied = self._LIDARLocalization2DEnv__map
        place, targets = pos.astype(float), target_pos.astype(float)
        met = cell_by_cell(occupied, place, targets)
        for n in np.nonzero(met == UNKNOWN)[0]:
            met[n] = by_geometry(all_walls(occupied.tobytes(), len(occupied)), pos, target_pos[n])
        free = np.linalg.norm(target_pos - pos, axis=-1)
        distances = np.where(met < np.inf, np.maximum(met - eps, 0), free)
        nowhere = np.full((len(targets), 2), -1, np.int32)
        return distances.astype(np.float32), nowhere


_spec = gymnasium.spec(ID)
gymnasium.register(
    f"Fast{ID}",
    entry_point="fast_lidar:FastLidar",
    kwargs=_spec.kwargs,
    additional_wrappers=_spec.additional_wrappers,
)
