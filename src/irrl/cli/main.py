"""The command line: verbs only. The work is done elsewhere, and imported when it is needed."""

import io
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irrl.cli.completion import run_completion
from irrl.cli.data import run_data
from irrl.cli.doctor import run_doctor
from irrl.cli.flags import Parser, add_settings, first_word, given_settings, parse_settings
from irrl.cli.rewards import run_noise, run_rewards
from irrl.cli.show import run_figure, run_play, run_plot, run_report
from irrl.cli.stopping import STOPPED, in_order, tell, was_asked
from irrl.cli.sweep import run_compare, run_sweep
from irrl.cli.tables import add_json, print_json
from irrl.errors import UserError
from irrl.nn.distributed import current_world, joined

if TYPE_CHECKING:
    from irrl.runs.listeners import Tracker
    from irrl.runs.run import Run

WORKING = ("train", "resume", "compare", "sweep", "data")
"""Verbs that leave something behind: not to be heard out is not to be done."""

ABOUT = "irrl: train a policy on rewards from a discriminator that is still learning itself."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a verb; return the exit code: 0 done, 1 some runs failed, 2 impossible, 130 stopped,
    141 not heard out."""
    _require_streams()
    is_program = arguments is None
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    verb = arguments[0] if arguments else "--help"
    if verb in ("-h", "--help"):
        print(_overview())
        return 0
    if verb == "--version":
        from importlib.metadata import version

        print(f"irrl {version('irrl')}")
        return 0
    _write_any_name()
    try:
        with in_order(is_program):
            return _run(verb, arguments[1:])
    except UserError as error:
        return _fail(str(error))
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141 if verb in WORKING else 0
    except MemoryError as error:
        return _fail(f"not enough memory {error}".rstrip())
    except (OSError, OverflowError) as error:
        return _fail(str(error) or type(error).__name__)
    except RuntimeError as error:
        if "allocate memory" not in str(error) and "out of memory" not in str(error):
            raise
        return _fail(f"not enough memory: {str(error).splitlines()[0]}")


def _run(verb: str, arguments: list[str]) -> int:
    try:
        if os.getcwd() not in sys.path:  # where a reward of one's own may be, module:function
            sys.path.append(os.getcwd())
        if verb not in VERBS:
            from irrl.errors import unknown_name

            raise UserError(unknown_name("command", verb, VERBS))
        summary, run_verb = VERBS[verb]
        with joined() as world:
            if world.size > 1 and verb not in ("train", "resume"):
                raise UserError(f"irrl {verb} is for one process; start it without torchrun")
            code = run_verb(Parser(prog=f"irrl {verb}", description=summary), arguments)
            sys.stdout.flush()  # a pipe that was closed is noticed here, not after the exit code
            return code
    except (KeyboardInterrupt, Exception) as stop:
        if not isinstance(stop, KeyboardInterrupt) and not was_asked():
            raise
        resume = str(stop) if isinstance(stop, KeyboardInterrupt) else ""
        tell(resume or "what was checkpointed can be resumed")
        return STOPPED


def _fail(text: str) -> int:
    from irrl.runs.progress import say

    say(f"irrl: error: {' '.join(text.splitlines())}")
    return 2


def _require_streams() -> None:
    """What was closed is opened to nowhere: else a file of a run would be in its place."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (until the end)


