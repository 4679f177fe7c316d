"""The verbs about rewards as such: `irrl rewards` and `irrl noise`."""

from pathlib import Path
from typing import Any

from irrl.cli.flags import Parser, curve_names, reward_names
from irrl.cli.tables import print_table
from irrl.errors import UserError


def run_rewards(parser: Parser, arguments: list[str]) -> int:
    parser.option("--classes", default=10, metavar="K", help="number of labels; the prior is 1/K")
    parser.add_argument("--rewards", metavar="A,B,...", help="only these rewards")
    parser.add_argument(
        "--plot",
        nargs="?",
        const="rewards.png",
        metavar="FILE",
        help="draw reward against posterior, to rewards.png if no file is named",
    )
    options = parser.parse_args(arguments)
    from irrl.noise import slope_at_prior
    from irrl.rewards import REWARDS, reward
    from irrl.runs.config import at_least

    at_least(2, classes=options.classes)
    names = reward_names(options.rewards)
    prior = 1.0 / options.classes
    if options.plot:
        from irrl.analysis.plots import G_FUNCTIONS, plot_reward_shapes, save_figure

        shown = curve_names(names or [f"clipped-{name}" for name in G_FUNCTIONS])
        print(save_figure(plot_reward_shapes(shown, prior), options.plot))
        return 0
    rows = []
    for name in names or REWARDS:
        found = reward(name)
        slope = f"{slope_at_prior(name, prior):.4g}" if found.of_posterior_alone else "-"
        rows.append([name, found.formula, found.range, slope])
    print_table(["name", "reward", "range", f"slope at p = {prior:.3g}"], rows)
    print("q: posterior of the label, p: its prior, y: the label; slope: from above, where clipped")
    if not names:
        _print_density_rewards()
    return 0


def _print_density_rewards() -> None:
    from irrl.density_rewards import DENSITY_REWARDS, density_reward

    rows = [[found.name, found.formula, found.range] for found in DENSITY_REWARDS.values()]
    print_table(["name", "reward", "range"], rows, "labels that are numbers: irrl.density_reward")
    print(
        "q: density of the label, p: its prior, y: the label; B(y): all that is within "
        f"{density_reward('ball').epsilon} prior std of y"
    )


def run_noise(parser: Parser, arguments: list[str]) -> int:
    theory, measured = "log,root-2,linear,power-2,power-6", "clipped-linear,clipped-log,linear,log"
    parser.add_argument(
        "what",
        choices=["theory", "measure"],
        help="theory: expansion and exact integral; measure: runs beside an oracle",
    )
    parser.add_argument("runs", nargs="*", metavar="DIR", help="measure: folders of the runs")
    parser.add_argument("--oracle", metavar="DIR", help="measure: a converged run, its judge")
    parser.option("--episodes", default=1000, metavar="N", help="measure: episodes to judge")
    parser.option(
        "--checkpoints", default=4, metavar="N", help="measure: so many of each run, early to late"
    )
    parser.add_argument("--rewards", metavar="A,B,...", help="rewards to show")
    parser.option(
        "--family", default="normal", metavar="NAME", help="theory: normal, laplace, uniform"
    )
    parser.option("--scale", default=0.05, metavar="S", help="theory: std of the noise")
    parser.option("--classes", default=10, metavar="K", help="theory: number of labels")
    parser.option("-o", "--output", default="noise.png", metavar="FILE", help="PNG, SVG, PDF")
    options = parser.parse_args(arguments)
    from irrl.runs.config import at_least, at_most

    at_least(2, classes=options.classes)
    default = theory if options.what == "theory" else measured
    names = curve_names(reward_names(options.rewards or default))
    if options.what == "theory":
        return _theory(options, names)
    at_least(10, episodes=options.episodes)
    at_most(1_000_000, episodes=options.episodes)
    at_least(1, checkpoints=options.checkpoints)
    if not options.runs or options.oracle is None:
        raise UserError("noise measure needs a run and --oracle RUN, a converged run to judge it")
    return _measure(options, names)


def _theory(options: Any, names: list[str]) -> int:
    from irrl.analysis.plots import plot_noise_theory, save_figure
    from irrl.noise import DeltaNoise, theory_table

    try:
        noise = DeltaNoise(options.family, options.scale)
    except ValueError as error:
        raise UserError(str(error)) from None
    prior = 1.0 / options.classes
    header = ["reward", "p", "bias", "2nd order", "std", "2nd order", "2nd order valid for"]
    print_table(header, theory_table(names, noise, prior))
    print("valid: bias and std within a tenth of the exact std")
    print(save_figure(plot_noise_theory(names, noise, prior), options.output))
    return 0


def _measure(options: Any, names: list[str]) -> int:
    from irrl.analysis.noise import delta_rows, plot_violins, reward_rows
    from irrl.analysis.plots import check_format, save_figure
    from irrl.runs.files import to_json_bytes, write_atomic
    from irrl.runs.provenance import provenance
    from irrl.tasks import one_task, open_run

    check_format(options.output)
    runs = [open_run(folder) for folder in options.runs]
    task = one_task(runs)
    if task.measure_noise is None:
        raise UserError(f"noise cannot be measured on runs of {task.name}")
    groups, record = {}, {}
    for run in runs:
        found = task.measure_noise(run, Path(options.oracle), options.episodes, options.checkpoints)
        label = run.settings["reward"]
        groups[label if label not in groups else str(run.folder)] = found
        deltas, rewards = delta_rows(found), reward_rows(found, names)
        record[str(run.folder)] = {"delta": deltas, "rewards": rewards}
        _print_noise(f"{run.folder}: discriminator noise", deltas, rewards)
    picture = save_figure(plot_violins(groups, task.config.length), options.output)
    table = picture.with_suffix(".json")
    made = provenance()
    content = {"command": made["command"], "commit": made["commit"], "runs": record}
    write_atomic(table, to_json_bytes(content))
    print(f"figure: {picture}\ntable:  {table}")
    return 0


def _print_noise(title: str, deltas: list[dict[str, Any]], rewards: list[dict[str, Any]]) -> None:
    """The noise of a run at some checkpoints, and what it does to rewards."""
    moments, tests = ("mean", "std", "skewness"), ("p_zero_mean", "p_symmetric")
    print_table(
        ["step", *moments, "p(zero mean)", "p(symmetric)", "episodes"],
        [
            [str(d["step"]), *(f"{d[k]:.4f}" for k in moments), *(f"{d[k]:.3g}" for k in tests),
             str(d["samples"])]
            for d in deltas
        ],
        title,
    )  # fmt: skip
    columns = ("bias", "predicted_bias", "std", "predicted_std")
    print_table(
        ["step", "reward", "bias", "2nd order", "std", "2nd order"],
        [[str(r["step"]), r["reward"], *(f"{r[k]:.4f}" for k in columns)] for r in rewards],
        "noise of the reward: measured, and predicted from the moments of delta",
    )
