"""The command line: verbs only. Each verb's work is done elsewhere, and imported when needed."""

import argparse
import dataclasses
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from irrl.errors import UserError

ABOUT = "irrl: train a policy on rewards from a discriminator that is still learning itself."


class Parser(argparse.ArgumentParser):
    """Errors in one line that says where to look, exit code 2."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"irrl: error: {message} (see `{self.prog} --help`)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a verb; return the exit code: 0 done, 1 some runs failed, 2 impossible, 130 stopped."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    verb = arguments[0] if arguments else "--help"
    if verb in ("-h", "--help"):
        print(_overview())
        return 0
    if verb == "--version":
        from importlib.metadata import version

        print(f"irrl {version('irrl')}")
        return 0
    try:
        if verb not in VERBS:
            from irrl.rewards import unknown_name

            raise UserError(unknown_name("command", verb, VERBS))
        summary, run_verb = VERBS[verb]
        parser = Parser(prog=f"irrl {verb}", description=summary)
        return run_verb(parser, arguments[1:])
    except UserError as error:
        print(f"irrl: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nirrl: stopped; what was checkpointed can be resumed", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _overview() -> str:
    lines = [ABOUT, "", "usage: irrl COMMAND ...", ""]
    lines += [f"  {name:<9} {summary}" for name, (summary, _) in VERBS.items()]
    lines += ["", "`irrl COMMAND --help` tells more, `irrl --version` the version."]
    return "\n".join(lines)


# --- training ---


def _train(parser: Parser, arguments: list[str]) -> int:
    parser.add_argument("--out", metavar="DIR", help="run folder (default: below runs/)")
    parser.add_argument("--tensorboard", action="store_true", help="also write DIR/tensorboard")
    options, settings = _parse_settings(parser, arguments)
    from irrl.run import Run
    from irrl.tasks import make_config

    config = make_config(options.task, options.preset, **settings)
    name = f"{config.task}-{options.preset}-{settings.get('reward', 'default')}"
    run = Run.create(options.out or f"runs/{name}-seed{settings.get('seed', 0)}", config)
    return _train_and_tell(run, options.tensorboard)


def _resume(parser: Parser, arguments: list[str]) -> int:
    parser.add_argument("run", metavar="DIR", help="folder of the run")
    parser.add_argument("--tensorboard", action="store_true", help="also write DIR/tensorboard")
    options = parser.parse_args(arguments)
    from irrl.run import Run

    run = Run.open(options.run)
    if run.is_finished:
        run.rows()  # a damaged file should not go unnoticed
        print(f"{run.folder} is finished already")
        _print_summary(run.summary())
        return 0
    return _train_and_tell(run, options.tensorboard)


def _train_and_tell(run: Any, tensorboard: bool) -> int:
    from irrl import tasks
    from irrl.progress import Bars

    config = tasks.config_of(run)
    total = run.settings["iterations"]
    with Bars(tasks.MERIT[config.task]) as bars:
        run.listeners.append(lambda row: bars.update(str(run.folder), row["step"], total, row))
        if tensorboard:
            from irrl.tensorboard import follow

            follow(run)
        try:
            summary = tasks.train(run)
        except KeyboardInterrupt:
            raise UserError(f"stopped; continue with `irrl resume {run.folder}`") from None
    print(run.folder)
    _print_summary(summary)
    return 0


def _print_summary(summary: dict[str, Any]) -> None:
    for name, value in summary.items():
        if not isinstance(value, list):
            shown = f"{value:.4g}" if isinstance(value, float) and abs(value) < 1e4 else value
            print(f"  {name:<32} {shown if not isinstance(shown, float) else round(shown)}")


def _eval(parser: Parser, arguments: list[str]) -> int:
    parser.add_argument("run", metavar="DIR", help="folder of a run, finished or not")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    import json

    from irrl import tasks
    from irrl.run import Run

    step, row = tasks.evaluate(Run.open(options.run))
    if options.json:
        print(json.dumps({"step": step, **row}, indent=1))
    else:
        print(f"{options.run} at step {step}")
        _print_summary(row)
    return 0


# --- comparing ---


def _compare(parser: Parser, arguments: list[str]) -> int:
    parser.add_argument(
        "--rewards",
        default="clipped-linear,clipped-log",
        metavar="A,B,...",
        help="rewards to compare (default: %(default)s)",
    )
    parser.add_argument(
        "--seeds",
        type=int,
        default=3,
        metavar="N",
        help="seeds 0..N-1 of each (default: %(default)s)",
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        default="runs/compare",
        help="folder for all runs and results (default: %(default)s)",
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, metavar="N",
                        help="processes at a time (default: one per core)")  # fmt: skip
    options, settings = _parse_settings(parser, arguments, without=("reward", "seed"))
    for name in ("seeds", "workers"):
        if getattr(options, name) < 1:
            raise UserError(f"{name} must be at least 1, got {getattr(options, name)}")
    rewards = list(dict.fromkeys(_reward_names(options.rewards)))
    if not rewards:
        raise UserError("rewards must name at least one reward, such as clipped-linear")

    from irrl import tasks
    from irrl.progress import Bars
    from irrl.sweep import Job, run_all

    out = Path(options.out)
    jobs = []
    for seed in range(options.seeds):
        for reward in rewards:
            chosen = {**settings, "reward": reward, "seed": seed}
            config = tasks.make_config(options.task, options.preset, **chosen)
            jobs.append(Job(f"{reward} seed {seed}", out / reward / f"seed-{seed}", config))
    totals = {job.name: job.config.to_json()["iterations"] for job in jobs}
    with Bars(tasks.MERIT[options.task]) as bars:
        failures = run_all(
            jobs,
            tasks.train,
            min(options.workers, len(jobs)),
            lambda name, row: bars.update(name, row["step"], totals[name], row),
        )
    for failure in failures:
        print(f"irrl: {failure.name} failed: {failure.error}", file=sys.stderr)
    if failures:
        return 1
    _tell_comparison([str(job.folder) for job in jobs], out, out / "comparison.png")
    return 0


def _plot(parser: Parser, arguments: list[str]) -> int:
    parser.add_argument("runs", nargs="+", metavar="DIR", help="run folders, or folders of runs")
    parser.add_argument("-o", "--output", default="comparison.png", metavar="FILE",
                        help="PNG, SVG or PDF (default: %(default)s)")  # fmt: skip
    options = parser.parse_args(arguments)
    from irrl.plots import save_figure
    from irrl.run import find_runs

    runs = find_runs(options.runs)
    print(save_figure(_task_figures(runs[0].task).comparison_figure(runs), options.output))
    return 0


def _tell_comparison(folders: list[str], out: Path, picture: Path) -> None:
    from rich.table import Table

    from irrl.plots import save_figure
    from irrl.report import comparison, save_comparison, table_rows
    from irrl.run import find_runs

    runs = find_runs(folders)
    figures = _task_figures(runs[0].task)
    result = comparison(runs, figures.METRICS)
    save_comparison(out, result, figures.METRICS)
    save_figure(figures.comparison_figure(runs), picture)
    header, rows = table_rows(result, figures.METRICS)
    table = Table(*header, caption="mean over seeds [95 % bootstrap interval]")
    for row in rows:
        table.add_row(*row)
    _console().print(table)
    print(f"figure: {picture}\ntable:  {out / 'comparison.md'}")


def _task_figures(task: str) -> Any:
    from importlib import import_module

    return import_module(f"irrl.tasks.{task}.figure")


# --- looking things up ---


def _presets(parser: Parser, arguments: list[str]) -> int:
    parser.parse_args(arguments)
    from irrl.config import flag_name
    from irrl.presets import DEFAULT_PRESET, PRESETS

    for task, presets in PRESETS.items():
        for name, preset in presets.items():
            default = " (default)" if name == DEFAULT_PRESET else ""
            print(f"{task} --preset {name}{default}: {preset.description}")
            for setting, value in preset.settings.items():
                print(f"    --{flag_name(setting)} {value}")
    return 0


def _rewards(parser: Parser, arguments: list[str]) -> int:
    parser.add_argument(
        "--classes",
        type=int,
        default=10,
        metavar="K",
        help="number of labels, for the prior p = 1/K (default: %(default)s)",
    )
    parser.add_argument(
        "--plot",
        nargs="?",
        const="rewards.png",
        metavar="FILE",
        help="draw reward against posterior (default: rewards.png)",
    )
    parser.add_argument("--rewards", metavar="A,B,...", help="only these rewards")  # fmt: skip
    options = parser.parse_args(arguments)
    if options.classes < 2:
        raise UserError(f"classes must be at least 2, got {options.classes}")
    from irrl.noise import slope_at_prior
    from irrl.rewards import REWARDS

    names = _reward_names(options.rewards) or list(REWARDS)
    prior = 1.0 / options.classes
    if options.plot:
        from irrl.plots import reward_shapes, save_figure

        shown = _reward_names(options.rewards) or [
            f"clipped-{name}"
            for name in ("log", "root-4", "root-2", "log1p", "linear", "exp", "power-2", "power-3",
                         "power-6")
        ]  # fmt: skip
        print(save_figure(reward_shapes(_of_posterior(shown), prior), options.plot))
        return 0
    from rich.table import Table

    table = Table("name", "reward", "range", f"slope at p = {prior:.3g}", box=None)
    for name in names:
        slope = f"{slope_at_prior(name, prior):.4g}" if REWARDS[name].shape else "-"
        table.add_row(name, REWARDS[name].formula, REWARDS[name].range, slope)
    _console().print(table)
    print("q: posterior of the label, p: its prior, y: the label; slope: from above, where clipped")
    return 0


def _noise(parser: Parser, arguments: list[str]) -> int:
    parser.add_argument("what", choices=["theory"], help="theory: bias and variance of the reward")
    parser.add_argument(
        "--rewards",
        default="log,root-2,linear,power-2,power-6",
        metavar="A,B,...",
        help="rewards to show (default: %(default)s)",
    )
    parser.add_argument(
        "--family", default="normal", help="normal, laplace or uniform (default: %(default)s)"
    )
    parser.add_argument(
        "--scale",
        type=float,
        default=0.05,
        metavar="S",
        help="standard deviation of the noise before it is cut to valid "
        "probabilities (default: %(default)s)",
    )
    parser.add_argument(
        "--classes",
        type=int,
        default=10,
        metavar="K",
        help="number of labels, for the prior 1/K (default: %(default)s)",
    )
    parser.add_argument("-o", "--output", default="noise-theory.png", metavar="FILE",
                        help="PNG, SVG or PDF (default: %(default)s)")  # fmt: skip
    options = parser.parse_args(arguments)
    if options.classes < 2:
        raise UserError(f"classes must be at least 2, got {options.classes}")
    from irrl.noise import DeltaNoise, exact_noise, expansion_valid_from, taylor_noise
    from irrl.plots import noise_theory, save_figure

    names = _of_posterior(_reward_names(options.rewards))
    prior = 1.0 / options.classes
    try:
        noise = DeltaNoise(options.family, options.scale)
    except ValueError as error:
        raise UserError(str(error)) from None
    from rich.table import Table

    table = Table("reward", "p", "bias", "second order", "deviation", "second order", "valid for")
    for name in names:
        valid_from = expansion_valid_from(name, noise, prior)
        valid = "nowhere" if valid_from is None else f"p >= {valid_from:.2f}"
        first_columns = (name, valid)
        for p in sorted({prior, 0.3, 0.6, 0.9}):
            exact = exact_noise(name, p, noise, prior)
            taylor = taylor_noise(name, p, noise.moments(p), prior)
            figures = (exact.bias, taylor.bias, exact.deviation, taylor.deviation)
            label, validity = first_columns
            table.add_row(label, f"{p:.2f}", *(f"{x:+.4f}" for x in figures), validity)
            first_columns = ("", "")
    _console().print(table)
    print("valid: bias and deviation within a tenth of the exact deviation")
    print(save_figure(noise_theory(names, noise, prior), options.output))
    return 0


def _console() -> Any:
    """Where tables go: as wide as they need to be when not on a terminal."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else 200
    return Console(width=width, highlight=False, markup=False)


