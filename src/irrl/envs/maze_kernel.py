"""The compiled step of mazes, for any number of agents.

An agent is in a square, and in the box that its walls leave it (`MazeMap.boxes`). A step goes
straight to where it is meant to end. Where it leaves the box, the agent enters the square behind, if
there is no wall; else it loses what is left of the step across the wall and slides along it with the
rest.

Coordinates where an agent stops are those of the box, bit for bit, and what is compared is what is
stored: nothing is rounded past a wall, at whatever step. At a corner, where both sides are reached
at once, the left or right one counts first.
"""

import numpy as np
from numba import njit


@njit(cache=True)
def advance(places, squares, actions, step, boxes, neighbours, scale, seen):
    """Move all agents in place, and write what they observe.

    Args:
        places: ``(n, 2)`` float64, changed.
        squares: ``(n,)`` int64, of the agents, changed.
        actions: ``(n, 2)``, limited to [-1, 1] here.
        step: how far an action of 1 goes.
        boxes: ``(squares, 4)`` of the maze.
        neighbours: ``(squares, 4)`` of the maze.
        scale: two factors, from places to observations.
        seen: ``(n, 2 or more)`` float32, of which the first two columns are written.

    Returns:
        The number of an agent whose action is not a number, and which has not moved; -1 if none.
    """
    lost = -1
    for n in range(len(places)):
        right, up = np.float64(actions[n, 0]), np.float64(actions[n, 1])
        if np.isnan(right) or np.isnan(up):
            lost = n
            right, up = 0.0, 0.0
        x = places[n, 0] + step * min(max(right, -1.0), 1.0)
        y = places[n, 1] + step * min(max(up, -1.0), 1.0)
        square = squares[n]
        if not (
            boxes[square, 0] <= x <= boxes[square, 1] and boxes[square, 2] <= y <= boxes[square, 3]
        ):
            x, y, square = slide(places[n, 0], places[n, 1], x, y, square, boxes, neighbours)
            squares[n] = square
        places[n, 0], places[n, 1] = x, y
        seen[n, 0] = x * scale[0] - 1.0
        seen[n, 1] = y * scale[1] - 1.0
    return lost


@njit(cache=True)
def slide(x, y, to_x, to_y, square, boxes, neighbours):
    """Where a step from (x, y) to (to_x, to_y) ends, and in which square.

    Each turn either enters the next square on the way or gives up one of the two directions.
    """
    while True:
        left, right = boxes[square, 0], boxes[square, 1]
        bottom, top = boxes[square, 2], boxes[square, 3]
        leaves_x, leaves_y = not left <= to_x <= right, not bottom <= to_y <= top
        if not leaves_x and not leaves_y:
            return to_x, to_y, square
        side_x = right if to_x > x else left
        side_y = top if to_y > y else bottom
        before_x = abs(side_x - x) * abs(to_y - y)  # the shares of the way, over one denominator
        before_y = abs(side_y - y) * abs(to_x - x)
        if leaves_x and (not leaves_y or before_x <= before_y):
            y = min(max(y + (side_x - x) * (to_y - y) / (to_x - x), bottom), top)
            x = side_x
            behind = neighbours[square, 1 if to_x > x else 0]
            if behind >= 0 and boxes[behind, 2] <= y <= boxes[behind, 3]:
                square = behind
            else:
                to_x = x
        else:
            x = min(max(x + (side_y - y) * (to_x - x) / (to_y - y), left), right)
            y = side_y
            behind = neighbours[square, 3 if to_y > y else 2]
            if behind >= 0 and boxes[behind, 0] <= x <= boxes[behind, 1]:
                square = behind
            else:
                to_y = y
