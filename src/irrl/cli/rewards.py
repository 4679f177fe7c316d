"""The verbs about rewards as such: `irrl rewards` and `irrl noise`."""

from pathlib import Path
from typing import Any

from irrl.errors import UserError
from irrl.cli.flags import Parser, at_least, curve_names, reward_names
from irrl.cli.tables import print_table


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
    at_least(options, 2, "classes")
    from irrl.noise import slope_at_prior
    from irrl.rewards import REWARDS

    names = reward_names(options.rewards)
    prior = 1.0 / options.classes
    if options.plot:
        from irrl.analysis.plots import G_FUNCTIONS, reward_shapes, save_figure

        shown = curve_names(names or [f"clipped-{name}" for name in G_FUNCTIONS])
        print(save_figure(reward_shapes(shown, prior), options.plot))
        return 0
    rows = []
    for name in names or REWARDS:
        slope = f"{slope_at_prior(name, prior):.4g}" if REWARDS[name].shape else "-"
        rows.append([name, REWARDS[name].formula, REWARDS[name].range, slope])
    print_table(["name", "reward", "range", f"slope at p = {prior:.3g}"], rows)
    print("q: posterior of the label, p: its prior, y: the label; slope: from above, where clipped")
    return 0


def run_noise(parser: Parser, arguments: list[str]) -> int:
    theory, measured = "log,root-2,linear,power-2,power-6", "clipped-linear,clipped-log,linear,log"
    parser.add_argument(
        "what",
        choices=["theory", "measure"],
        help="theory: expansion and exact integral; measure: runs beside an oracle",
    )
    parser.add_argument("runs", nargs="*", metavar="DIR", help="measure: folders of the runs")
    parser.add_argument("--oracle", metavar="DIR", help="measure: a converged run, its judge")
    parser.option("--images", default=1000, metavar="N", help="measure: test images")
    parser.option("--epochs", default=4, metavar="N", help="measure: checkpoints, early to late")
    parser.add_argument("--rewards", metavar="A,B,...", help="rewards to show")
    parser.option(
        "--family", default="normal", metavar="NAME", help="theory: normal, laplace, uniform"
    )
    parser.option("--scale", default=0.05, metavar="S", help="theory: deviation of the noise")
    parser.option("--classes", default=10, metavar="K", help="theory: number of labels")
    parser.option("-o", "--output", default="noise.png", metavar="FILE", help="PNG, SVG, PDF")
    options = parser.parse_args(arguments)
    at_least(options, 2, "classes")
    default = theory if options.what == "theory" else measured
    names = curve_names(reward_names(options.rewards or default))
    if options.what == "theory":
        return _theory(options, names)
    at_least(options, 10, "images")
    at_least(options, 1, "epochs")
    if not options.runs or options.oracle is None:
        raise UserError("noise measure needs a run and --oracle RUN, a converged run to judge it")
    return _measure(options, names)


def _theory(options: Any, names: list[str]) -> int:
    from irrl.noise import DeltaNoise, theory_table
    from irrl.analysis.plots import noise_theory, save_figure

    try:
        noise = DeltaNoise(options.family, options.scale)
    except ValueError as error:
        raise UserError(str(error)) from None
    prior = 1.0 / options.classes
    header = ["reward", "p", "bias", "2nd order", "deviation", "2nd order", "2nd order valid for"]
    print_table(header, theory_table(names, noise, prior))
    print("valid: bias and deviation within a tenth of the exact deviation")
    print(save_figure(noise_theory(names, noise, prior), options.output))
    return 0


def _measure(options: Any, names: list[str]) -> int:
    from irrl.runs.checkpoint import to_json_bytes, write_atomic
    from irrl.analysis.plots import check_format, save_figure
    from irrl.runs.run import provenance
    from irrl.tasks import open_run, task_module

    check_format(options.output)
    runs = [open_run(folder) for folder in options.runs]
    module = task_module(runs[0].task, "measure")
    groups, record = {}, {}
    for run in runs:
        found = module.measure(run, Path(options.oracle), options.images, options.epochs)
        label = run.settings["reward"]
        groups[label if label not in groups else str(run.folder)] = found
        deltas, rewards = module.delta_rows(found), module.reward_rows(found, names)
        record[str(run.folder)] = {"delta": deltas, "rewards": rewards}
        header = ["epoch", "mean", "deviation", "skewness", "p(zero mean)", "p(symmetric)"]
        print_table(
            header,
            [
                [str(d["epoch"]), *(f"{d[k]:.4f}" for k in ("mean", "deviation", "skewness")),
                 *(f"{d[k]:.3g}" for k in ("p_zero_mean", "p_symmetric"))]
                for d in deltas
            ],
            f"{run.folder}: discriminator noise on {options.images} test images",
        )  # fmt: skip
        columns = ("bias", "predicted_bias", "deviation", "predicted_deviation")
        print_table(
            ["epoch", "reward", "bias", "2nd order", "deviation", "2nd order"],
            [[str(r["epoch"]), r["reward"], *(f"{r[k]:.4f}" for k in columns)] for r in rewards],
            "noise of the reward: measured, and predicted from the moments of delta",
        )
    picture = save_figure(module.violin_figure(groups), options.output)
    table = picture.with_suffix(".json")
    made = provenance()
    content = {"command": made["command"], "commit": made["commit"], "runs": record}
    write_atomic(table, to_json_bytes(content))
    print(f"figure: {picture}\ntable:  {table}")
    return 0
