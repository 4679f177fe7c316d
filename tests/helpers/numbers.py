"""Numbers in the README, and where in `results/` they come from."""

import json
import re
import sys
from typing import NamedTuple

import numpy as np

from irrl.analysis.ranges import range_in
from irrl.analysis.stats import FEW, mean_estimate
from irrl.envs.maze_map import read_maze
from irrl.envs.maze_metrics import largest_coverage
from irrl.tasks import find_task, make_config
from irrl.tasks.gym.peers import CIRCLE_SQUARE
from tests.helpers.command import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "evidence"))

from beside import configs
from readme import headlines, pendulum_returns
from studies import PUBLISHED, STUDIES
from upside import UPSIDE, buckets_of

RESULTS = REPOSITORY / "results"


class Source(NamedTuple):
    """A number that may be printed: of which study or file, over how many seeds."""

    value: float
    study: str
    seeds: int | None = None  # None: no statistic over seeds


# --- what there is ---


def of_study(name):
    """Means, ends of intervals or seeds, and how many there are."""
    settings = configs(STUDIES[name].flags)
    kept = json.loads((RESULTS / name / "comparison.json").read_text())
    for label, found in kept["rewards"].items():
        seeds = len(found["seeds"])
        yield Source(seeds, name)
        for metric, of_metric in found.items():
            if not isinstance(of_metric, dict) or "values" not in of_metric:
                continue
            values = of_metric["values"]
            task = find_task(STUDIES[name].task).for_variant(settings[label].settings())
            mean = mean_estimate(values).within(*range_in(task, settings[label], metric))
            ends = values if seeds <= FEW else [mean.low, mean.high]
            yield from (Source(value, name, seeds) for value in (mean.value, *ends))


def of_sweep(path, *settings):
    """Means of runs of a sweep that differ in their seed only, and how many there are of each."""
    groups = {}
    for run in json.loads((RESULTS / path).read_text())["runs"]:
        groups.setdefault(tuple(run[k] for k in settings), []).append(run["n_skills"])
    for values in groups.values():
        yield Source(float(np.mean(values)), path, len(values))
        yield Source(len(values), path)


def of_other_studies(name):
    """Mazes and preferences, whose tables are not those of `STUDIES`."""
    groups = [pendulum_returns(reward) for reward in ("linear", "true")]
    if name != "preferences-pendulum":
        kept = [
            json.loads((RESULTS / n / "comparison.json").read_text())
            for n in (name, f"{name}-log-bonus", f"{name}-diayn")
        ]
        groups = [f["coverage"]["values"] for k in kept for f in k["rewards"].values()]
    for values in groups:
        yield from of_seeds(values, name)


def of_seeds(values, name, most=np.inf):
    """A mean, the ends of its interval or all seeds, and how many there are."""
    mean = mean_estimate(values).within(-np.inf, most)
    ends = values if len(values) <= FEW else [mean.low, mean.high]
    yield Source(len(values), name)
    yield from (Source(value, name, len(values)) for value in (mean.value, *ends))


def of_text(text, study):
    """Numbers that somebody else has published as text."""
    return [Source(float(x), study) for x in re.findall(r"\d+(?:\.\d+)?", text)]


def of_authors(task):
    """What the paper's authors report, and the points of their curves."""
    for variant, published in PUBLISHED.items():
        if variant in (task, *find_task(task).published):
            for anchor in published.numbers.values():
                yield from of_text(anchor.text, "authors")
            for curve in published.curves.values():
                yield from (Source(value, "authors") for value in curve)


def sources_of_row(row):
    """What the numbers of a row of the table may come from."""
    if row.study not in STUDIES:
        return [*of_other_studies(row.study), Source(10, "actions")]
    task = STUDIES[row.study].task
    found = [*of_study(row.study), *of_authors(task)]
    if task == "skills":
        found += [*of_study("skills-fast"), ceiling()]
    if row.study == "gym-light-dark":
        found += [*of_study(f"{row.study}-own-reward"), Source(1.0, "a blind guess")]
    if row.study == "gym-half-cheetah":
        found += of_study(f"{row.study}-diayn")
    if task == "gym":
        found += [s for peer in CIRCLE_SQUARE for s in of_text(peer.text, "peers")]
    return found


def sources_of_prose():
    return [
        *of_study("skills-fast"),
        *of_sweep("which-reward/skills.json", "codes", "optimism", "reward"),
        *of_sweep("observations/skills-from-zero.json", "bonus_kind", "reward"),
        ceiling(),
    ]


def ceiling():
    return Source(find_task("skills").ceiling(make_config("skills")), "ceiling")


def sources_of_mazes():
    """Rows of UPSIDE's table and of ours."""
    for maze, theirs in UPSIDE.items():
        yield f"{maze}, UPSIDE's table", [s for text in theirs for s in of_text(text, "UPSIDE")]
        most = largest_coverage(read_maze(maze.lower()))
        ours = [of_seeds(values, maze, most) for values in buckets_of(maze).values()]
        yield f"{maze}, here", [source for each in ours for source in each]


def all_sources():
    """First cell of a row, or nothing for prose -> what its numbers may come from."""
    rows = {row.what: sources_of_row(row) for row in headlines()}
    return {"": sources_of_prose()} | rows | dict(sources_of_mazes())


# --- what is printed ---


class Passage(NamedTuple):
    """A sentence, or a cell of the table: in which row, beside which cells."""

    text: str
    row: str = ""
    said: str = ""  # all cells of that row


def passages(readme):
    """All prose and all cells, without code, commands and addresses."""
    text = re.sub(r"```.*?```", "", readme, flags=re.S)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    text = re.sub(r"^    .*$", "", text, flags=re.M)
    text = re.sub(r"`[^`]*`", "``", text)
    for part in re.split(r"\n\s*\n|\n(?=<!--)|(?<=-->)\n|\n(?=- )", text):
        if part.lstrip().startswith("|"):
            for line in part.strip().splitlines()[2:]:
                cells = [cell.strip() for cell in line.strip()[1:-1].split("|")]
                for cell in cells:
                    yield Passage(cell, cells[0], " ".join(cells))
        else:
            for sentence in re.split(r"(?<=[.:?!]) (?=[A-Z`*\[!(])", " ".join(part.split())):
                yield Passage(sentence)


NUMBER = re.compile(r"(?<![\w.])[+-]?(\d[\d,]*(?:\.\d+)?)(?![\d]*\w)")


def numbers(text):
    """The digits of all numbers of a text."""
    return [m[1].rstrip(",") for m in NUMBER.finditer(text)]


def is_printed_as(value, digits):
    """Whether a number, rounded as printed, is what stands there."""
    plain = digits.replace(",", "")
    return f"{abs(value):.{len(plain.partition('.')[2])}f}" == plain
