"""The compiled step of mazes, for any number of agents.

An agent is in a square, and in the box that its walls leave it (`MazeMap.boxes`). A step goes
straight to where it is meant to end. Where it leaves the box, the agent enters the square behind,
if there is no wall; else it loses what is left of the step across the wall, and slides along it
with the rest.

Coordinates where an agent stops are those of a box, bit for bit, and what is compared is what is
stored: nothing is rounded past a wall, however long the step. A corner that is only touched does
not stop an agent; one that is run into straight counts as the long side of its wall.

An *axis* is 0 from left to right and 1 upwards; ``2 * axis + forwards`` is the number of a side, in
boxes and in neighbours alike.
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
            right, up = np.float64(0.0), np.float64(0.0)
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

    Each turn enters another square on the way or gives up one of the two directions.
    """
    while True:
        leaves_x = not boxes[square, 0] <= to_x <= boxes[square, 1]
        leaves_y = not boxes[square, 2] <= to_y <= boxes[square, 3]
        if not leaves_x and not leaves_y:
            return to_x, to_y, square
        right, up = int(to_x > x), int(to_y > y)
        side_x, side_y = boxes[square, right], boxes[square, 2 + up]
        # The shares of the way to both sides, times the same number.
        until_x = abs(side_x - x) * abs(to_y - y) if leaves_x else np.inf
        until_y = abs(side_y - y) * abs(to_x - x) if leaves_y else np.inf
        at_x, at_y = side_x, side_y
        if until_x < until_y:
            at_y = y + (side_x - x) * (to_y - y) / (to_x - x)
            at_y = min(max(at_y, boxes[square, 2]), boxes[square, 3])
        elif until_y < until_x:
            at_x = x + (side_y - y) * (to_x - x) / (to_y - y)
            at_x = min(max(at_x, boxes[square, 0]), boxes[square, 1])
        behind = -1
        if until_x <= until_y:
            behind = enter(square, 0, right, at_y, boxes, neighbours)
            if behind < 0 and to_y == y:
                behind = step_aside(square, 0, right, at_x, at_y, boxes, neighbours)
        if behind < 0 and until_y <= until_x:
            behind = enter(square, 1, up, at_x, boxes, neighbours)
            if behind < 0 and to_x == x:
                behind = step_aside(square, 1, up, at_y, at_x, boxes, neighbours)
        x, y = at_x, at_y
        if behind >= 0:
            square = behind
        elif until_x <= until_y:
            to_x = x
        else:
            to_y = y


@njit(cache=True)
def enter(square, axis, forwards, across, boxes, neighbours):
    """The square behind a side, -1 if a wall is in the way.

    ``across`` is the agent's place on the other axis: a wall that begins behind the side has an end
    there, a margin wide to each side of it.
    """
    behind, other = neighbours[square, 2 * axis + forwards], 2 - 2 * axis
    if behind >= 0 and boxes[behind, other] <= across <= boxes[behind, other + 1]:
        return behind
    return -1


@njit(cache=True)
def step_aside(square, axis, forwards, at, across, boxes, neighbours):
    """For an agent that goes exactly along the line between two squares, the other of them.

    It has to be one in which the agent, at ``at`` on its axis, gets any further; -1 if it is not.
    """
    for side in range(2 - 2 * axis, 4 - 2 * axis):
        beside = neighbours[square, side]
        if beside < 0 or across != boxes[square, side]:
            continue
        low, high = boxes[beside, 2 * axis], boxes[beside, 2 * axis + 1]
        if low <= at <= high:
            further = at < high if forwards else at > low
            if further or enter(beside, axis, forwards, across, boxes, neighbours) >= 0:
                return beside
    return -1
