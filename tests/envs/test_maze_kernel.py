"""The compiled step of mazes, against a twin that knows rectangles and fractions only."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irrl.envs.maze_map import SIDE, read_maze
from irrl.envs.maze_vector import MazeVector
from tests.envs import maze_twin

MARGIN, COUNT = SIDE / 128, 16
walls = st.builds(
    maze_twin.Walls,
    seed=st.integers(0, 2**32),
    rows=st.integers(1, 4),
    columns=st.integers(1, 4),
    share=st.sampled_from([0.1, 0.3, 0.5]),
    solids=st.sampled_from([0.0, 0.2]),
)


def placed(maze, seed, count, at_corners):
    """A vector environment whose agents are anywhere in free squares, or at corners of them."""
    rng = np.random.default_rng(seed)
    env = MazeVector(count, maze)
    env.reset(seed=0)
    agents = env.agents
    agents.squares[:] = rng.choice(np.flatnonzero(~agents.maze.solid), count)
    boxes = agents.maze.boxes[agents.squares]
    low, high = boxes[:, ::2], boxes[:, 1::2]
    places = rng.uniform(low, high)
    if at_corners:  # on lines between squares, on faces of walls, a step before them
        offsets = rng.choice([0.0, MARGIN, 0.5, 0.5 + MARGIN, 1.0, 1.0 + MARGIN], (count, 2))
        corners = SIDE * np.rint(places / SIDE)
        places = np.clip(corners + rng.choice([-1, 1], (count, 2)) * offsets, low, high)
    agents.places[:] = places
    return env


def shifts(seed, steps, count, grid):
    rng = np.random.default_rng(seed)
    actions = rng.uniform(-1.0, 1.0, (steps, count, 2))
    if grid:
        actions = np.clip(np.rint(actions * 2) / 2, -1, 1)
    return actions.astype(np.float32)


@settings(max_examples=60, deadline=None)
@given(
    walls,
    st.integers(0, 2**32),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0.5, 1.0, 1.0, 4.0, 5.0]),
)
def test_the_kernel_is_its_slow_twin(walls, seed, at_corners, coarse, step):
    env = placed(walls.text(), seed, COUNT, at_corners)
    agents = env.agents
    agents.step = min(step, agents.maze.width)
    rectangles = walls.rectangles()
    for actions in shifts(seed, 3, COUNT, coarse):
        before = agents.places.copy()
        seen = env.step(actions)[0]
        for n in range(COUNT):
            wanted = maze_twin.step(rectangles, before[n], agents.step * actions[n].astype(float))
            np.testing.assert_allclose(agents.places[n], [float(v) for v in wanted], atol=1e-12)
            assert not maze_twin.is_inside(rectangles, *agents.places[n])
        np.testing.assert_allclose(seen, agents.maze.scaled(agents.places), atol=1e-6)


@settings(max_examples=25, deadline=None)
@given(walls, st.integers(0, 2**32), st.booleans(), st.sampled_from([1.0, 3.0, 5.0]))
def test_nobody_is_ever_in_or_beyond_a_wall(walls, seed, coarse, step):
    env = placed(walls.text(), seed, 32, False)
    agents, maze = env.agents, env.maze_map
    agents.step = step
    for actions in shifts(seed, 100, 32, coarse):
        before = agents.squares.copy()
        env.step(actions)
        boxes = maze.boxes[agents.squares]
        assert (boxes[:, ::2] <= agents.places).all() and (agents.places <= boxes[:, 1::2]).all()
        assert not maze.solid[agents.squares].any()
        for old, new in zip(before, agents.squares, strict=True):
            assert joined(maze, old, new, 3)


def joined(maze, old, new, most):
    """Whether a square can be reached from another through so many open sides."""
    if old == new:
        return True
    ways = [n for n in maze.neighbours[old] if n >= 0]
    return most > 0 and any(joined(maze, way, new, most - 1) for way in ways)


# --- by hand ---

POST = "+--+--+\n|  |  |\n+  +  +\n|     |\n+--+--+\n"  # one wall, between the upper squares
ROOM = "+--+--+\n|     |\n+  +  +\n|     |\n+--+--+\n"
SHELF = "+--+--+\n|     |\n+  +--+\n|     |\n+--+--+\n"  # one wall, above the lower right square


def after(text, place, *actions, step=5.0):
    env = MazeVector(1, text, step=step)
    env.reset()
    agents = env.agents
    agents.places[0] = place
    boxes = agents.maze.boxes
    within = (boxes[:, ::2] <= place).all(axis=1) & (np.array(place) <= boxes[:, 1::2]).all(axis=1)
    agents.squares[0] = np.flatnonzero(within)[0]
    for action in actions:
        env.step([action])
    return agents.places[0].tolist()


@pytest.mark.parametrize(
    ("text", "place", "action", "wanted"),
    [
        (POST, (2.5, 7.5), (1, 0), (5 - MARGIN, 7.5)),  # straight on: stopped
        (POST, (2.5, 7.0), (1, 0.25), (5 - MARGIN, 8.25)),  # askew: the rest of the way along it
        (POST, (2.5, 7.5), (1, -0.5), (5 - MARGIN, 5.0)),  # to its end, and no further to the side
        (POST, (2.5, 7.0), (1, -1), (7.5, 2.0)),  # below its end
        (POST, (4.98, 2.5), (0, 1), (4.98, 5.0)),  # against its end
        (POST, (4.98, 5.0), (0.5, 1), (7.48, 5.0)),  # along its end
        (POST, (2.5, 2.5), (1, 1), (7.5, 5.0)),  # into the middle of its end
        (POST, (4.0, 5.0), (0.5, 0), (6.5, 5.0)),  # touching its end
        (POST, (2.5 - MARGIN, 2.5), (1, 1), (5 - MARGIN, 7.5)),  # into its corner: along its side
        (SHELF, (2.5, 2.5), (1, 1), (5.0, 7.5)),  # into the middle of its end
        (SHELF, (2.5, 2.5 - MARGIN), (1, 1), (7.5, 5 - MARGIN)),  # into its corner
        (ROOM, (2.5, 2.5), (1, 1), (7.5, 7.5)),  # a corner of squares that is not one of walls
        (ROOM, (9.0, 9.0), (1, 1), (10 - MARGIN, 10 - MARGIN)),  # into a corner
        (ROOM, (9.0, 9.0), (0, 0), (9.0, 9.0)),
    ],
)  # fmt: skip
def test_walls_and_their_ends(text, place, action, wanted):
    np.testing.assert_allclose(after(text, place, action), wanted, atol=1e-12)


def test_who_goes_along_a_line_between_squares_is_in_both():
    assert after(POST, (4.0, 7.5), (0, -0.5), (0.5, 0)) == [6.5, 5.0]  # below the wall's end
    assert after(POST, (4.0, 2.5), (0, 0.5), (0.5, 0)) == [6.5, 5.0]
    assert after(SHELF, (7.5, 4.0), (-0.5, 0), (0, 0.5)) == [5.0, 6.5]
    assert after(SHELF, (2.5, 4.0), (0.5, 0), (0, 0.5)) == [5.0, 6.5]


def test_a_corner_that_is_only_touched_does_not_stop():
    below = "+--+--+\n|     |\n+  +  +\n|  |  |\n+--+--+\n"
    assert after(below, (4 - MARGIN, 4.0), (0.5, 0.5), step=4.0) == [6 - MARGIN, 6.0]
    assert after(below, (6 + MARGIN, 4.0), (-0.5, 0.5), step=4.0) == [4 + MARGIN, 6.0]
    beside = "+--+--+\n|     |\n+--+  +\n|     |\n+--+--+\n"
    assert after(beside, (4.0, 4 - MARGIN), (0.5, 0.5), step=4.0) == [6.0, 6 - MARGIN]


def test_where_an_agent_stops_is_exact():
    at = after(POST, (2.3, 7.1), (1, 0.3))
    assert at[0] == 5 - MARGIN
    assert after(POST, at, (1, 0), (1, 0))[0] == 5 - MARGIN
    assert after(POST, (5 - MARGIN, 5.0), (0.5, -0.1)) == [7.5 - MARGIN, 5.0 - 5 * np.float32(0.1)]


def test_both_sides_of_a_wall_are_told_apart():
    one, two = after(POST, (2.5, 7.5), (1, 0)), after(POST, (7.5, 7.5), (-1, 0))
    assert two[0] - one[0] == 2 * MARGIN
    maze = read_maze(POST)
    assert (np.float32(maze.scaled(one)) != np.float32(maze.scaled(two))).any()


def test_no_step_is_long_enough_for_a_wall():
    grid = "\n".join(["+--+--+--+--+", "|  |     |  |", "+--+--+--+--+"]) + "\n"
    with pytest.raises(ValueError, match="cannot be reached"):
        read_maze(grid)
    text = "+--+--+--+--+\n|  |     |  |\n+  +  +  +  +\n|           |\n+--+--+--+--+\n"
    assert after(text, (2.5, 7.5), (1, 0), step=20.0) == [5 - MARGIN, 7.5]
    assert after(text, (2.5, 2.5), (1, 0), step=20.0) == [20 - MARGIN, 2.5]
