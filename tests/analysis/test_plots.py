import numpy as np
import pytest
from matplotlib.figure import Figure

from irrl.analysis import plots, reward_plots
from irrl.analysis.compare import BASELINE
from irrl.analysis.stats import mean_estimate
from irrl.noise import DeltaNoise
from irrl.rewards import REWARDS


def test_every_reward_has_a_colour_and_no_two_of_a_family_share_one():
    assert all(plots.colour_of(name) for name in REWARDS)
    g_family = [n for n in REWARDS if not n.startswith(("clipped-", "f-"))]
    assert len({plots.colour_of(name) for name in g_family}) == len(g_family)


def test_a_reward_keeps_its_colour_clipped_or_not():
    assert plots.colour_of("clipped-linear") == plots.colour_of("linear")
    assert plots.dashes_of("clipped-linear") != plots.dashes_of("linear")


def test_rewards_can_be_told_apart_without_colour():
    """By marker, by line and by how the marker is filled: in a curve, and in print."""
    names = [n for n in REWARDS if n.removeprefix("clipped-") in plots.MARKERS]
    looks = {n: (plots.line_of(n)["ls"], plots.line_of(n)["marker"], plots.is_filled(n))
             for n in names}  # fmt: skip
    assert len(names) > 15 and len(set(looks.values())) == len(names)
    axes = drawn({n: (STEPS, np.ones((1, 3))) for n in ("linear", "clipped-linear")})
    hollow, filled = axes.lines
    assert hollow.get_markerfacecolor() == "white" != filled.get_markerfacecolor()
    assert (hollow.get_linestyle(), filled.get_linestyle()) == ("--", "-")


def test_the_reward_figure_draws_the_rewards():
    figure = reward_plots.plot_reward_shapes(["clipped-linear", "log"], prior=0.1)
    (axes,) = figure.axes
    lines = {line.get_label(): line for line in axes.lines}
    x, y = lines["clipped-linear"].get_data()
    np.testing.assert_allclose(y, np.maximum(x - 0.1, 0), atol=1e-12)


def test_the_noise_figure_draws_exact_and_expanded_and_says_what_it_assumes():
    figure = reward_plots.plot_noise_theory(["clipped-linear", "log"], DeltaNoise(), prior=0.1)
    for axes in figure.axes:
        thick = [line for line in axes.lines if line.get_linewidth() > 1]
        assert [line.get_linestyle() for line in thick] == ["-", "--"]
        assert "prior 0.1" in [text.get_text() for text in axes.texts]
        assert "q(y | trajectory)" in axes.get_xlabel()
    assert "normal, zero mean, std 0.05" in figure.get_suptitle()
    (flat,) = (line for line in figure.axes[1].lines if line.get_linewidth() < 0.7
               and line.get_linestyle() == "-")  # fmt: skip
    x, y = flat.get_data()
    assert np.isnan(y[x < 0.095]).all() and np.isfinite(y[x > 0.095]).all()  # no line that falls


def test_the_scale_of_biases_has_no_kink():
    figure = reward_plots.plot_noise_theory(["log"], DeltaNoise(), prior=0.1)
    transform = figure.axes[0].yaxis.get_transform()
    values = np.linspace(0.001, 0.1, 400)
    slopes = np.diff(transform.transform(values)) / np.diff(values)
    assert np.abs(np.diff(slopes) / slopes[:-1]).max() < 0.03


# --- learning curves: bands are the tables' intervals ---

STEPS = np.array([0.0, 10.0, 20.0])


def drawn(curves, bounds=(0.0, 100.0)):
    axes = Figure().subplots()
    plots.plot_curves(axes, curves, bounds)
    return axes


def test_a_band_is_the_interval_of_the_mean_within_the_range():
    values = np.array(
        [[1.0, 50.0, 99.0], [0.0, 52.0, 100.0], [9.0, 60.0, 100.0], [0.0, 40.0, 95.0]]
    )
    axes = drawn({"linear": (STEPS, values)})
    (band,) = axes.collections
    corners = band.get_paths()[0].vertices
    for step, column in zip(STEPS, values.T, strict=True):
        interval = mean_estimate(column).within(0.0, 100.0)
        ends = corners[corners[:, 0] == step, 1]
        assert (ends.min(), ends.max()) == pytest.approx((interval.low, interval.high))
    assert corners[:, 1].min() == 0.0 and corners[:, 1].max() == 100.0
    assert len(axes.lines) == 1 and axes.get_title() == "mean and 95 % interval, 4 seeds"


@pytest.mark.parametrize("seeds", [1, 2, 3])
def test_few_seeds_are_drawn_one_by_one(seeds):
    values = np.arange(3.0 * seeds).reshape(seeds, 3)
    axes = drawn({"linear": (STEPS, values)})
    assert not axes.collections
    mean, *each = [line.get_ydata().tolist() for line in axes.lines]
    assert mean == values.mean(axis=0).tolist()
    assert each == (values.tolist() if seeds > 1 else [])


def test_of_a_scripted_baseline_only_the_mean_is_drawn():
    axes = drawn({"stay" + BASELINE: (STEPS, np.ones((5, 3)))})
    assert len(axes.lines) == 1 and not axes.collections


def test_a_legend_is_beside_the_curves():
    axes = drawn({n: (STEPS, np.full((1, 3), v)) for n, v in (("linear", 1.0), ("log", 2.0))})
    plots.legend_right(axes)
    axes.figure.canvas.draw()
    legend = axes.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["log  2.0", "linear  1.0"]
    assert legend.get_window_extent().x0 >= axes.get_window_extent().x1


@pytest.mark.parametrize(
    ("seeds", "text"),
    [
        ([], "scripted baselines"),
        ([1, 1], "1 seed"),
        ([3, 3], "mean and each of 3 seeds"),
        ([1, 3], "mean and each of 1/3 seeds"),
        ([5], "mean and 95 % interval, 5 seeds"),
        ([3, 6], "mean and 95 % interval, or each seed, 3/6 seeds"),
    ],
)
def test_a_figure_says_what_it_draws(seeds, text):
    assert plots.what_is_drawn(seeds) == text
