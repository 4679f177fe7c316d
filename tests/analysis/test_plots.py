import numpy as np

from irrl.analysis import plots
from irrl.noise import DeltaNoise
from irrl.rewards import REWARDS


def test_every_reward_has_a_colour_and_no_two_of_a_family_share_one():
    assert all(plots.colour_of(name) for name in REWARDS)
    g_family = [n for n in REWARDS if not n.startswith(("clipped-", "f-"))]
    assert len({plots.colour_of(name) for name in g_family}) == len(g_family)


def test_a_reward_keeps_its_colour_clipped_or_not():
    assert plots.colour_of("clipped-linear") == plots.colour_of("linear")
    assert plots.dashes_of("clipped-linear") != plots.dashes_of("linear")


def test_the_reward_figure_draws_the_rewards():
    figure = plots.plot_reward_shapes(["clipped-linear", "log"], prior=0.1)
    (axes,) = figure.axes
    lines = {line.get_label(): line for line in axes.lines}
    x, y = lines["clipped-linear"].get_data()
    np.testing.assert_allclose(y, np.maximum(x - 0.1, 0), atol=1e-12)


def test_the_noise_figure_draws_exact_and_expanded():
    figure = plots.plot_noise_theory(["linear", "log"], DeltaNoise(), prior=0.1)
    bias = figure.axes[0]
    assert len([line for line in bias.lines if line.get_linestyle() == "-"]) == 2
