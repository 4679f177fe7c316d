"""What must hold for every command on every folder, whatever is in it."""

import contextlib
import io
import json
import os
import re
import resource
import signal
import warnings
from unittest.mock import patch

from irrl.cli.main import main
from irrl.sweeps.sweep import attempt

SECONDS = 20  # of the processor: other work on this machine does not count
PATIENCE = 900  # seconds by the clock, for what only waits, on a machine that may be busy
BYTES = 1 << 30

# fmt: off
SMOKE = ("{task}", "--preset", "smoke", "{flags}")
TASK = (*SMOKE, "--reward", "{reward}")
GRADIENT = (
    "--checkpoints", "1", "--rewards", "linear", "-o", "{out}/gradient.png", "--force",
)
VERBS = {  # name -> arguments; {run}: the folder, {fine}: one beside it that is as it should be
    "eval": ("eval", "{run}", "--json"),
    "plot": ("plot", "{run}", "-o", "{out}/plot.png", "--force"),
    "plot both": ("plot", "{run}", "{fine}", "-o", "{out}/plot.png", "--force"),
    "report": ("report", "{run}", "-o", "{out}/report.html", "--force"),
    "report both": ("report", "{both}", "-o", "{out}/report.html", "--force"),
    "figure": ("figure", "reward-comparison", "{run}", "-o", "{out}/figure.png", "--force"),
    "occupancy": ("figure", "occupancy", "{run}", "-o", "{out}/figure.png", "--force"),
    "case study": ("figure", "case-study", "{run}", "-o", "{out}/figure.png", "--force"),
    "play": ("play", "{run}", "--episodes", "1", "--seed", "1", "-o", "{out}/play.png", "--force"),
    "noise": (
        "noise", "measure", "{fine}", "--oracle", "{run}", "--episodes", "20", "--checkpoints",
        "1", "-o", "{out}/noise.png", "--force",
    ),
    "gradient": ("noise", "gradient", "{run}", *GRADIENT),
    "gradient by an oracle": (
        "noise", "gradient", "{run}", "--oracle", "{fine}", "--episodes", "512", *GRADIENT,
    ),
    "gradient by it": (
        "noise", "gradient", "{fine}", "--oracle", "{run}", "--episodes", "512", *GRADIENT,
    ),
    "by an oracle": ("train", *TASK, "--oracle", "{run}", "--out", "{out}/new"),
    "train over it": ("train", *TASK, "--out", "{run}"),
    "resume": ("resume", "{run}"),
    "go on": ("resume", "{run}"),  # with a run that was stopped before its end
    "dry run": ("sweep", *TASK, "--seed", "0,1", "--out", "{both}", "--dry-run"),
    "sweep": ("sweep", *TASK, "--seed", "0,1", "--out", "{both}"),
    "sweep on": ("sweep", *TASK, "--seed", "0,1", "--out", "{both}"),  # with one that was stopped
    "compare": ("compare", *SMOKE, "--rewards", "{reward}", "--seeds", "2", "--out", "{both}"),
}
# fmt: on
STOPPED = ("go on", "sweep on")
MEASURING = {"noise": "noise.json", **dict.fromkeys(
    ("gradient", "gradient by an oracle", "gradient by it"), "gradient.json"
)}  # fmt: skip
TRAINING = (*STOPPED, "resume", "sweep", "compare")


class BreachError(AssertionError):
    """A promise that was not kept."""


class TooLongError(Exception):
    pass


def too_long(signum, frame):
    waited = signum == signal.SIGALRM
    raise TooLongError(f"{PATIENCE} s by the clock" if waited else f"{SECONDS} s")


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
            patch("irrl.sweeps.engine_local.local_engine", engine_of_this_process),
        ):
            warnings.simplefilter("ignore")
            try:
                code = main([str(a) for a in arguments])
            except SystemExit as end:
                code = end.code
    except TooLongError as error:
        raise BreachError(f"more than {error}") from None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        for sign, handler in before:
            signal.signal(sign, handler)
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak)
    if grown > BYTES:
        raise BreachError(f"{grown} bytes of memory")
    return code, out.getvalue(), err.getvalue()


def engine_of_this_process(workers):
    return lambda jobs, train: (attempt(job, train) for job in jobs)


def content_of(folder):
    """Every file of runs; a large one by its size, what is no plain file by its kind."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if name.startswith("comparison."):  # of `irrl compare`
            continue
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
    both = run.parent.parent
    before, secret = content_of(both), decoy.read_bytes()
    code, said, told = run_command(arguments_of(verb, run, fine, out, expected))
    require_one_line(code, told)
    if decoy.read_bytes() != secret:
        raise BreachError("a file outside was changed")
    if code and (out / "new").exists():
        raise BreachError("a run that could not begin left something")
    after = content_of(both)
    # Numbers that are large, and whose digest is right, can be trained on: that is told, too.
    went_on = verb in TRAINING and (code == 0 or ("diverged" in told and not same_numbers))
    if after != before and not went_on:
        changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        raise BreachError(f"files were changed: {changed}")
    if code == 0 and same_numbers:
        no_misreading(verb, run, out, said, after, expected)
    return code


def arguments_of(verb, run, fine, out, expected):
    names = {"run": run, "fine": fine, "both": run.parent.parent, "out": out, **expected}
    found = []
    for argument in VERBS[verb]:
        found += expected["flags"] if argument == "{flags}" else [argument.format(**names)]
    return found


def require_one_line(code, told):
    """Exit code 2 and a line; of sweeps also 1, and a line about each run that failed."""
    lines = told.splitlines()
    errors = [line for line in lines if line.startswith("irrl: error: ")]
    failed = [line for line in lines if re.match("irrl: .* failed: ", line)]
    if code not in (0, 2) and not (code == 1 and failed):
        raise BreachError(f"exit code {code}: {told}")
    if code == 2 and (len(errors) != 1 or not all(line.startswith("irrl: ") for line in lines)):
        raise BreachError(f"not one line: {told!r}")
    if any(re.search(r" failed: \w+(Error|Exception): ", line) for line in failed):
        raise BreachError(f"a run failed by what was no error of a user: {failed}")


def no_misreading(verb, run, out, said, after, expected):
    if verb == "eval":
        got = json.loads(said)
        if got != expected["eval"].get(str(got["step"])):
            raise BreachError(f"eval says other numbers: {got}")
    if verb in TRAINING:
        metrics = after.get(f"{run.parent.name}/{run.name}/metrics.jsonl")
        if metrics != expected["metrics"]:
            raise BreachError("the metrics are others than those of the run as it was")
    if verb in MEASURING and measured(verb, out) != expected["measured"][verb]:
        raise BreachError("other noise is told than that of the run as it was")


def measured(verb, out):
    """What a measurement left, but for names and times."""
    return list(json.loads((out / MEASURING[verb]).read_text())["runs"].values())
