"""Policy gradients as they were measured: rows of tables with intervals, and a figure."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from irrl.analysis.plots import SMALL, line_of, tidy
from irrl.analysis.stats import Estimate, t_quantile
from irrl.gradient_measured import ACCURACY, INFORMATION, ORACLE, RUN, MeasuredGradients
from irrl.gradient_noise import (
    GradientMoments,
    SampledMoments,
    cosine,
    direction,
    likeness,
    noise_added,
    noise_kept,
    signal_kept,
    snr,
)
from irrl.noise_measured import measured_noise, predicted_noise
from irrl.rewards import reward

Row = dict[str, Any]
Statistic = Callable[[GradientMoments], float | None]

ANY, NOT_NEGATIVE, SHARE, COSINE = (
    (-math.inf, math.inf), (0.0, math.inf), (0.0, 1.0), (-1.0, 1.0),
)  # fmt: skip


# --- estimates ---


def jackknife(
    sampled: SampledMoments, statistic: Statistic, limits: tuple[float, float] = ANY
) -> Estimate | None:
    """A statistic with its 95 % interval over batches, within its range; None where there is none.

    Exact moments have no interval. Nor has a statistic that does not exist without some batch.
    """
    value = statistic(sampled.moments)
    if value is None:
        return None
    low, high = limits
    value, count = min(max(value, low), high), len(sampled.without)
    left = [statistic(moments) for moments in sampled.without]
    known = np.array([x for x in left if x is not None])
    if count == 0 or len(known) < count:
        return Estimate(value, None, None, count)
    error = math.sqrt((count - 1) / count * float(np.sum((known - known.mean()) ** 2)))
    reach = t_quantile(0.975, count - 1) * error
    return Estimate(value, value - reach, value + reach, count).within(low, high)


def gradient_rows(found: Sequence[MeasuredGradients], rewards: Sequence[str]) -> list[Row]:
    """Each reward at each checkpoint; first the run's own over its own baseline, if measured."""
    rows = []
    for measured in found:
        arms = [arm for arm in measured.arms if arm.as_trained and arm.reward in rewards]
        rows += [reward_row(measured, arm.reward, as_trained=True) for arm in arms]
        rows += [reward_row(measured, name) for name in rewards]
    return rows


def reward_row(measured: MeasuredGradients, name: str, as_trained: bool = False) -> Row:
    """All that is told of a reward at a checkpoint."""
    sampled = measured.sampled
    own, oracle = measured.row(name, RUN, as_trained), measured.row(name, ORACLE)
    linear = measured.row("linear", RUN)
    row: Row = {"step": measured.step, "reward": name, "as_trained": as_trained}
    for word, target in {"own": name, "information": INFORMATION, "accuracy": ACCURACY}.items():
        there = measured.row(target, ORACLE)
        for key, statistic in (("cosine", cosine), ("direction", direction)):
            beside = partial(statistic, arm=own, target=there)
            row[f"{key}_{word}"] = jackknife(sampled, beside, COSINE)
    row["snr"] = jackknife(sampled, lambda m: snr(m, own), NOT_NEGATIVE)
    row["snr_oracle"] = jackknife(sampled, lambda m: snr(m, oracle), NOT_NEGATIVE)
    row["signal_kept"] = jackknife(sampled, lambda m: signal_kept(m, own, oracle))
    row["noise_kept"] = jackknife(sampled, lambda m: noise_kept(m, own, oracle), NOT_NEGATIVE)
    row["noise_added"] = jackknife(sampled, lambda m: noise_added(m, own, oracle), SHARE)
    row["like_linear"] = jackknife(sampled, lambda m: likeness(m, own, linear), COSINE)
    return {**row, **theory(measured, name)}


def theory(measured: MeasuredGradients, name: str) -> Row:
    """Bias and std of the reward, measured and by Eq. 5 and 6; None for what is no curve."""
    keys = ("bias", "std", "eq5_bias", "eq6_std")
    if not reward(name).of_posterior_alone:
        return dict.fromkeys(keys)
    posteriors = (measured.online, measured.oracle, measured.prior)
    is_so = measured_noise(name, *posteriors, weights=measured.weights)
    predicted = predicted_noise(name, *posteriors, weights=measured.weights)
    values = (is_so.bias, is_so.std, predicted.bias, predicted.std)
    return dict(zip(keys, values, strict=True))


def to_json(row: Row) -> Row:
    """The same with plain numbers: value, and low and high where there is an interval."""
    return {
        key: {"value": x.value, "low": x.low, "high": x.high} if isinstance(x, Estimate) else x
        for key, x in row.items()
    }


# --- tables ---