def _write_any_name() -> None:
    """Folders may have names that are no text; they are shown escaped."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _overview() -> str:
    lines = [ABOUT, "", "usage: irrl COMMAND ...", ""]
    lines += [f"  {name:<10} {summary}" for name, (summary, _) in VERBS.items()]
    lines += ["", "`irrl COMMAND --help` tells more, `irrl --version` the version."]
    return "\n".join(lines)


# --- training ---


def _train(parser: Parser, arguments: list[str]) -> int:
    parser.add_argument("--out", metavar="DIR", help="run folder (default: below runs/)")
    _add_followers(parser)
    options, given = parse_settings(parser, arguments)
    from irrl import tasks

    config = tasks.make_config(options.task, options.preset, **given)
    name = f"{options.task}-{options.preset}-{config.reward}-seed{config.seed}".replace(":", "-")
    folder = Path("runs") / name if options.out is None else Path(options.out)
    from irrl.runs.run import check_new

    current_world().once(lambda: check_new(folder))
    trackers = _find_trackers(options)
    return _train_and_print(options, trackers, *tasks.begin(folder, config))


def _add_followers(parser: Parser) -> None:
    parser.add_argument("--tensorboard", action="store_true", help="also write DIR/tensorboard")
    parser.add_argument(
        "--listener",
        action="append",
        default=[],
        metavar="MODULE:FUNCTION",
        help="also tell your tracker each row of metrics; may be given several times",
    )
    add_json(parser, "print the summary as JSON")


def _resume(parser: Parser, arguments: list[str]) -> int:
    parser.add_argument("run", metavar="DIR", help="folder of the run")
    _add_followers(parser)
    options = parser.parse_args(arguments)
    from irrl.tasks import open_run

    world = current_world()
    run = world.once(lambda: open_run(options.run))
    if world.once(lambda: run.is_finished):
        world.once(run.rows)  # damage should not go unnoticed
        return _print_summary(options, f"{run.folder} is finished already", run, run.summary)
    return _train_and_print(options, _find_trackers(options), run)


def _find_trackers(options: Any) -> list["Tracker"]:
    from irrl.runs.listeners import find_tracker

    return [find_tracker(name) for name in options.listener]


def _train_and_print(
    options: Any, trackers: list["Tracker"], run: "Run", prepared: Any = None
) -> int:
    from irrl import tasks
    from irrl.runs.folder import abandon
    from irrl.runs.listeners import listen
    from irrl.runs.progress import Bars
    from irrl.runs.run import resume_command

    total = run.config.total_steps
    with Bars(tasks.task_of(run.config).primary.name) as bars:
        run.listeners.append(lambda row: bars.update(str(run.folder), row["step"], total, row))
        if options.tensorboard:
            from irrl.runs.tensorboard import follow

            follow(run)
        for tracker in trackers if current_world().is_first else ():
            try:
                listen(run, tracker)
            except UserError:
                if prepared is not None:
                    abandon(run.folder)
                raise
        try:
            summary = tasks.train(run, prepared)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"go on with `{resume_command(run.folder)}`") from None
    return _print_summary(options, str(run.folder), run, lambda: summary)


def _print_summary(options: Any, said: str, run: "Run", summary: Callable[[], Any]) -> int:
    metrics = current_world().once(summary)
    if options.json:
        print_json({"run": str(run.folder), **metrics})
    else:
        print(said)
        _print_metrics(metrics)
    return 0


def _eval(parser: Parser, arguments: list[str]) -> int:
    parser.add_argument(
        "run",
        metavar="DIR",
        help="folder of a run, finished or not; `irrl eval DIR --help`: how its test may differ",
    )
    add_json(parser)
    from irrl import tasks

    run = tasks.open_run(first_word(parser, arguments, lambda word: Path(word).is_dir()))
    config = run.config
    add_settings(parser, config, config.testable)
    options = parser.parse_args(arguments)
    step, row = tasks.evaluate(run, given_settings(options, config.testable))
    if options.json:
        print_json({"step": step, **row})
    else:
        print(f"{options.run} at step {step}")
        _print_metrics(row)
    return 0


def _print_metrics(metrics: dict[str, Any]) -> None:
    for name, value in metrics.items():
        if isinstance(value, int):
            print(f"  {name:<32} {value:,}")
        elif isinstance(value, float):
            print(f"  {name:<32} {value:,.4f}" if value < 1000 else f"  {name:<32} {value:,.0f}")


# --- looking things up ---


def _presets(parser: Parser, arguments: list[str]) -> int:
    add_json(parser, "print JSON")
    options = parser.parse_args(arguments)
    from irrl.runs.config import flag_name
    from irrl.tasks.contract import DEFAULT_PRESET
    from irrl.tasks.registry import all_tasks

    if options.json:
        print_json({n: {p: x._asdict() for p, x in t.presets.items()}
                    for n, t in all_tasks().items()})  # fmt: skip
        return 0
    for task in all_tasks().values():
        for name, preset in task.presets.items():
            default = " (default)" if name == DEFAULT_PRESET else ""
            print(f"{task.name} --preset {name}{default}: {preset.description}")
            for setting, value in preset.settings.items():
                print(f"    --{flag_name(setting)} {value}")
    return 0


VERBS: dict[str, tuple[str, Callable[[Parser, list[str]], int]]] = {
    "train": ("train one run", _train),
    "resume": ("go on with a run that was stopped", _resume),
    "eval": ("evaluate the last checkpoint of a run", _eval),
    "data": ("fetch or make what tasks learn from, and show samples of it", run_data),
    "compare": ("train several rewards over several seeds; table and figure", run_compare),
    "sweep": ("train a grid of settings, on this machine or a Ray cluster", run_sweep),
    "play": ("watch a trained policy: a sheet of episodes and a GIF", run_play),
    "plot": ("draw runs that are there, finished or not", run_plot),
    "figure": ("draw a figure of the paper from finished runs; --list", run_figure),
    "report": ("one page about finished runs: tables, curves, pictures, verdicts", run_report),
    "presets": ("list the presets of each task", _presets),
    "rewards": ("list the rewards: formula, range, slope at the prior; --plot", run_rewards),
    "noise": ("bias and variance of the reward under discriminator noise", run_noise),
    "doctor": (
        "say what is there and what is missing, with the line that brings it",
        run_doctor,
    ),
    "completion": ("print what makes bash, zsh or fish complete irrl's words", run_completion),
}


if __name__ == "__main__":
    sys.exit(main())