def _reward_names(text: str | None) -> list[str]:
    from irrl.rewards import REWARDS, unknown_name

    names = [name for name in (text or "").split(",") if name]
    for name in names:
        if name not in REWARDS:
            raise UserError(unknown_name("reward", name, REWARDS))
    return names


def _of_posterior(names: list[str]) -> list[str]:
    from irrl.rewards import REWARDS

    for name in names:
        if REWARDS[name].shape is None or REWARDS[name].needs_ensemble:
            raise UserError(f"{name} is not a function of the posterior alone: it has no curve")
    return names


# --- settings as flags ---


def _parse_settings(
    parser: Parser, arguments: list[str], without: tuple[str, ...] = ()
) -> tuple[argparse.Namespace, dict[str, Any]]:
    """Parse TASK, --preset, the options of the verb, and a flag for every setting of the task.

    Returns all options, and apart from them the settings that were given.
    """
    from irrl.config import flag_name, value_type
    from irrl.presets import DEFAULT_PRESET
    from irrl.tasks import CONFIGS, config_class

    parser.add_argument("task", metavar="TASK", help=", ".join(CONFIGS))
    parser.add_argument("--preset", default=DEFAULT_PRESET, metavar="NAME",
                        help="see `irrl presets` (default: %(default)s)")  # fmt: skip
    task = next((a for a in arguments if not a.startswith("-")), None)
    if task is None:
        parser.parse_args(arguments)  # shows the help, or says that TASK is missing
    cls = config_class(str(task))
    group = parser.add_argument_group(f"settings of {task}", cls.__doc__)
    fields = [f for f in dataclasses.fields(cls) if f.name not in without]
    for f in fields:
        kind, _ = value_type(cls, f.name)
        default = "" if f.default is None else f" (default: {f.default})"
        group.add_argument(f"--{flag_name(f.name)}", dest=f.name, type=kind,
                           metavar=kind.__name__.upper(), default=argparse.SUPPRESS,
                           help=f.metadata["help"].replace("%", "%%") + default)  # fmt: skip
    options = parser.parse_args(arguments)
    given = {f.name: getattr(options, f.name) for f in fields if hasattr(options, f.name)}
    return options, given


VERBS: dict[str, tuple[str, Callable[[Parser, list[str]], int]]] = {
    "train": ("train one run", _train),
    "resume": ("go on with a run that was stopped", _resume),
    "eval": ("evaluate the last checkpoint of a run", _eval),
    "compare": ("train several rewards over several seeds; table and figure", _compare),
    "plot": ("draw runs that are there", _plot),
    "presets": ("list the presets of each task", _presets),
    "rewards": ("list the rewards: formula, range, slope at the prior; --plot", _rewards),
    "noise": ("bias and variance of the reward under discriminator noise", _noise),
}


if __name__ == "__main__":
    sys.exit(main())
