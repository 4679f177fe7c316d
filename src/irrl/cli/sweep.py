"""The verbs that train many runs: `irrl sweep`, and `irrl compare`, which is one with a table."""

import os
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irrl.errors import UserError
from irrl.cli.flags import (
    Parser,
    add_settings,
    at_least,
    first_word,
    given_settings,
    known_options,
    parse_settings,
    reward_names,
    setting_names,
)
from irrl.cli.tables import print_table

if TYPE_CHECKING:
    from irrl.sweeps.grid import Plan
    from irrl.sweeps.sweep import Engine, Job, Outcome

OUT = "runs/sweep"


def run_sweep(parser: Parser, arguments: list[str]) -> int:
    parser.epilog = (
        "Every setting takes values with commas between, 0..4 for 0,1,2,3,4; every combination is "
        "a run. A finished run is skipped, a half-finished one goes on."
    )
    parser.add_argument(
        "what", metavar="TASK|FILE", help="skills, digits, counting, or a TOML file"
    )
    parser.add_argument("--preset", metavar="A,B,...", help="see `irrl presets` (default: fast)")
    parser.add_argument("--out", metavar="DIR", help=f"folder for all of it (default: {OUT})")
    parser.add_argument("--dry-run", action="store_true", help="list the runs, and train none")
    _add_engine_options(parser)
    plan, options = _read_command(parser, arguments)
    from irrl import tasks
    from irrl.sweeps.grid import make_jobs

    jobs = make_jobs(plan, tasks.make_config)
    if options.dry_run:
        return _list_runs(jobs)
    failed = _train_all(jobs, _engine(options))
    _tell_figures(jobs, plan.out)
    return 1 if failed else 0


def run_compare(parser: Parser, arguments: list[str]) -> int:
    both = "clipped-linear,clipped-log"
    parser.option("--rewards", default=both, metavar="A,B,...", help="rewards to compare")
    parser.option("--seeds", default=3, metavar="N", help="seeds 0..N-1 of each")
    parser.add_argument(
        "--yardsticks",
        metavar="A,B,...",
        help="counting: also walkers that do not learn where to go: stay, random, sweep",
    )
    parser.add_argument(
        "--yardstick-seeds", type=int, metavar="N", help="of each yardstick (default: --seeds)"
    )
    parser.option("--out", default="runs/compare", metavar="DIR", help="folder for all of it")
    _add_engine_options(parser)
    options, given = parse_settings(parser, arguments, without=("reward", "seed", "walker"))
    if options.yardstick_seeds is None:
        options.yardstick_seeds = options.seeds
    at_least(options, 1, "seeds", "yardstick_seeds")
    rewards = reward_names(options.rewards)
    if not rewards:
        raise UserError("rewards must name at least one reward, such as clipped-linear")
    from irrl import tasks
    from irrl.sweeps.grid import Plan, make_jobs

    grid: dict[str, list[Any]] = {"reward": rewards, "seed": list(range(options.seeds))}
    plan = Plan(options.task, [options.preset], given, grid, Path(options.out))
    jobs = make_jobs(plan, tasks.make_config) + _yardsticks(plan, options)
    if _train_all(jobs, _engine(options)):
        return 1
    _tell_comparison([str(job.folder) for job in jobs], plan.out)
    return 0


# --- what is to be done ---


def _yardsticks(plan: "Plan", options: Any) -> list["Job"]:
    """Runs beside a comparison that learn to answer, but not where to go."""
    from irrl.errors import unknown_name
    from irrl.sweeps.sweep import Job
    from irrl.tasks import config_class, make_config

    known = config_class(plan.task).yardsticks
    jobs = []
    for walker in dict.fromkeys(filter(None, (options.yardsticks or "").split(","))):
        if not known:
            raise UserError(f"{plan.task} has no yardsticks: leave out --yardsticks")
        if walker not in known:
            raise UserError(unknown_name("yardstick", walker, known))
        for seed in range(options.yardstick_seeds):
            chosen = {"reward": plan.grid["reward"][0], "walker": walker, "seed": seed}
            config = make_config(plan.task, plan.presets[0], **plan.settings, **chosen)
            folder = plan.out / walker / f"seed-{seed}"
            jobs.append(Job(f"{walker} seed {seed}", folder, config))
    return jobs


def _read_command(parser: Parser, arguments: list[str]) -> tuple["Plan", Any]:
    """A plan from the file, if one is named, and from flags, which come before what it says."""
    from irrl.sweeps.grid import Plan, parse_values, read_plan
    from irrl.presets import DEFAULT_PRESET
    from irrl.tasks import CONFIGS, config_class, make_config

    word = first_word(parser, arguments, lambda w: w in CONFIGS or w.endswith(".toml"))
    if word.endswith(".toml"):
        plan = read_plan(Path(word), config_class, DEFAULT_PRESET)
    else:
        plan = Plan(config_class(word).task, [DEFAULT_PRESET], {}, {}, Path(OUT))
    preset = known_options(parser, arguments).preset
    presets = plan.presets if preset is None else parse_values(preset, str)
    shown = presets[0] if presets else DEFAULT_PRESET
    defaults = make_config(plan.task, shown)
    names = setting_names(plan.task)
    add_settings(parser, defaults, names, _values_reader)
    options = parser.parse_args(arguments)
    given = given_settings(options, names)
    single = {n: v[0] for n, v in given.items() if len(v) == 1 and n not in ("reward", "seed")}
    several = {name: values for name, values in given.items() if name not in single}
    settings = {n: v for n, v in {**plan.settings, **single}.items() if n not in several}
    grid = {n: v for n, v in {**plan.grid, **several}.items() if n not in single}
    out = plan.out if options.out is None else Path(options.out)
    return Plan(plan.task, presets, settings, grid, out), options