AGREEMENT = {
    "cosine_own": "cosine: own",
    "cosine_information": "information",
    "cosine_accuracy": "accuracy",
    "snr": "SNR",
    "snr_oracle": "SNR by oracle",
}
PARTS = {
    "direction_own": "direction: own",
    "direction_information": "information",
    "signal_kept": "signal kept",
    "noise_kept": "noise kept",
    "noise_added": "noise added",
    "like_linear": "like linear",
    "eq5_bias": "Eq. 5 bias",
    "eq6_std": "Eq. 6 std",
}


def table(rows: Sequence[Row], columns: Mapping[str, str]) -> tuple[list[str], list[list[str]]]:
    """Header and rows of text; intervals in the table of agreement, values in that of parts."""
    with_interval = columns is AGREEMENT
    return ["step", "reward", *columns.values()], [
        [str(row["step"]), label(row), *(cell(row[key], with_interval) for key in columns)]
        for row in rows
    ]


def label(row: Row) -> str:
    return f"{row['reward']} (as trained)" if row["as_trained"] else str(row["reward"])


def cell(x: Estimate | float | None, with_interval: bool = True) -> str:
    if x is None:
        return "-"
    if not isinstance(x, Estimate):
        return _three(x)
    if not with_interval or x.low is None or x.high is None:
        return _three(x.value)
    return f"{_three(x.value)} [{_three(x.low)}, {_three(x.high)}]"


def _three(x: float) -> str:
    """Three decimals, or three digits of what is smaller."""
    return f"{x:.3f}" if abs(x) >= 0.01 or x == 0.0 else f"{x:.2g}"


# --- figure ---


@matplotlib.rc_context(SMALL)
def plot_gradients(groups: Mapping[str, Sequence[Row]], xlabel: str) -> Figure:
    """A row of panels for each run: agreement, signal-to-noise, what is kept of both."""
    figure = Figure(figsize=(9.9, 2.9 * len(groups) + 0.4), layout="constrained")
    panels = figure.subplots(len(groups), 3, squeeze=False)
    for (agree, ratio, kept), (name, rows) in zip(panels, groups.items(), strict=True):
        rows = [row for row in rows if not row["as_trained"]]
        exact = all(row["snr"] is None or row["snr"].low is None for row in rows)
        word, of = ("direction", "the mean") if exact else ("cosine", "a batch")
        _over_steps(agree, rows, f"{word}_information", xlabel)
        agree.set_title(name, parse_math=False)  # a folder may have a dollar in its name
        agree.set_ylabel(f"cosine of {of} with the oracle's\ngradient of the information")
        agree.axhline(0.0, color="0.5", lw=0.8, ls=":")
        _over_steps(ratio, rows, "snr", xlabel)
        ratio.set_ylabel("signal-to-noise of a batch\n(thin: by the oracle)")
        _over_steps(ratio, rows, "snr_oracle", xlabel, thin=True)
        ratio.set_ylim(bottom=0.0)
        _kept(kept, rows)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=min(len(labels), 7), frameon=False
    )
    return figure


def _over_steps(axes: Axes, rows: Sequence[Row], key: str, xlabel: str, thin: bool = False) -> None:
    """A statistic over the checkpoints, rewards side by side."""
    steps = sorted({row["step"] for row in rows})
    names = list(dict.fromkeys(row["reward"] for row in rows))
    for n, name in enumerate(names):
        its = [row for row in rows if row["reward"] == name and row[key] is not None]
        places = [steps.index(row["step"]) + 0.05 * (n - (len(names) - 1) / 2) for row in its]
        values = [row[key].value for row in its]
        style = line_of(name)
        if thin:
            axes.plot(places, values, color=style["color"], ls=style["ls"], lw=0.7, alpha=0.6)
            continue
        axes.plot(places, values, **style, label=name)
        for place, row in zip(places, its, strict=True):
            if row[key].low is not None:
                axes.vlines(place, row[key].low, row[key].high, color=style["color"], lw=1)
    shorten = EngFormatter(sep="")
    axes.set_xticks(range(len(steps)), [shorten(step) for step in steps])
    axes.set_xlabel(xlabel)
    tidy(axes)


def _kept(axes: Axes, rows: Sequence[Row]) -> None:
    """Signal against noise, both as shares of the oracle's; the last checkpoint is the dot."""
    for name in dict.fromkeys(row["reward"] for row in rows):
        its = [
            (row["noise_kept"].value, row["signal_kept"].value)
            for row in rows
            if row["reward"] == name and row["noise_kept"] and row["signal_kept"]
        ]
        if its:
            x, y = zip(*its, strict=True)
            axes.plot(x, y, **line_of(name), markevery=[-1], lw=1)
    axes.axline((0.0, 0.0), slope=1.0, color="0.5", lw=0.8, ls=":")
    axes.set(xlabel="noise kept of the oracle's", ylabel="signal kept of the oracle's")
    tidy(axes)
