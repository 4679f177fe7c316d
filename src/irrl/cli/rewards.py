"""The verbs about rewards as such: `irrl rewards` and `irrl noise`."""

from pathlib import Path
from typing import Any

from irrl.cli.flags import Parser, curve_names, reward_names
from irrl.cli.gradient import run_gradient
from irrl.cli.outputs import add_force, check_picture
from irrl.cli.tables import add_json, print_json, print_table
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
    add_json(parser)
    add_force(parser)
    options = parser.parse_args(arguments)
    from irrl.noise import slope_at_prior
    from irrl.rewards import REWARDS, reward
    from irrl.runs.config import at_least

    at_least(2, classes=options.classes)
    names = reward_names(options.rewards)
    prior = 1.0 / options.classes
    if options.plot:
        if options.json:
            raise UserError("--json and --plot do not go together: take one at a time")
        check_picture(options.plot, options.force)
        from irrl.analysis.plots import G_FUNCTIONS, save_figure
        from irrl.analysis.reward_plots import plot_reward_shapes

        shown = curve_names(names or [f"clipped-{name}" for name in G_FUNCTIONS])
        print(save_figure(plot_reward_shapes(shown, prior), options.plot))
        return 0
    slopes = {
        name: slope_at_prior(name, prior) if reward(name).of_posterior_alone else None
        for name in names or REWARDS
    }
    if options.json:
        print_json(_as_json(prior, slopes, with_densities=not names))
        return 0
    rows = []
    for name, slope in slopes.items():
        found = reward(name)
        cell = "-" if slope is None else f"{slope:.4g}"
        rows.append([name, found.formula, found.range, cell])
    print_table(["name", "reward", "range", f"slope at p = {prior:.3g}"], rows)
    print("q: posterior of the label, p: its prior, y: the label; slope: from above, where clipped")
    if not names:
        _print_density_rewards()
    return 0


def _as_json(prior: float, slopes: dict[str, float | None], with_densities: bool) -> dict[str, Any]:
    from irrl.density_rewards import DENSITY_REWARDS
    from irrl.rewards import reward

    found = {
        name: {**_about(reward(name)), "slope_at_prior": slope} for name, slope in slopes.items()
    }
    content = {"prior": prior, "rewards": found}
    if with_densities:
        content["density_rewards"] = {n: _about(r) for n, r in DENSITY_REWARDS.items()}
    return content


def _about(found: Any) -> dict[str, str]:
    return {"formula": found.formula, "range": found.range}


def _print_density_rewards() -> None:
    from irrl.density_rewards import DENSITY_REWARDS, density_reward

    rows = [[found.name, found.formula, found.range] for found in DENSITY_REWARDS.values()]
    print_table(["name", "reward", "range"], rows, "labels that are numbers: irrl.density_reward")
    print(
        "q: density of the label, p: its prior, y: the label; B(y): all that is within "
        f"{density_reward('ball').epsilon} prior std of y"
    )


def run_noise(parser: Parser, arguments: list[str]) -> int:
    measured = "clipped-linear,clipped-log,linear,log"
    parser.add_argument(
        "what",
        choices=["theory", "measure", "gradient"],
        help="theory: expansion and exact integral; measure: runs beside an oracle; gradient: "
        "what it does to the policy gradients of runs",
    )
    parser.add_argument("runs", nargs="*", metavar="DIR", help="folders of the runs")
    parser.add_argument("--oracle", metavar="DIR", help="a converged run, the judge of the runs")
    parser.add_argument(
        "--episodes", type=int, metavar="N",
        help="episodes to judge (default: 1000; gradient: 50 batches of the run)",
    )  # fmt: skip
    parser.option(
        "--checkpoints", default=4, metavar="N", help="so many of each run, early to late"
    )
    add_json(parser)
    add_force(parser)
    parser.add_argument("--rewards", metavar="A,B,...", help="rewards to show")
    parser.option(
        "--family", default="normal", metavar="NAME", help="theory: normal, laplace, uniform"
    )
    parser.option("--scale", default=0.05, metavar="S", help="theory: std of the noise")
    parser.option("--classes", default=10, metavar="K", help="theory: number of labels")
    parser.add_argument(
        "-o", "--output", metavar="FILE",
        help="PNG, SVG, PDF (default: noise.png; gradient: gradient.png)",
    )  # fmt: skip
    options = parser.parse_args(arguments)
    from irrl.runs.config import at_least, at_most

    at_least(1, checkpoints=options.checkpoints)
    if options.episodes is not None:
        at_least(10, episodes=options.episodes)
        at_most(1_000_000, episodes=options.episodes)
    if options.what == "gradient":
        return run_gradient(options)
    options.output = options.output or "noise.png"
    options.episodes = options.episodes or 1000
    at_least(2, classes=options.classes)
    if options.what == "theory":
        return _theory(options)
    names = curve_names(reward_names(options.rewards or measured))
    if not options.runs or options.oracle is None:
        raise UserError("noise measure needs a run and --oracle RUN, a converged run to judge it")
    return _measure(options, names)