def _values_reader(parse: Callable[[str], Any], default: Any) -> Callable[[str], list[Any]]:
    from irrl.sweeps.grid import parse_values, separator_of

    def values(text: str) -> list[Any]:
        try:
            return parse_values(text, parse, separator_of(default))
        except ValueError:
            kind = getattr(parse, "__name__", "value")
            raise ArgumentTypeError(f"invalid {kind} value in {text!r}") from None

    return values


def _list_runs(jobs: Sequence["Job"]) -> int:
    from irrl.runs.run import Run
    from irrl.sweeps.sweep import is_finished, steps_done

    rows, finished = [], 0
    for job in jobs:
        Run.check(job.folder, job.config)
        finished += is_finished(job)
        done, total = steps_done(job), job.config.total_steps
        state = "finished" if is_finished(job) else f"{done:,} of {total:,}" if done else "new"
        rows.append([str(job.folder), state])
    print_table(["run", "state"], rows)
    print(f"{len(jobs)} runs, {finished} finished, {len(jobs) - finished} to do")
    return 0


# --- who does it ---


def _add_engine_options(parser: Parser) -> None:
    parser.option("--engine", default="local", metavar="NAME", help="local processes, or ray")
    parser.add_argument(
        "--workers", type=int, metavar="N", help="runs at a time (default: one for each core)"
    )
    parser.add_argument(
        "--address",
        metavar="HOST:PORT",
        help="ray: an existing cluster, or auto (default: one started on this machine)",
    )
    parser.option("--gpus", default=0.0, metavar="N", help="ray: GPUs of each run, such as 0.5")


def _engine(options: Any) -> "Engine":
    workers = options.workers
    if workers is not None:
        at_least(options, 1, "workers")
    else:
        workers = os.cpu_count() or 1
    at_least(options, 0, "gpus")
    if options.engine == "local":
        if options.address is not None or options.gpus:
            raise UserError("--address and --gpus need --engine ray")
        from irrl.sweeps.engine_local import local_engine

        return local_engine(workers)
    if options.engine != "ray":
        from irrl.errors import unknown_name

        raise UserError(unknown_name("engine", options.engine, ("local", "ray")))
    if options.address is not None and options.workers is not None:
        raise UserError("--workers is for this machine; a cluster runs as many as it has cores")
    from irrl.sweeps.engine_ray import ray_engine

    return ray_engine(options.address, workers, options.gpus)


def _train_all(jobs: Sequence["Job"], engine: "Engine") -> list["Outcome"]:
    from irrl import tasks
    from irrl.sweeps.sweep import is_finished, run_all
    from irrl.sweeps.watch import Watch

    for job in jobs:
        if not is_finished(job):
            tasks.check(job.config)
    with Watch(jobs, tasks.MERIT[jobs[0].config.task]) as watch:
        failed = run_all(jobs, tasks.train, engine, watch.look)
    for outcome in failed:
        print(f"irrl: {outcome.job.name} failed: {outcome.error}", file=sys.stderr)
    return failed


# --- what came of it ---


def _tell_figures(jobs: Sequence["Job"], out: Path) -> None:
    """The figure of merit over the seeds of each reward and combination of settings."""
    from irrl.runs.run import Run
    from irrl.analysis.stats import mean_estimate
    from irrl.sweeps.sweep import is_finished
    from irrl.tasks import MERIT

    merit = MERIT[jobs[0].config.task]
    groups: dict[Path, list[dict[str, Any]]] = {}
    for job in filter(is_finished, jobs):
        groups.setdefault(job.folder.parent, []).append(Run.open(job.folder).summary())
    rows = []
    for folder, summaries in groups.items():
        estimate = mean_estimate([summary[merit] for summary in summaries])
        hours = sum(summary["seconds"] for summary in summaries) / 3600.0
        rows.append(
            [str(folder.relative_to(out)), str(len(summaries)), str(estimate), f"{hours:.2f}"]
        )
    header = ["runs", "seeds", merit.replace("_", " "), "hours in all"]
    print_table(header, rows, "mean over seeds [95 % interval]")
    for folder in dict.fromkeys(folder.parent for folder in groups):
        print(f"figure: irrl plot {folder} -o {folder / 'comparison.png'}")


def _tell_comparison(folders: list[str], out: Path) -> None:
    from irrl.analysis.plots import save_figure
    from irrl.analysis.compare import TABLE_NOTE, comparison, save_comparison, table_rows
    from irrl.tasks import open_run, task_module

    runs = [open_run(folder) for folder in folders]
    figures = task_module(runs[0].task, "figure")
    result = comparison(runs, figures.METRICS)
    save_comparison(out, result, figures.METRICS)
    picture = save_figure(figures.comparison_figure(runs), out / "comparison.png")
    print_table(*table_rows(result, figures.METRICS), TABLE_NOTE)
    print(f"figure: {picture}\ntable:  {out / 'comparison.md'}")
