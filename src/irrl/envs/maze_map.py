"""Mazes as text: ``+--+`` and ``|`` are walls between squares, ``##`` a square that is solid.

+--+--+--+
|     |##|
+  +--+  +
|S       |
+--+--+--+

``S`` marks the square of the start, which is the one at the bottom left if none is marked.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from irrl.errors import UserError, unknown_name

SIDE = 5.0
"""Of a square, as in UPSIDE: ten by ten of them are 50 x 50."""

MARGINS = 128
"""A wall reaches a side's 128th into the squares beside it, so that places tell its sides apart."""

LEFT, RIGHT, DOWN, UP = range(4)
_STEPS = {LEFT: (0, -1), RIGHT: (0, 1), DOWN: (-1, 0), UP: (1, 0)}

MAPS = {
    "bottleneck": """\
+--+--+--+--+--+--+--+--+--+--+
|                    |        |
+  +  +  +  +  +  +  +  +  +  +
|                    |        |
+  +  +  +  +  +  +  +  +  +  +
|                    |        |
+  +  +  +  +  +  +  +  +  +  +
|                    |        |
+  +  +  +  +  +  +  +  +  +  +
|                    |        |
+--+--+--+--+--+  +  +  +  +  +
|              |     |        |
+  +  +  +  +  +  +  +  +  +  +
|              |              |
+  +  +  +  +  +  +  +  +  +  +
|              |              |
+  +  +  +  +  +--+--+  +--+--+
|                       |     |
+  +  +  +  +  +  +  +--+  +  +
|              |              |
+--+--+--+--+--+--+--+--+--+--+
""",
    "u-maze": """\
+--+--+--+--+--+--+--+--+--+--+
|                             |
+  +  +  +  +  +  +  +  +  +  +
|                             |
+  +  +  +  +  +  +  +  +  +  +
|                             |
+--+--+--+--+--+--+--+  +  +  +
|## ## ## ## ## ## ##|        |
+  +  +  +  +  +  +  +  +  +  +
|## ## ## ## ## ## ##|        |
+  +  +  +  +  +  +  +  +  +  +
|## ## ## ## ## ## ##|        |
+  +  +  +  +  +  +  +  +  +  +
|## ## ## ## ## ## ##|        |
+--+--+--+--+--+--+--+  +  +  +
|                             |
+  +  +  +  +  +  +  +  +  +  +
|                             |
+  +  +  +  +  +  +  +  +  +  +
|                             |
+--+--+--+--+--+--+--+--+--+--+
""",
}


@dataclass(frozen=True)
class MazeMap:
    """Squares, counted row by row from the bottom left, and the walls between them.

    Build one with `read_maze`. ``neighbours[square, side]`` is the square behind its left, right,
    lower or upper side, -1 behind a wall. ``solid`` ones have none, and are nobody's. Places lie in
    ``(0, 0)`` to ``(width, height)``.
    """

    columns: int
    rows: int
    start: int
    neighbours: NDArray[np.int64]
    solid: NDArray[np.bool_]

    @property
    def width(self) -> float:
        """From left to right."""
        return self.columns * SIDE

    @property
    def height(self) -> float:
        """From bottom to top."""
        return self.rows * SIDE

    @cached_property
    def boxes(self) -> NDArray[np.float64]:
        """Where the agent can be in each square: left, right, bottom, top, shape ``(squares, 4)``.

        An open side lies on the border of the square, one with a wall a margin before it.
        """
        row, column = np.divmod(np.arange(self.columns * self.rows), self.columns)
        sides = SIDE * np.stack([column, column + 1, row, row + 1], axis=1)
        inwards = np.array([1, -1, 1, -1]) * SIDE / MARGINS
        return sides + np.where(self.neighbours < 0, inwards, 0.0)

    @cached_property
    def walls(self) -> NDArray[np.float64]:
        """Walls as lines from ``[:, 0]`` to ``[:, 1]``, one square long, shape ``(n, 2, 2)``."""
        found = set()
        for square, side in np.argwhere((self.neighbours < 0) & ~self.solid[:, None]).tolist():
            row, column = divmod(square, self.columns)
            if side in (LEFT, RIGHT):
                at = column + (side == RIGHT)
                found.add(((at, row), (at, row + 1)))
            else:
                at = row + (side == UP)
                found.add(((column, at), (column + 1, at)))
        return SIDE * np.array(sorted(found), np.float64)

    def start_at(self) -> NDArray[np.float64]:
        """The middle of the square of the start."""
        row, column = divmod(self.start, self.columns)
        return SIDE * np.array([column + 0.5, row + 0.5])

    def scaled(self, places: NDArray) -> NDArray[np.float64]:
        """Places as an agent observes them, in [-1, 1]."""
        return 2.0 * np.asarray(places) / [self.width, self.height] - 1.0

    def places(self, observations: NDArray) -> NDArray[np.float64]:
        """Places from what an agent observes, whose first two numbers they are."""
        seen = np.asarray(observations, np.float64)[..., :2]
        return (seen + 1.0) / 2.0 * [self.width, self.height]