def _theory(options: Any) -> int:
    from irrl.analysis.plots import save_figure
    from irrl.analysis.reward_plots import THEORY, noise_in_words, plot_noise_theory
    from irrl.noise import DeltaNoise, theory_rows

    names = curve_names(reward_names(options.rewards or ",".join(THEORY)))

    try:
        noise = DeltaNoise(options.family, options.scale)
    except ValueError as error:
        raise UserError(str(error)) from None
    check_picture(options.output, options.force)
    prior = 1.0 / options.classes
    rows = theory_rows(names, noise, prior)
    picture = save_figure(plot_noise_theory(names, noise, prior), options.output)
    if options.json:
        assumed = {"family": noise.family, "mean": 0.0, "std": noise.scale}
        print_json({"noise": assumed, "prior": prior, "rows": rows, "figure": str(picture)})
        return 0
    header = ["reward", "q", "bias", "2nd order", "std", "2nd order", "2nd order valid for"]
    print_table(header, list(map(_theory_cells, rows)), noise_in_words(noise))
    print(
        "q: posterior of the label as a discriminator without noise would have it; "
        f"its prior is {prior:.3g}\nvalid: bias and std within a tenth of the exact std\n{picture}"
    )
    return 0


def _theory_cells(row: dict[str, Any]) -> list[str]:
    keys = ("bias", "second_order_bias", "std", "second_order_std")
    valid = "nowhere" if row["valid_from"] is None else f"q >= {row['valid_from']:.2f}"
    return [row["reward"], f"{row['q']:.2f}", *(f"{row[key]:.5f}" for key in keys), valid]


def _measure(options: Any, names: list[str]) -> int:
    from irrl.analysis.noise import delta_rows, oracle_record, plot_violins, reward_rows
    from irrl.analysis.plots import save_figure
    from irrl.runs.files import to_json_bytes, write_atomic
    from irrl.runs.provenance import provenance
    from irrl.tasks import one_task, open_run

    check_picture(options.output, options.force, ".json")
    runs = [open_run(folder) for folder in options.runs]
    task = one_task(runs)
    if task.measure_noise is None:
        raise UserError(f"noise cannot be measured on runs of {task.name}")
    groups, record = {}, {}
    for run in runs:
        found = task.measure_noise(run, Path(options.oracle), options.episodes, options.checkpoints)
        label = run.settings["reward"]
        groups[label if label not in groups else str(run.folder)] = found
        record[str(run.folder)] = {
            "delta": delta_rows(found),
            "rewards": reward_rows(found, names),
        }
    oracle = oracle_record(open_run(options.oracle), task)
    if not options.json:
        _print_noise(record, oracle)
    picture = save_figure(plot_violins(groups, task.config.length), options.output)
    table = picture.with_suffix(".json")
    made = provenance()
    about = {"command": made["command"], "commit": made["commit"], "oracle": oracle}
    content = {**about, "runs": record}
    write_atomic(table, to_json_bytes(content))
    if options.json:
        print_json(content)
    else:
        print(f"figure: {picture}\ntable:  {table}")
    return 0


def _print_noise(record: dict[str, Any], oracle: dict[str, Any]) -> None:
    """The noise of runs at some checkpoints, and what it does to rewards."""
    from irrl.analysis.noise import (
        DELTA_HEADER,
        REWARD_HEADER,
        delta_cells,
        each_once,
        oracle_text,
        reward_cells,
    )

    deltas = ((n, (str(d["step"]), *delta_cells(d))) for n, f in record.items() for d in f["delta"])
    title = f"discriminator noise. {oracle_text(oracle)}"
    print_table(["run", "step", *DELTA_HEADER], each_once(deltas), title)
    rewards = (
        (name, (str(r["step"]), r["reward"], *reward_cells(r)))
        for name, found in record.items()
        for r in found["rewards"]
    )
    print_table(
        ["run", "step", "reward", *REWARD_HEADER],
        each_once(rewards),
        "noise of the reward: measured, and predicted from the moments of delta",
    )
