import shutil

import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from irrl.analysis.plots import plot_comparison
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


def test_the_comparison_has_a_curve_the_ceiling_and_three_maps(smoke_run):
    left, right = plot_comparison([open_run(smoke_run)]).subfigs
    labels = [line.get_label() for line in left.axes[0].lines]
    assert any(label.startswith("clipped-linear") for label in labels)
    assert "ceiling 21.4" in [text.get_text() for text in left.axes[0].texts]
    assert len(maps_of(right)) == 3


def test_maps_go_from_early_to_late_and_have_the_colour_of_their_curve(smoke_run):
    figure = Figure()
    runs = {"this": open_run(smoke_run), "that": open_run(smoke_run)}
    figures.plot_beside(figure.subfigures(), runs, {"this": "#112233", "that": "#445566"})
    titles = [axes.title for axes in maps_of(figure)]
    stages = ["at the start", "after 1k", "after 2k"]
    expected = [f"{label}\n{stage}" for label in ("this", "that") for stage in stages]
    assert [title.get_text() for title in titles] == expected
    assert [to_hex(title.get_color()) for title in titles] == ["#112233"] * 3 + ["#445566"] * 3


def test_maps_show_the_occupancy_on_the_grid(smoke_run):
    run = open_run(smoke_run)
    steps, grids = zip(*figures.stages(run), strict=True)
    assert steps == (0, 1000, 2000)
    assert grids[-1].shape == (8, 7)
    at_end = grids[-1][~(grids[-1] != grids[-1])]  # all but the walls, which are NaN
    assert at_end.tolist() == run.summary()["occupancy"]


def test_a_run_that_has_no_checkpoint_yet_is_drawn_without_maps(run_without_checkpoint):
    left, right = plot_comparison([run_without_checkpoint]).subfigs
    assert left.axes[0].lines
    assert not maps_of(right) and len(right.axes) == 1  # no bar of colours either
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
