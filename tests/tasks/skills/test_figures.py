import shutil

import matplotlib.pyplot as plt
import pytest

from irrl.errors import UserError
from irrl.tasks import open_run
from irrl.tasks.skills import figure


def test_the_comparison_draws_a_curve_and_three_maps(smoke_run):
    drawn = figure.comparison_figure([open_run(smoke_run)])
    left, right = drawn.subfigs
    labels = [line.get_label() for line in left.axes[0].lines]
    assert any(label.startswith("clipped-linear") for label in labels)
    assert sum(bool(axes.images) for axes in right.axes) == 3
    plt.close(drawn)


def test_a_run_that_has_no_checkpoint_yet_is_drawn_without_maps(smoke_run, tmp_path):
    folder = shutil.copytree(smoke_run, tmp_path / "run")
    shutil.rmtree(folder / "checkpoints")
    drawn = figure.comparison_figure([open_run(folder)])
    plt.close(drawn)


def test_runs_that_do_not_belong_together_are_refused(smoke_run, tmp_path):
    other = shutil.copytree(smoke_run, tmp_path / "run")
    run = open_run(other)
    run.settings = {**run.settings, "seed": 1, "epsilon": 0.5}
    with pytest.raises(UserError, match="differ in epsilon"):
        figure.comparison_figure([open_run(smoke_run), run])
    run.settings = {**open_run(other).settings, "reward": "linear", "codes": 8}
    with pytest.raises(UserError, match="different numbers of codes"):
        figure.comparison_figure([open_run(smoke_run), run])


@pytest.mark.parametrize(
    ("step", "text"),
    [(0, "at the start"), (500, "after 500"), (16_000, "after 16k"), (2_500_000, "after 2.5M")],
)
def test_steps_are_written_short(step, text):
    assert figure._short(step) == text
