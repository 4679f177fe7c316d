import numpy as np
import pytest

from irrl.envs.maze_map import DOWN, LEFT, MAPS, RIGHT, UP, read_maze
from irrl.errors import UserError

SMALL = "+--+--+--+\n|     |##|\n+  +--+  +\n| S      |\n+--+--+--+\n"


def test_squares_and_walls_of_a_small_one():
    maze = read_maze(SMALL)
    assert (maze.columns, maze.rows, maze.width, maze.height) == (3, 2, 15.0, 10.0)
    assert maze.neighbours.tolist() == [
        [-1, 1, -1, 3],
        [0, 2, -1, -1],
        [1, -1, -1, -1],
        [-1, 4, 0, -1],
        [3, -1, -1, -1],
        [-1, -1, -1, -1],
    ]
    assert maze.solid.tolist() == [False] * 5 + [True]
    margin = 5 / 128
    assert maze.boxes[0].tolist() == [margin, 5.0, margin, 5.0]
    assert maze.boxes[4].tolist() == [5.0, 10.0 - margin, 5.0 + margin, 10.0 - margin]
    assert maze.start == 0 and maze.start_at().tolist() == [2.5, 2.5]


def test_walls_as_lines():
    walls = {tuple(map(tuple, wall)) for wall in read_maze(SMALL).walls.tolist()}
    inner = {((5.0, 5.0), (10.0, 5.0)), ((10.0, 5.0), (10.0, 10.0)), ((10.0, 5.0), (15.0, 5.0))}
    outer = {((5.0 * n, 0.0), (5.0 * n + 5, 0.0)) for n in range(3)}
    outer |= {((5.0 * n, 10.0), (5.0 * n + 5, 10.0)) for n in range(2)}
    outer |= {((0.0, 0.0), (0.0, 5.0)), ((0.0, 5.0), (0.0, 10.0)), ((15.0, 0.0), (15.0, 5.0))}
    assert walls == inner | outer


@pytest.mark.parametrize("name", MAPS)
def test_the_mazes_that_are_shipped(name):
    maze = read_maze(name)
    assert (maze.columns, maze.rows, maze.width, maze.height) == (10, 10, 50.0, 50.0)
    assert maze.start == 0
    for side, back in ((LEFT, RIGHT), (RIGHT, LEFT), (DOWN, UP), (UP, DOWN)):
        here = np.flatnonzero(maze.neighbours[:, side] >= 0)
        np.testing.assert_array_equal(maze.neighbours[maze.neighbours[here, side], back], here)


def test_how_far_the_shipped_ones_go():
    bottleneck, u_maze = read_maze("bottleneck"), read_maze("u-maze")
    assert bottleneck.solid.sum() == 0 and u_maze.solid.sum() == 28
    # Out of the first room leads one square, the second from the bottom.
    assert [r for r in range(5) if bottleneck.neighbours[10 * r + 4, RIGHT] >= 0] == [1]
    assert all(bottleneck.neighbours[40 + c, UP] < 0 for c in range(5))


def test_observations_and_places():
    maze = read_maze(SMALL)
    places = np.array([[0.0, 0.0], [7.5, 5.0], [15.0, 10.0]])
    np.testing.assert_allclose(maze.scaled(places), [[-1, -1], [0, 0], [1, 1]])
    with_time = np.concatenate([maze.scaled(places), np.ones((3, 1))], axis=1)
    np.testing.assert_allclose(maze.places(with_time), places)


def test_a_start_elsewhere():
    assert read_maze(SMALL.replace(" S", "  ")).start == 0
    assert read_maze("+--+--+\n|    S|\n+  +  +\n|     |\n+--+--+").start == 3


def test_a_file(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_bytes(b"\xef\xbb\xbf" + SMALL.replace("\n", "\r\n").encode())
    np.testing.assert_array_equal(read_maze(str(path)).neighbours, read_maze(SMALL).neighbours)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("+--+\n|  |\n+--\n", "the map is ragged: line 3 has 3 characters, line 1 has 4"),
        ("\n\n", "the map is empty"),
        (" \n\n", "the map is empty"),
        ("+\n+\n", "the map has no square to start in"),
        ("+--+--+\n+--+--+\n", "the map has no square to start in"),
        ("+--+-\n|   \n".replace("   ", "    ") + "+--+-\n", "has 3 lines of 5 characters"),
        ("+--+\n|  |\n|  |\n+--+\n", "has 4 lines of 4 characters"),
        ("+--+\n|##|\n+--+\n", "has no start: the square at the bottom left is solid"),
        ("+--+--+\n|S  S |\n+--+--+\n", "has 2 starts 'S'"),
        ("+--+--+\n|  |  |\n+--+--+\n", "1 squares that cannot be reached .* in line 2, column 5"),
        ("+--+\n|  |\n+--+\n|  |\n+--+\n", "1 squares that cannot be .* line 2, column 2"),
        ("+--+\n|x |\n+--+\n", "line 2, column 2: expected a square .* got 'x '"),
        ("+--+--+\n|  #  |\n+--+--+\n", "line 2, column 4: expected a wall '|' or ' ', got '#'"),
        ("+--+--+\n|     |\n+- +  +\n|     |\n+--+--+\n", "line 3, column 2: expected a wall '--'"),
        ("+--+--+\n|     |\n+  x  +\n|     |\n+--+--+\n", "line 3, column 4: expected a corner"),
        ("+--+--+\n|      \n+--+--+\n", "line 2, column 7: the outer wall is open"),
        ("+--+  +\n|     |\n+--+--+\n", "line 1, column 4: the outer wall is open"),
        ("+--+--+\n|     |\n+  +--+\n", "line 3, column 1: the outer wall is open"),
    ],
)  # fmt: skip
def test_text_that_is_no_maze(text, said):
    with pytest.raises(UserError, match=said.replace("|", r"\|")) as raised:
        read_maze(text)
    assert "\n" not in str(raised.value)


def test_files_that_are_no_mazes(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("")
    with pytest.raises(UserError, match=r"map .*mine.txt is empty"):
        read_maze(str(path))
    path.write_text("+--+\n|  |\n+--\n")
    with pytest.raises(UserError, match=r"map .*mine.txt is ragged: line 3"):
        read_maze(str(path))
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="cannot read the map"):
        read_maze(str(path))
    for name in ("bottle-neck", str(tmp_path), "", str(tmp_path / "none.txt"), "a\0b"):
        with pytest.raises(UserError, match="unknown map") as raised:
            read_maze(name)
        assert "Known: bottleneck, u-maze, or the path of a text file" in str(raised.value)
    with pytest.raises(UserError, match="map must be a name, a path or a text, got NoneType"):
        read_maze(None)