def read_maze(name: str) -> MazeMap:
    """A maze by its name, from a text file, or from text that holds a line break.

    Args:
        name: ``"bottleneck"``, ``"u-maze"``, the path of a text file, or the text itself.

    Returns:
        The maze; raises an error of one line that says where the text cannot be read.
    """
    text, where = _text_of(name)
    lines = text.strip("\n").splitlines()
    if not text.strip():
        raise UserError(f"{where} is empty")
    _require_form(lines, where)
    columns, rows = len(lines[0]) // 3, len(lines) // 2
    inside = [line[at + 1 : at + 3] for line in lines[-2::-2] for at in range(0, 3 * columns, 3)]
    solid = np.array([marks == "##" for marks in inside])
    neighbours = np.full((columns * rows, 4), -1, np.int64)
    for number, (row, column) in enumerate(np.ndindex(rows, columns)):
        line, at = 2 * (rows - 1 - row) + 1, 3 * column
        marks = {
            LEFT: lines[line][at],
            RIGHT: lines[line][at + 3],
            DOWN: lines[line + 1][at + 1],
            UP: lines[line - 1][at + 1],
        }
        for side, mark in marks.items():
            up, right = _STEPS[side]
            behind = number + up * columns + right
            if mark == " " and not solid[number] and not solid[behind]:
                neighbours[number, side] = behind
    maze = MazeMap(columns, rows, _start_of(inside, where), neighbours, solid)
    _require_reachable(maze, where)
    return maze


def _start_of(inside: list[str], where: str) -> int:
    starts = [number for number, marks in enumerate(inside) if "S" in marks]
    if len(starts) > 1:
        raise UserError(f"{where} has {len(starts)} starts 'S': leave one")
    if not starts and inside[0] == "##":
        raise UserError(
            f"{where} has no start: the square at the bottom left is solid, mark an 'S'"
        )
    return starts[0] if starts else 0


def _text_of(name: str) -> tuple[str, str]:
    """The text of a map, and what to call it in errors."""
    if not isinstance(name, str):
        raise UserError(f"map must be a name, a path or a text, got {type(name).__name__}")
    if "\n" in name:
        return name, "the map"
    if name in MAPS:
        return MAPS[name], f"map {name}"
    path = Path(name)
    if not name or not path.is_file():
        raise UserError(unknown_name("map", name, MAPS) + ", or the path of a text file")
    try:
        return path.read_text(encoding="utf-8-sig"), f"map {name}"
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read the map {name}: {error}") from None


def _require_form(lines: list[str], where: str) -> None:
    """Raise where the text is not a grid of squares with a wall all around."""
    for number, line in enumerate(lines, 1):
        if len(line) != len(lines[0]):
            raise UserError(
                f"{where} is ragged: line {number} has {len(line)} characters, line 1 has "
                f"{len(lines[0])}"
            )
    across, down = len(lines[0]), len(lines)
    if across < 4 or down < 3:
        raise UserError(
            f"{where} has no square to start in: the smallest is '+--+', '|  |', '+--+'"
        )
    if across % 3 != 1 or down % 2 != 1:
        raise UserError(
            f"{where} has {down} lines of {across} characters: squares take two lines and three "
            "characters each, and one of both closes the last"
        )
    for number, line in enumerate(lines, 1):
        for at in range(0, across, 3):
            _require_marks(where, number, at, line[at : at + 3], across, down)


def _require_marks(where: str, number: int, at: int, marks: str, across: int, down: int) -> None:
    """Raise where a corner and the wall to its right, or a wall and its square, are none."""
    is_corner = number % 2 == 1
    first, rest = marks[0], marks[1:]
    place = f"{where}, line {number}, column {at + 1}"
    if first not in ("+" if is_corner else "| "):
        wanted = "a corner '+'" if is_corner else "a wall '|' or ' '"
        raise UserError(f"{place}: expected {wanted}, got {first!r}")
    if rest and rest not in (("--", "  ") if is_corner else ("  ", "S ", " S", "##")):
        wanted = "a wall '--' or '  '" if is_corner else "a square '  ', 'S ' or '##'"
        raise UserError(f"{where}, line {number}, column {at + 2}: expected {wanted}, got {rest!r}")
    at_side, at_end = at in (0, across - 1), number in (1, down)
    if (at_side and not is_corner and first == " ") or (at_end and rest == "  "):
        raise UserError(f"{place}: the outer wall is open")


def _require_reachable(maze: MazeMap, where: str) -> None:
    seen, ahead = {maze.start}, [maze.start]
    while ahead:
        for square in maze.neighbours[ahead.pop()].tolist():
            if square >= 0 and square not in seen:
                seen.add(square)
                ahead.append(square)
    missing = [n for n in np.flatnonzero(~maze.solid).tolist() if n not in seen]
    if missing:
        lines = [2 * (maze.rows - 1 - n // maze.columns) + 2 for n in missing]
        first = min(zip(lines, (3 * (n % maze.columns) + 2 for n in missing), strict=True))
        raise UserError(
            f"{where} has {len(missing)} squares that cannot be reached from the start, the first "
            f"in line {first[0]}, column {first[1]}: open a wall or fill them with '##'"
        )
