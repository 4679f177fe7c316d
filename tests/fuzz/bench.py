"""Run folders to damage, and what is known of them."""

import contextlib
import json
import shutil
from typing import Any, NamedTuple

from hypothesis import strategies as st

from irrl.runs.checkpoint import checkpoint_paths
from irrl.runs.config import flag_name
from tests.fuzz.mutations import Mutation, copy_of, mutate, mutations
from tests.fuzz.oracle import MEASURING, STOPPED, VERBS, arguments_of, check, measured, run_command

ALWAYS_REFUSED = ("train over it",)  # whatever the folder holds, and by design


def cases_of(verbs):
    """A verb and what was done to the folder before."""
    return st.tuples(st.sampled_from(sorted(verbs)), mutations)


cases = cases_of(VERBS)


class Bench(NamedTuple):
    """A finished run, the same when it was half done, and a place to damage copies of them."""

    finished: Any
    stopped: Any  # None where going on would take too long
    place: Any
    decoy: Any
    expected: dict[str, Any]


def make_bench(task, run, fine, place, settings=None, goes_on=True):
    """From a finished run and another one, of the next seed, that is never damaged."""
    place.mkdir(parents=True, exist_ok=True)
    decoy = place / "decoy"
    decoy.write_text("precious\n" * 1000)
    (place / "out").mkdir()
    chosen = dict(settings or {})
    reward = chosen.pop("reward", "clipped-linear")
    copy_of(fine, place / "both" / reward / "seed-1")  # where a sweep has its runs
    stopped = copy_of(run, place / "stopped")
    (stopped / "summary.json").unlink()
    paths = checkpoint_paths(stopped / "checkpoints")
    middle = (len(paths) - 1) // 2
    for path in paths[middle + 1 :]:
        shutil.rmtree(path)
    (stopped / "checkpoints" / "last").write_text(paths[middle].name + "\n")
    expected = {
        "task": task,
        "reward": reward,
        "flags": [f"--{flag_name(n)}={value}" for n, value in chosen.items()],
        "metrics": (run / "metrics.jsonl").read_bytes(),
        "eval": evaluations(run, place / "whole"),
        "measured": {},  # when it is first asked for: it takes a while
    }
    return Bench(run, stopped if goes_on else None, place, decoy, expected)


def verbs_of(bench):
    """Verbs that can be done with the run as it was: of others nothing can be learned."""
    apart = () if bench.stopped is not None else STOPPED
    tried = [verb for verb in VERBS if verb not in (*apart, *ALWAYS_REFUSED)]
    return [*ALWAYS_REFUSED, *(verb for verb in tried if attempt(bench, verb, None) == 0)]


def measurement(bench, verb):
    """What a measurement says of the run as it was; None if it cannot be made."""
    pair, out = bench.place / "both" / bench.expected["reward"], bench.place / "out"
    run = copy_of(bench.finished, pair / "seed-0")
    code, _, told = run_command(arguments_of(verb, run, pair / "seed-1", out, bench.expected))
    assert code in (0, 2), told
    return measured(verb, out) if code == 0 else None


def evaluations(run, place):
    """What `irrl eval` says of each checkpoint of a run."""
    copy, found = copy_of(run, place), {}
    (copy / "summary.json").unlink()  # the last checkpoint of a finished run is its newest
    for path in checkpoint_paths(copy / "checkpoints"):
        (copy / "checkpoints" / "last").write_text(path.name + "\n")
        code, said, told = run_command(["eval", copy, "--json"])
        assert code == 0, told
        row = json.loads(said)
        found[str(row["step"])] = row
    return found


def attempt(bench, verb, mutation: Mutation):
    """Damage a copy of the run and look at what a verb makes of it; returns the exit code."""
    pair, out = bench.place / "both" / bench.expected["reward"], bench.place / "out"
    verb = "eval" if verb in STOPPED and bench.stopped is None else verb
    if verb in MEASURING and verb not in bench.expected["measured"]:
        bench.expected["measured"][verb] = measurement(bench, verb)
    run = copy_of(bench.stopped if verb in STOPPED else bench.finished, pair / "seed-0")
    shutil.rmtree(out / "new", ignore_errors=True)
    if mutation is not None:
        with contextlib.suppress(IndexError, KeyError, ValueError, TypeError):
            mutate(run, mutation, bench.decoy)
    expected = bench.expected
    return check(verb, run, pair / "seed-1", out, bench.decoy, expected,
                 mutation is None or not mutation.resealed)  # fmt: skip
