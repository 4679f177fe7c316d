import shutil

import pytest

from irrl.analysis.comparison_plots import plot_comparison, save_comparison_figures
from irrl.errors import UserError
from irrl.tasks import open_run
from irrl.tasks.skills import figures


def maps_of(figure):
    return [axes for axes in figure.axes if axes.images]


@pytest.fixture
def run_without_checkpoint(smoke_run, tmp_path):
    folder = shutil.copytree(smoke_run, tmp_path / "run")
    shutil.rmtree(folder / "checkpoints")
    return open_run(folder)


def test_the_comparison_has_a_curve_and_the_ceiling(smoke_run):
    (axes,) = plot_comparison([open_run(smoke_run)]).axes
    labels = [line.get_label() for line in axes.lines]
    assert any(label.startswith("clipped-linear") for label in labels)
    assert "ceiling 21.4" in [text.get_text() for text in axes.texts]
    (axes,) = plot_comparison([open_run(smoke_run)], "cells_reached").axes
    assert axes.get_ylabel() == "cells reached" and not axes.texts


def test_each_metric_and_the_maps_are_figures_of_their_own(smoke_run, tmp_path):
    found = save_comparison_figures([open_run(smoke_run)], tmp_path / "all.png")
    names = ["all.png", "all-cells-reached.png", "all-where-skills-end.png"]
    assert [path.name for path in found] == names
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)


def test_maps_go_from_early_to_late(smoke_run):
    figure = figures.occupancy_figure([open_run(smoke_run)])
    titles = [axes.get_title() for axes in maps_of(figure)]
    stages = ["at the start", "after 1k", "after 2k"]
    assert titles == [f"clipped-linear\n{stage}" for stage in stages]


def test_maps_show_the_occupancy_on_the_grid(smoke_run):
    run = open_run(smoke_run)
    steps, grids = zip(*figures.stages(run), strict=True)
    assert steps == (0, 1000, 2000)
    assert grids[-1].shape == (8, 7)
    at_end = grids[-1][~(grids[-1] != grids[-1])]  # all but the walls, which are NaN
    assert at_end.tolist() == run.summary()["occupancy"]


def test_a_run_that_has_no_checkpoint_yet_is_drawn_without_maps(
    run_without_checkpoint, tmp_path, capsys
):
    found = save_comparison_figures([run_without_checkpoint], tmp_path / "all.png")
    assert [path.name for path in found] == ["all.png", "all-cells-reached.png"]
    assert "left out" in capsys.readouterr().err
    with pytest.raises(UserError, match="no checkpoint to plot"):
        figures.occupancy_figure([run_without_checkpoint])


def test_the_occupancy_figure_has_a_row_for_each_reward(smoke_run):
    other = open_run(smoke_run)
    other.settings = {**other.settings, "reward": "linear"}
    figure = figures.occupancy_figure([open_run(smoke_run), other], 7)
    titles = [axes.get_title().split("\n")[0] for axes in maps_of(figure)]
    assert titles == ["clipped-linear"] * 3 + ["linear"] * 3


def test_runs_that_do_not_belong_together_are_refused(smoke_run):
    run = open_run(smoke_run)
    run.settings = {**run.settings, "seed": 1, "epsilon": 0.5}
    with pytest.raises(UserError, match="differ in epsilon"):
        plot_comparison([open_run(smoke_run), run])
    for changed in ({"codes": 8}, {"map": "S...\n"}):
        run.settings = {**open_run(smoke_run).settings, "reward": "linear", **changed}
        with pytest.raises(UserError, match=f"different {next(iter(changed))} do not compare"):
            plot_comparison([open_run(smoke_run), run])


@pytest.mark.parametrize(
    ("step", "text"),
    [(0, "at the start"), (500, "after 500"), (16_000, "after 16k"), (2_500_000, "after 2.5M")],
)
def test_steps_are_written_short(step, text):
    assert figures._short(step) == text
