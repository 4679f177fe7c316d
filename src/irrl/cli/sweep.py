"""The verbs that train many runs: `irrl sweep`, and `irrl compare`, which is one with a table."""

import os
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irrl.cli.flags import (
    Parser,
    add_settings,
    first_word,
    given_settings,
    known_options,
    parse_settings,
    reward_names,
    setting_names,
)
from irrl.cli.tables import print_table
from irrl.errors import UserError

if TYPE_CHECKING:
    from irrl.runs.run import Run
    from irrl.sweeps.grid import Plan
    from irrl.sweeps.sweep import Engine, Job, Outcome

OUT = "runs/sweep"


def run_sweep(parser: Parser, arguments: list[str]) -> int:
    parser.epilog = (
        "Every setting takes values with commas between, 0..4 for 0,1,2,3,4; every combination is "
        "a run. A finished run is skipped, a half-finished one goes on."
    )
    from irrl.tasks.registry import task_names

    parser.add_argument(
        "what", metavar="TASK|FILE", help=f"{', '.join(task_names())}, or a TOML file"
    )
    parser.add_argument("--preset", metavar="A,B,...", help="see `irrl presets` (default: fast)")
    parser.add_argument("--out", metavar="DIR", help=f"folder for all of it (default: {OUT})")
    parser.add_argument("--dry-run", action="store_true", help="list the runs, and train none")
    _add_engine_options(parser)
    plan, options = _read_command(parser, arguments)
    from irrl.sweeps.grid import make_jobs

    jobs = make_jobs(plan)
    if options.dry_run:
        return _list_runs(jobs)
    failed = _train_all(jobs, _engine(options))
    _print_metrics(jobs, plan.out)
    return 1 if failed else 0


def run_compare(parser: Parser, arguments: list[str]) -> int:
    jobs, options = jobs_to_compare(parser, arguments)
    if _train_all(jobs, _engine(options)):
        return 1
    _print_comparison([job.folder for job in jobs], Path(options.out))
    return 0


# --- what is to be done ---


def jobs_to_compare(parser: Parser, arguments: list[str]) -> tuple[list["Job"], Any]:
    """The runs that a comparison is made of, and the options."""
    both = "clipped-linear,clipped-log"
    parser.option("--rewards", default=both, metavar="A,B,...", help="rewards to compare")
    parser.option("--seeds", default=3, metavar="N", help="seeds 0..N-1 of each")
    parser.add_argument(
        "--baselines",
        metavar="A,B,...",
        help="also scripted baselines, whose behaviour is not learned, for tasks that have some",
    )
    parser.add_argument(
        "--baseline-seeds", type=int, metavar="N", help="of each baseline (default: --seeds)"
    )
    parser.option("--out", default="runs/compare", metavar="DIR", help="folder for all of it")
    _add_engine_options(parser)
    options, given = parse_settings(parser, arguments, without=("reward", "seed"))
    if options.baseline_seeds is None:
        options.baseline_seeds = options.seeds
    from irrl.runs.config import at_least, at_most
    from irrl.sweeps.grid import MOST_RUNS

    at_least(1, seeds=options.seeds, baseline_seeds=options.baseline_seeds)
    at_most(MOST_RUNS, seeds=options.seeds, baseline_seeds=options.baseline_seeds)
    rewards = reward_names(options.rewards)
    if not rewards:
        raise UserError("rewards must name at least one reward, such as clipped-linear")
    from irrl.sweeps.grid import Plan, make_jobs

    grid: dict[str, list[Any]] = {"reward": rewards, "seed": list(range(options.seeds))}
    plan = Plan(options.task, [options.preset], given, grid, Path(options.out))
    return make_jobs(plan) + _baselines(plan, options), options


def _baselines(plan: "Plan", options: Any) -> list["Job"]:
    """Runs beside a comparison that learn to answer, but not how to behave."""
    from irrl.errors import unknown_name
    from irrl.sweeps.sweep import Job
    from irrl.tasks import find_task, make_config

    known = find_task(plan.task).scripted_baselines
    jobs = []
    for name in dict.fromkeys(filter(None, (options.baselines or "").split(","))):
        if not known:
            raise UserError(f"{plan.task} has no scripted baselines: leave out --baselines")
        if name not in known:
            raise UserError(unknown_name("scripted baseline", name, known))
        for seed in range(options.baseline_seeds):
            chosen = {**plan.settings, "reward": plan.grid["reward"][0], **known[name]}
            config = make_config(plan.task, plan.presets[0], **chosen, seed=seed)
            jobs.append(Job(f"{name} seed {seed}", plan.out / name / f"seed-{seed}", config))
    return jobs


