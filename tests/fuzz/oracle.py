"""What must hold for every command on every folder, whatever is in it."""

import contextlib
import io
import json
import os
import resource
import signal
import warnings

from irrl.cli.main import main

SECONDS = 20  # of the processor: other work on this machine does not count
PATIENCE = 120  # seconds by the clock, for what only waits
BYTES = 1 << 30

# fmt: off
VERBS = {  # name -> arguments; {run}: the folder, {fine}: one beside it that is as it should be
    "eval": ("eval", "{run}", "--json"),
    "plot": ("plot", "{run}", "-o", "{out}/plot.png", "--force"),
    "plot both": ("plot", "{run}", "{fine}", "-o", "{out}/plot.png", "--force"),
    "report": ("report", "{run}", "-o", "{out}/report.html", "--force"),
    "report both": ("report", "{both}", "-o", "{out}/report.html", "--force"),
    "figure": ("figure", "reward-comparison", "{run}", "-o", "{out}/figure.png", "--force"),
    "occupancy": ("figure", "occupancy", "{run}", "-o", "{out}/figure.png", "--force"),
    "play": ("play", "{run}", "--episodes", "1", "--seed", "1", "-o", "{out}/play.png", "--force"),
    "noise": (
        "noise", "measure", "{fine}", "--oracle", "{run}", "--episodes", "20", "--checkpoints",
        "1", "-o", "{out}/noise.png", "--force",
    ),
    "resume": ("resume", "{run}"),
    "go on": ("resume", "{run}"),  # with a run that was stopped before its end
}
# fmt: on


class BreachError(AssertionError):
    """A promise that was not kept."""


class TooLongError(Exception):
    pass


def too_long(signum, frame):
    raise TooLongError


def run_command(arguments):
    """Exit code, standard output and error of a command in this process, within the limits."""
    out, err = io.StringIO(), io.StringIO()
    before = [(sign, signal.signal(sign, too_long)) for sign in (signal.SIGPROF, signal.SIGALRM)]
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.alarm(PATIENCE)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            try:
                code = main([str(a) for a in arguments])
            except SystemExit as end:
                code = end.code
    except TooLongError:
        raise BreachError(f"more than {SECONDS} s") from None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        for sign, handler in before:
            signal.signal(sign, handler)
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak)
    if grown > BYTES:
        raise BreachError(f"{grown} bytes of memory")
    return code, out.getvalue(), err.getvalue()


def content_of(folder):
    """Every file of a folder; a large one by its size, what is no plain file by its kind."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        status = path.lstat()
        if path.is_symlink() or not path.is_file():
            found[name] = (status.st_mode, os.readlink(path) if path.is_symlink() else None)
        elif status.st_size > 1 << 24:
            found[name] = status.st_size
        else:
            found[name] = path.read_bytes()
    return found


def check(verb, run, fine, out, decoy, expected, same_numbers=True):
    """Run a verb on a folder, and raise a BreachError if a promise was not kept; returns the code.

    ``expected`` has what ``eval --json`` says of the run as it was, and what a resumed one has;
    with ``same_numbers`` nothing else may be said.
    """
    both = run.parent
    names = {"run": run, "fine": fine, "both": both, "out": out, "task": expected["task"]}
    arguments = [argument.format(**names) for argument in VERBS[verb]]
    before, secret = content_of(both), decoy.read_bytes()
    code, said, told = run_command(arguments)
    if code not in (0, 2):
        raise BreachError(f"exit code {code}: {told}")
    lines = told.splitlines()
    errors = [line for line in lines if line.startswith("irrl: error: ")]
    if code == 2 and (len(errors) != 1 or not all(line.startswith("irrl: ") for line in lines)):
        raise BreachError(f"not one line: {told!r}")
    if decoy.read_bytes() != secret:
        raise BreachError("a file outside was changed")
    after = content_of(both)
    # Numbers that are large, and whose digest is right, can be trained on: that is told, too.
    went_on = verb in ("resume", "go on") and (
        code == 0 or ("diverged" in told and not same_numbers)
    )
    if after != before and not went_on:
        changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        raise BreachError(f"files were changed: {changed}")
    if code == 0 and same_numbers:
        no_misreading(verb, run, said, after, expected)
    return code


def no_misreading(verb, run, said, after, expected):
    if verb == "eval":
        got = json.loads(said)
        if got != expected["eval"].get(str(got["step"])):
            raise BreachError(f"eval says other numbers: {got}")
    if verb in ("resume", "go on"):
        metrics = after.get(f"{run.name}/metrics.jsonl")
        if metrics != expected["metrics"]:
            raise BreachError("the metrics are others than those of the run as it was")
