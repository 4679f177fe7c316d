import numpy as np
import pytest

from irrl.cli.main import main
from irrl.errors import UserError
from irrl.tasks import create_run, make_config, open_run
from irrl.tasks.skills.kernels import final_occupancy, greedy_moves
from irrl.tasks.skills.map import read_map
from irrl.tasks.skills.play import greedy_walks, plot_sheet
from irrl.tasks.skills.tables import bonus_weights, restored_tables


def test_walks_are_those_of_the_greedy_policy(smoke_run):
    run = open_run(smoke_run)
    config, room_map = run.config, read_map(run.config.map)
    walks = greedy_walks(run)
    assert walks.shape == (config.codes, config.horizon + 1)
    assert (walks[:, 0] == room_map.start).all()
    places = np.array(room_map.cells)[walks]
    assert np.abs(np.diff(places, axis=1)).sum(axis=-1).max() == 1  # one cell at a time
    tables = restored_tables(config, room_map, run.last_checkpoint().arrays)
    greedy = greedy_moves(tables.q, bonus_weights(config))
    start = np.uint32(room_map.start)
    ends = final_occupancy(greedy, room_map.next_cell, start, config.horizon, 0.0)
    assert (ends[np.arange(config.codes), walks[:, -1]] == 1.0).all()


def test_the_sheet_says_how_many_cells_are_reached(smoke_run):
    run = open_run(smoke_run)
    walks = greedy_walks(run)
    (panel,) = plot_sheet([run], [walks], 0).axes
    ends = len(set(walks[:, -1]))
    assert f"{len(walks)} codes end in {ends} of 24 cells" in panel.get_title()
    assert len(panel.lines) == len(walks)


def test_played_from_the_command_line(smoke_run, tmp_path, capsys):
    out = tmp_path / "play.png"
    assert main(["play", str(smoke_run), "--seed", "3", "-o", str(out)]) == 0
    assert capsys.readouterr().out.splitlines() == ["seed 3", str(out), str(tmp_path / "play.gif")]
    assert out.read_bytes()[:4] == b"\x89PNG" and (tmp_path / "play.gif").read_bytes()[:3] == b"GIF"


def test_a_run_that_has_not_begun(tmp_path):
    run = create_run(tmp_path / "run", make_config("skills", "smoke"))
    with pytest.raises(UserError, match="has no checkpoint yet"):
        greedy_walks(run)
