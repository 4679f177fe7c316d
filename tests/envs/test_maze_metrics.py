import doctest

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from irrl.envs import maze_metrics
from irrl.envs.maze_map import read_maze
from irrl.envs.maze_metrics import coverage, largest_coverage, reached
from irrl.envs.maze_plots import plot_paths
from irrl.envs.maze_vector import MazeVector
from irrl.tasks import find_task, make_config


def test_examples_run():
    assert doctest.testmod(maze_metrics) == (0, 4)


def test_buckets_by_hand():
    centres = (np.arange(10) + 0.5) / 5 - 1
    everything = np.stack(np.meshgrid(centres, centres), axis=-1).reshape(-1, 2)
    assert coverage([everything]) == 100
    assert coverage(everything[:, None]) == 100
    assert coverage(everything[:7, None]) == 7
    assert coverage([everything[:5], everything[3:8]]) == 8
    assert coverage([]) == 0
    mask = reached([[(-1.0, 1.0)], [(0.3, -0.5)]])
    assert np.argwhere(mask).tolist() == [[2, 6], [9, 0]]


def test_the_border_belongs_to_the_last_bucket():
    assert coverage([[(1.0, 1.0), (0.99, 0.99)]]) == 1


def test_more_numbers_than_places_are_left_out():
    assert coverage([[(0.0, 0.0, 0.1), (0.0, 0.0, 0.9)]]) == 1


def test_who_stands_at_a_wall_has_not_reached_what_is_behind():
    envs = MazeVector(1, "bottleneck")
    seen = [envs.reset()[0]]
    seen += [envs.step([[0.0, 1.0]])[0] for _ in range(60)]  # up, to the wall at 25
    assert coverage(np.stack(seen, axis=1)) == 5


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ([0.0, 0.0], r"path 1 must have shape \(time, 2\), got \(2,\)"),
        ([[0.0]], r"path 1 must have shape \(time, 2\), got \(1, 1\)"),
        ([[0.0, 1.5]], "path 1 leaves"),
        ([[0.0, np.nan]], "path 1 leaves"),
    ],
)
def test_paths_that_are_none(path, said):
    with pytest.raises(ValueError, match=said):
        coverage([[(0.0, 0.0)], path])


def test_a_picture_of_paths(tmp_path):
    maze = read_maze("u-maze")
    paths = [np.array([(-0.9, -0.9), (0.1 * n, -0.8)]) for n in range(4)]
    figure = plot_paths(maze, paths, codes=[5, 1, 1, 9], title="four")
    assert isinstance(figure, Figure)
    (axes,) = figure.axes
    assert axes.get_title() == "four"
    drawn, walls = (c for c in axes.collections if isinstance(c, LineCollection))
    colours = [tuple(colour) for colour in drawn.get_colors()]
    assert colours[1] == colours[2] and len(set(colours)) == 3
    np.testing.assert_allclose(drawn.get_segments()[2], maze.places(paths[2]))
    assert len(walls.get_segments()) == len(maze.walls)
    assert len(axes.patches) == 28
    figure.savefig(tmp_path / "paths.png")


def test_a_picture_of_nothing_and_of_too_few_codes():
    plot_paths(read_maze("bottleneck"), [])
    with pytest.raises(ValueError, match="2 paths need as many codes, got 1"):
        plot_paths(read_maze("bottleneck"), np.zeros((2, 5, 2)), codes=[1])


@pytest.mark.parametrize("name", ["bottleneck", "u-maze"])
def test_no_more_buckets_than_there_are(name):
    envs = MazeVector(2_000, map=name, random_start=True)
    places, _ = envs.reset(seed=0)
    rng, seen = np.random.default_rng(0), [places]
    for _ in range(100):
        seen.append(envs.step(rng.uniform(-1, 1, (2_000, 2)).astype(np.float32))[0])
    found = coverage(np.stack(seen, 1))
    assert 0 < found <= largest_coverage(read_maze(name))


def test_a_maze_with_other_squares_than_buckets():
    assert largest_coverage(read_maze("+--+--+\n|  |##|\n+  +--+\n|S    |\n+--+--+")) == 75


def test_intervals_of_coverage_stay_in_the_maze():
    task = find_task("gym")
    assert task.limits(make_config("gym", "u-maze"))["coverage"] == 72.0
    assert task.limits(make_config("gym", "maze"))["coverage"] == 100.0
