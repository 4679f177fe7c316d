"""What a sweep runs: a task, presets, settings, and a grid of values for some of them.

A grid is typed as lists of values or read from a TOML file:

    task = "mine"                  # as `irrl train` calls it
    preset = "fast"                # or a list
    out = "runs/rates"             # a folder for all of it

    [settings]                     # of all runs
    batch-size = 64

    [grid]                         # every combination is a run
    reward = ["clipped-linear", "clipped-log"]
    seed = "0..4"                  # the same as [0, 1, 2, 3, 4]
    learning-rate = [0.05, 0.1]
"""

import dataclasses
import itertools
import math
import re
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from irrl.errors import UserError, shown, unknown_name
from irrl.runs.config import Config, flag_name, value_type
from irrl.runs.reading import JSON_BYTES
from irrl.sweeps.sweep import Job
from irrl.tasks import find_task, make_config
from irrl.tasks.registry import task_names

KEYS = ("task", "preset", "out", "settings", "grid")
MOST_RUNS = 100_000
LEVELS = ("reward", "seed")  # always in the name of a folder, as `irrl compare` has them


class Plan(NamedTuple):
    task: str
    presets: list[str]
    settings: dict[str, Any]
    grid: dict[str, list[Any]]
    out: Path


# --- values ---


def parse_values(text: str, parse: Callable[[str], Any], separator: str = ",") -> list[Any]:
    """Values from a list such as ``0.1,0.2``; ``0..4`` is 0,1,2,3,4."""
    return [value for part in text.split(separator) for value in _parse_part(part.strip(), parse)]


def _parse_part(part: str, parse: Callable[[str], Any]) -> list[Any]:
    span = re.fullmatch(r"(\d+)\.\.(\d+)", part)
    if span is None:
        return [parse(part)] if part else []
    first, last = map(int, span.groups())
    require_few(last - first + 1, part)
    return [parse(str(n)) for n in range(first, last + 1)]


def require_few(count: int, what: str) -> None:
    """Raise if a grid would have more runs than anybody could train."""
    if count > MOST_RUNS:
        raise UserError(f"{what} makes {shown(count)} runs, expected at most {MOST_RUNS}")


def separator_of(default: Any) -> str:
    """Between values of a setting; where a value has commas itself, a semicolon."""
    return ";" if isinstance(default, str) and "," in default else ","


# --- files ---


def read_plan(path: Path, preset: str) -> Plan:
    """A plan from a TOML file; ``preset`` if it names none."""
    content = _read_toml(path)
    for key in content:
        if key not in KEYS:
            raise UserError(f"{path}: {unknown_name('key', key, KEYS)}")
    if "task" not in content:
        raise UserError(f"{path} names no task; it needs a line such as task = '{task_names()[0]}'")
    cls = find_task(_text(path, content, "task")).config
    settings = {
        name: _value(path, cls, name, value)
        for name, value in _table(path, content, "settings", cls).items()
    }
    grid = {
        name: _values(path, cls, name, values)
        for name, values in _table(path, content, "grid", cls).items()
    }
    for name in settings.keys() & grid.keys():
        raise UserError(f"{path}: {flag_name(name)} is in [settings] and in [grid]; take one out")
    presets = content.get("preset", preset)
    out = _text(path, content, "out") if "out" in content else "runs/sweep"
    listed = presets if isinstance(presets, list) else [presets]
    return Plan(cls.task, [_is_text(path, "preset", name) for name in listed], settings, grid,
                Path(out))  # fmt: skip


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            content = file.read(JSON_BYTES).decode()
        return tomllib.loads(content)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not TOML: {error}") from None


def _text(path: Path, content: dict[str, Any], key: str) -> str:
    return _is_text(path, key, content[key])


def _is_text(path: Path, key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise UserError(f"{path}: {key} must be text, got {value!r}")
    return value


def _table(path: Path, content: dict[str, Any], key: str, cls: type[Config]) -> dict[str, Any]:
    """A table with its settings under the names that the configuration has for them."""
    table = content.get(key, {})
    if not isinstance(table, dict):
        raise UserError(f"{path}: {key} must be a table, written [{key}]")
    known = {flag_name(f.name): f.name for f in dataclasses.fields(cls)}
    for name in table:
        if name.replace("_", "-") not in known:
            raise UserError(f"{path}, [{key}]: {unknown_name('setting', name, known)}")
    return {known[name.replace("_", "-")]: value for name, value in table.items()}


def _value(path: Path, cls: type[Config], name: str, value: Any) -> Any:
    kind, _ = value_type(cls, name)
    if isinstance(value, list | dict):
        raise UserError(f"{path}: {flag_name(name)} has several values; put it in [grid]")
    whole = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if kind is float and whole else value


def _values(path: Path, cls: type[Config], name: str, values: Any) -> list[Any]:
    kind, _ = value_type(cls, name)
    if isinstance(values, str) and kind is int:
        try:
            return parse_values(values, int)
        except UserError as error:
            raise UserError(f"{path}: {error}") from None
        except ValueError:
            raise UserError(f"{path}: {name} must be whole numbers, got {values!r}") from None
    listed = values if isinstance(values, list) else [values]
    return [_value(path, cls, name, value) for value in listed]


# --- jobs ---


def make_jobs(plan: Plan) -> list[Job]:
    """A job for every combination; seeds change last, so that all rewards come early."""
    _check_not_empty(plan)
    names = sorted(plan.grid, key=lambda name: name != "seed")
    require_few(math.prod(map(len, [*plan.grid.values(), plan.presets])), "the grid")
    jobs = []
    for values in itertools.product(*(plan.grid[name] for name in names)):
        chosen = dict(zip(names, values, strict=True))
        for preset in plan.presets:
            config = make_config(plan.task, preset, **{**plan.settings, **chosen})
            label = label_of(plan, preset, chosen)
            jobs.append(_job(plan.out, label, config))
    check_apart(jobs)
    return jobs


def _check_not_empty(plan: Plan) -> None:
    for name, values in [*plan.grid.items(), ("preset", plan.presets)]:
        if not values:
            raise UserError(f"the grid is empty: {flag_name(name)} has no values")
    if not plan.grid and len(plan.presets) == 1:
        raise UserError(
            "the grid is empty: give reward, seed or another setting some values, such as "
            "--seed 0..4; `irrl train` does a single run"
        )


def label_of(plan: Plan, preset: str, chosen: dict[str, Any]) -> str:
    """What tells a run from others, besides reward and seed; empty where nothing does."""
    parts = [f"preset={preset}"] if len(plan.presets) > 1 else []
    parts += [f"{flag_name(n)}={_plain(chosen[n])}" for n in plan.grid if n not in LEVELS]
    return ",".join(parts)


def _plain(value: Any) -> str:
    """A value in the name of a folder."""
    text = {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
    return re.sub(r"[^\w.+-]+", "-", text).strip("-.") or "-"


def _job(out: Path, label: str, config: Config) -> Job:
    settings = config.to_json()
    reward, seed = settings["reward"], settings["seed"]
    folder = out / label / _plain(reward) / f"seed-{seed}"
    return Job(" ".join(filter(None, [label, reward, f"seed {seed}"])), folder, config)


def check_apart(jobs: Sequence[Job]) -> None:
    """Raise where two runs would share a folder."""
    seen: set[Path] = set()
    for job in jobs:
        if job.folder in seen:
            raise UserError(
                f"two runs of the grid would share the folder {job.folder}; give each value once, "
                "and values that differ in more than signs"
            )
        seen.add(job.folder)
