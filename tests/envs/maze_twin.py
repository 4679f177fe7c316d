"""A slow maze of its own: walls are rectangles, and steps are fractions, never rounded.

A wall between two squares is a rectangle as long as a square and two margins thick; walls in a line
are one. An agent is a point that never enters the inside of a rectangle.
"""

from fractions import Fraction

import numpy as np

SIDE, MARGIN = Fraction(5), Fraction(5, 128)


class Walls:
    """Random walls: ``upright[r, c]`` to the left of square (r, c), ``level[r, c]`` below it."""

    def __init__(self, seed, rows, columns, share, solids=0.0):
        rng = np.random.default_rng(seed)
        self.rows, self.columns = rows, columns
        self.upright = rng.random((rows, columns + 1)) < share
        self.level = rng.random((rows + 1, columns)) < share
        self.upright[:, [0, -1]] = self.level[[0, -1]] = True
        self.solid = rng.random((rows, columns)) < solids
        self.start = rng.integers(rows), rng.integers(columns)
        self.solid[self.start] = False
        self._fill(self._reached())

    def _reached(self):
        seen, ahead = {self.start}, [self.start]
        while ahead:
            r, c = ahead.pop()
            ways = {(r, c - 1): self.upright[r, c], (r - 1, c): self.level[r, c]}
            ways |= {(r, c + 1): self.upright[r, c + 1], (r + 1, c): self.level[r + 1, c]}
            for way, blocked in ways.items():
                if not blocked and not self.solid[way] and way not in seen:
                    seen.add(way)
                    ahead.append(way)
        return seen

    def _fill(self, reached):
        for r, c in np.ndindex(self.rows, self.columns):
            self.solid[r, c] = (r, c) not in reached

    def text(self):
        lines = []
        for r in range(self.rows - 1, -1, -1):
            lines.append(self._level(r + 1))
            line = ""
            for c in range(self.columns):
                inside = "##" if self.solid[r, c] else "S " if (r, c) == self.start else "  "
                line += "| "[not self.upright[r, c]] + inside
            lines.append(line + "|")
        return "\n".join([*lines, self._level(0)]) + "\n"

    def _level(self, r):
        return "".join("+" + ("--" if wall else "  ") for wall in self.level[r]) + "+"

    def rectangles(self):
        """``(left, right, bottom, top, is_upright)`` of all walls, solid squares' too."""
        upright, level = self.upright.copy(), self.level.copy()
        for r, c in np.argwhere(self.solid):
            upright[r, c] = upright[r, c + 1] = level[r, c] = level[r + 1, c] = True
        found = []
        for c in range(self.columns + 1):
            for first, last in runs(upright[:, c]):
                x = c * SIDE
                found.append((x - MARGIN, x + MARGIN, first * SIDE, last * SIDE, True))
        for r in range(self.rows + 1):
            for first, last in runs(level[r]):
                y = r * SIDE
                found.append((first * SIDE, last * SIDE, y - MARGIN, y + MARGIN, False))
        return found


def runs(marks):
    """Beginnings and ends of what is true in a row."""
    edges = np.flatnonzero(np.diff([False, *marks.tolist(), False]))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def is_inside(rectangles, x, y):
    return any(l < x < r and b < y < t for l, r, b, t, _ in rectangles)  # noqa: E741


def step(rectangles, place, shift):
    """Where an agent comes to: from wall to wall, giving up the direction that each blocks."""
    x, y = (Fraction(float(v)) for v in place)
    right, up = (Fraction(float(v)) for v in shift)
    while True:
        hits = [hit for each in rectangles if (hit := entry(each, x, y, right, up)) is not None]
        if not hits:
            return x + right, y + up
        when = min(share for share, _ in hits)
        blocked = {axis for share, axis in hits if share == when}
        x, y = x + when * right, y + when * up
        right = Fraction(0) if "x" in blocked else right * (1 - when)
        up = Fraction(0) if "y" in blocked else up * (1 - when)


def entry(rectangle, x, y, right, up):
    """When the inside of a rectangle would be entered, as a share of the way; what it blocks."""
    left, end, bottom, top, is_upright = rectangle
    from_x, until_x = slab(left, end, x, right)
    from_y, until_y = slab(bottom, top, y, up)
    begins, ends = max(from_x, from_y), min(until_x, until_y)
    if begins >= ends or ends <= 0 or begins >= 1:
        return None
    assert begins >= 0, "inside a wall"
    if from_x == from_y:
        return begins, "x" if is_upright else "y"
    return begins, "x" if from_x > from_y else "y"


def slab(low, high, at, shift):
    """Between which shares of the way a coordinate lies strictly between two."""
    if shift == 0:
        return (float("-inf"), float("inf")) if low < at < high else (float("inf"), float("-inf"))
    one, two = (low - at) / shift, (high - at) / shift
    return min(one, two), max(one, two)
