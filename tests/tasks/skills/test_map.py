import numpy as np
import pytest

from irrl.tasks import make_config
from irrl.tasks.skills.ceiling import ceiling, most_skills
from irrl.tasks.skills.map import ACTIONS, map_text, read_map


@pytest.mark.parametrize(
    ("name", "cells", "horizon", "reachable"), [("large", 104, 20, 104), ("small", 24, 8, 23)]
)
def test_known_maps(name, cells, horizon, reachable):
    room_map = read_map(name)
    assert len(room_map.cells) == cells
    assert room_map.cells[room_map.start] == (1, 1)
    assert np.count_nonzero(room_map.distances <= horizon) == reachable


def test_moves_on_an_asymmetric_map():
    """Rows and columns must not be swapped: this map is not its own transpose."""
    room_map = read_map("S..\n#.#\n")
    go = {
        (cell, action): int(room_map.next_cell[i * 5 + a])
        for i, cell in enumerate(room_map.cells)
        for a, action in enumerate(ACTIONS)
    }
    number = {cell: i for i, cell in enumerate(room_map.cells)}
    assert room_map.cells == ((0, 0), (0, 1), (0, 2), (1, 1))
    assert go[(0, 0), "right"] == number[0, 1]
    assert go[(0, 1), "down"] == number[1, 1]
    assert go[(1, 1), "up"] == number[0, 1]
    assert go[(0, 2), "left"] == number[0, 1]
    for blocked in [((0, 0), "up"), ((0, 0), "left"), ((0, 0), "down"), ((1, 1), "left")]:
        assert go[blocked] == number[blocked[0]]
    assert all(go[cell, "noop"] == number[cell] for cell in room_map.cells)
    assert room_map.distances.tolist() == [0, 1, 2, 2]


def test_the_start_can_be_marked():
    assert read_map("...\n.S.\n").start == 4


def test_a_grid_has_values_in_their_cells():
    grid = read_map("S.#\n#..\n").to_grid(np.array([1.0, 2.0, 3.0, 4.0]))
    np.testing.assert_array_equal(grid, [[1, 2, np.nan], [np.nan, 3, 4]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("###\n###\n", "no free cell"),
        ("...\n..\n", "ragged: line 2 has 2 characters"),
        (".#.\n", "cannot be reached from the start, the first in line 1, column 3"),
        ("S.S\n", "more than one start"),
        ("..x\n", "characters other than"),
        ("\n", "no free cell"),
    ],
)
def test_bad_maps_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        read_map(text)


def test_maps_from_files(tmp_path):
    path = tmp_path / "corridor.txt"
    path.write_text(".....\n")
    assert len(read_map(map_text(str(path))).cells) == 5
    with pytest.raises(ValueError, match="Did you mean 'large'"):
        map_text("larg")
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="cannot read the map"):
        map_text(str(binary))


def test_ceilings_are_those_of_the_best_assignment():
    assert most_skills(read_map("large"), 128, 20) == pytest.approx(2 ** (7 - 50 / 128))
    assert most_skills(read_map("small"), 24, 8) == pytest.approx(24 / 2 ** (4 / 24))
    assert most_skills(read_map("S\n"), 4, 3) == 1.0
    assert most_skills(read_map("S.......\n"), 4, 7) == 4.0
    # with a single other cell it is better to leave some codes at the start
    assert most_skills(read_map("S.\n"), 4, 3) == pytest.approx(2**0.5)


def test_the_ceiling_of_a_configuration_is_that_of_its_map_codes_and_horizon():
    assert ceiling(make_config("skills", "fast")) == pytest.approx(97.6, abs=0.05)
    assert ceiling(make_config("skills", "small-map")) == pytest.approx(21.4, abs=0.05)
    assert ceiling(make_config("skills", "small-map", horizon=1)) < 4
