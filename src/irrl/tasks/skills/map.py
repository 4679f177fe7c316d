"""Maps of rooms as text: ``#`` is a wall, a space or ``.`` a free cell, ``S`` the start."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from irrl.errors import unknown_name

ACTIONS = ("noop", "up", "down", "left", "right")
_STEPS = ((0, 0), (-1, 0), (1, 0), (0, -1), (0, 1))

MAPS = {
    "large": """\
#############
#     #     #
#     #     #
#           #
#     #     #
#     #     #
## ####     #
#     ### ###
#     #     #
#     #     #
#           #
#     #     #
#############""",
    "small": """\
#######
#  #  #
#     #
## #  #
#  # ##
#  #  #
#     #
#######""",
}


@dataclass(frozen=True)
class RoomMap:
    """A map whose free cells are numbered row by row from the top left.

    Build one with ``read_map``. ``cells`` holds (row, column) of each cell; a *move* is
    ``cell * len(ACTIONS) + action`` and ``next_cell[move]`` where it leads: a blocked move stays.
    """

    rows: tuple[str, ...]

    @cached_property
    def cells(self) -> tuple[tuple[int, int], ...]:
        return tuple(
            (r, c) for r, row in enumerate(self.rows) for c, mark in enumerate(row) if mark != "#"
        )

    @cached_property
    def start(self) -> int:
        marks = [self.rows[r][c] for r, c in self.cells]
        return marks.index("S") if "S" in marks else 0

    @cached_property
    def next_cell(self) -> NDArray[np.uint32]:
        number = {cell: i for i, cell in enumerate(self.cells)}
        return np.array(
            [
                number.get((row + down, column + right), here)
                for here, (row, column) in enumerate(self.cells)
                for down, right in _STEPS
            ],
            dtype=np.uint32,
        )

    @cached_property
    def distances(self) -> NDArray[np.int64]:
        """Steps from the start to each cell; -1 where there is no way."""
        distance = np.full(len(self.cells), -1)
        distance[self.start] = 0
        frontier = [self.start]
        while frontier:
            ahead = []
            for cell in frontier:
                for after in self.next_cell[cell * len(ACTIONS) : (cell + 1) * len(ACTIONS)]:
                    if distance[after] < 0:
                        distance[after] = distance[cell] + 1
                        ahead.append(int(after))
            frontier = ahead
        return distance

    def to_grid(self, values: NDArray) -> NDArray[np.float64]:
        """Lay one value per cell out on the grid; walls are NaN."""
        grid = np.full((len(self.rows), len(self.rows[0])), np.nan)
        for (r, c), value in zip(self.cells, values, strict=True):
            grid[r, c] = value
        return grid


def read_map(name: str) -> RoomMap:
    """A map by name (``large``, ``small``), or from text that holds a line break."""
    text = name if "\n" in name else MAPS.get(name)
    if text is None:
        raise ValueError(unknown_name("map", name, MAPS) + ", or the path of a text file")
    rows = text.rstrip("\n").split("\n")
    widths = {len(row) for row in rows}
    if len(widths) > 1:
        odd = next(i for i, row in enumerate(rows) if len(row) != len(rows[0]))
        raise ValueError(
            f"map is ragged: line {odd + 1} has {len(rows[odd])} characters, line 1 has "
            f"{len(rows[0])}; draw free cells at the end of a line as '.'"
        )
    strange = sorted(set("".join(rows)) - set("# .S"))
    if strange:
        raise ValueError(f"map has characters other than '#', ' ', '.' and 'S': {strange}")
    if "".join(rows).count("S") > 1:
        raise ValueError("map has more than one start 'S'")
    room_map = RoomMap(tuple(rows))
    if not room_map.cells:
        raise ValueError("map has no free cell; draw free cells as ' ' or '.'")
    unreachable = np.flatnonzero(room_map.distances < 0)
    if unreachable.size:
        row, column = room_map.cells[unreachable[0]]
        raise ValueError(
            f"map has {unreachable.size} cells that cannot be reached from the start, the first "
            f"in line {row + 1}, column {column + 1}; open a door or wall them up"
        )
    return room_map


def map_text(name_or_path: str) -> str:
    """What a configuration stores: the name of a known map, or the text of a map file."""
    if "\n" in name_or_path or name_or_path in MAPS:
        return name_or_path
    path = Path(name_or_path)
    if not path.is_file():
        raise ValueError(unknown_name("map", name_or_path, MAPS) + ", or the path of a text file")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot read the map {name_or_path}: {error}") from None
    return text.rstrip("\n") + "\n"