def _read_command(parser: Parser, arguments: list[str]) -> tuple["Plan", Any]:
    """A plan from the file, if one is named, and from flags, which come before what it says."""
    from irrl.sweeps.grid import Plan, parse_values, read_plan
    from irrl.tasks import find_task, make_config
    from irrl.tasks.contract import DEFAULT_PRESET
    from irrl.tasks.registry import task_names

    word = first_word(parser, arguments, lambda w: w in task_names() or w.endswith(".toml"))
    if word.endswith(".toml"):
        plan = read_plan(Path(word), DEFAULT_PRESET)
    else:
        plan = Plan(find_task(word).name, [DEFAULT_PRESET], {}, {}, Path(OUT))
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
        except UserError as error:
            raise ArgumentTypeError(str(error)) from None
        except ValueError:
            kind = getattr(parse, "__name__", "value")
            raise ArgumentTypeError(f"invalid {kind} value in {text!r}") from None

    return values


def _list_runs(jobs: Sequence["Job"]) -> int:
    from irrl.sweeps.sweep import is_finished, steps_done
    from irrl.tasks import check_folder

    rows, finished = [], 0
    for job in jobs:
        check_folder(job.folder, job.config)
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
    from irrl.runs.config import at_least, at_most

    workers = options.workers
    if workers is not None:
        at_least(1, workers=workers)
        at_most(1_024, workers=workers)
    else:
        workers = os.cpu_count() or 1
    at_least(0, gpus=options.gpus)
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
    with Watch(jobs, tasks.task_of(jobs[0].config).primary.name) as watch:
        failed = run_all(jobs, tasks.train_in, engine, watch.look)
    for outcome in failed:
        print(f"irrl: {outcome.job.name} failed: {outcome.error}", file=sys.stderr)
    return failed


# --- what came of it ---


def _print_metrics(jobs: Sequence["Job"], out: Path) -> None:
    """The primary metric over the seeds of each reward and combination of settings."""
    from irrl.analysis.ranges import range_in
    from irrl.analysis.stats import mean_estimate
    from irrl.analysis.tables import column_title
    from irrl.sweeps.sweep import is_finished
    from irrl.tasks import checked_run, task_of

    task = task_of(jobs[0].config)
    primary = task.primary.name
    groups: dict[Path, list[Run]] = {}
    for job in filter(is_finished, jobs):
        groups.setdefault(job.folder.parent, []).append(checked_run(job.folder))
    rows = []
    for folder, runs in groups.items():
        bounds = range_in(task, runs[0].config, primary)
        estimate = mean_estimate([run.final(primary) for run in runs]).within(*bounds)
        hours = sum(run.final("seconds") for run in runs) / 3600.0
        rows.append([str(folder.relative_to(out)), str(len(runs)), str(estimate), f"{hours:.2f}"])
    header = ["runs", "seeds", column_title(primary), "hours in all"]
    print_table(header, rows, "mean over seeds [95 % interval], or (up to three seeds)")
    for folder in dict.fromkeys(folder.parent for folder in groups):
        print(f"figure: irrl plot {folder} -o {folder / 'comparison.png'}")


def _print_comparison(folders: list[Path], out: Path) -> None:
    from irrl.analysis.compare import comparison
    from irrl.analysis.plots import plot_comparison, save_figure
    from irrl.analysis.tables import note_below, save_comparison, table_rows
    from irrl.tasks import one_task, open_run

    runs = [open_run(folder) for folder in folders]
    task, result = one_task(runs), comparison(runs)
    save_comparison(out, result, task)
    picture = save_figure(plot_comparison(runs), out / "comparison.png")
    header, rows = table_rows(result, task)
    print_table(header, rows, note_below(header))
    print(f"figure: {picture}\ntable:  {out / 'comparison.md'}")
