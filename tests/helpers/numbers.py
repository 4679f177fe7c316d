"""Numbers in the README, and where in `results/` they come from."""

import json
import re
import sys
from typing import NamedTuple

import numpy as np

from irrl.analysis.stats import FEW, mean_estimate
from irrl.tasks import find_task
from irrl.tasks.gym.peers import CIRCLE_SQUARE
from tests.helpers.command import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "evidence"))

from beside import configs
from studies import STUDIES
from tables import SHOWN_FIRST

from irrl.analysis.ranges import range_in

RESULTS = REPOSITORY / "results"


class Source(NamedTuple):
    """A number that may be printed: of which study or file, of which row, over how many seeds."""

    value: float
    study: str
    row: str = ""  # reward, or whatever tells rows of a table apart
    seeds: int | None = None  # None: no statistic over seeds


# --- what there is ---


def of_study(name):
    """Means, ends of intervals or seeds, and how many there are; nothing of an absent study."""
    path = RESULTS / name / "comparison.json"
    if not path.exists():
        return
    settings = configs(STUDIES[name].flags)
    for label, found in json.loads(path.read_text())["rewards"].items():
        seeds = len(found["seeds"])
        yield Source(seeds, name, label)
        for metric, of_metric in found.items():
            if not isinstance(of_metric, dict) or "values" not in of_metric:
                continue
            values = of_metric["values"]
            task = find_task(STUDIES[name].task).for_variant(settings[label].settings())
            mean = mean_estimate(values).within(*range_in(task, settings[label], metric))
            ends = values if seeds <= FEW else [mean.low, mean.high, min(values)]
            for value in (mean.value, *ends):
                yield Source(value, name, label, seeds)


def beside_authors(name, step, variant):
    """Our curves where the authors' numbers are read, how far from them, and these numbers."""
    kept = json.loads((RESULTS / name / "curves.json").read_text())
    for label, anchor in find_task(STUDIES[name].task).published[variant].numbers.items():
        curves = [np.array(c) for key, c in kept.items() if key.split("/")[0] == label]
        ours = np.mean([np.interp(step, c[:, 0], c[:, 1]) for c in curves])
        points = find_task(STUDIES[name].task).published[variant].points(label)
        for point in points:
            for value in (ours, ours - point.anchor.high, point.anchor.low - ours):
                yield Source(value, name, label, len(curves))
        yield from of_text(anchor.text, name, label)
        yield from (Source(float(p.anchor.text), name, label) for p in points[:-1])


def of_text(text, study, row=""):
    """Numbers that somebody else has published as text."""
    return [Source(float(x), study, row) for x in re.findall(r"\d+(?:\.\d+)?", text)]


def gaps_of_digits():
    """Linear less log of each comparison, and the largest distance of test from validation."""
    largest = 0.0
    for name in SHOWN_FIRST:
        found = json.loads((RESULTS / name / "comparison.json").read_text())["rewards"]
        mean = {
            (r, m): np.mean(f[m]["values"])
            for r, f in found.items()
            for m in ("accuracy_percent", "test_accuracy_percent")
        }
        rewards = {r for r, _ in mean}
        largest = max(
            largest,
            *(abs(mean[r, "accuracy_percent"] - mean[r, "test_accuracy_percent"]) for r in rewards),
        )
        if {"clipped-linear", "clipped-log"} <= rewards:
            gap = mean["clipped-linear", "accuracy_percent"]
            yield Source(gap - mean["clipped-log", "accuracy_percent"], name, "gap", 3)
    yield Source(largest, "validation and test", "gap", 3)


def of_noise():
    """Moments and p of each run and epoch."""
    measured = json.loads((RESULTS / "digits-noise.json").read_text())
    for run, found in measured["runs"].items():
        for row in found["delta"]:
            for value in row.values():
                yield Source(value, "noise", f"{run.split('/')[-2]} {row['step']}", 1)


def of_file(name, study):
    """Every number of a small file, shares also in per cent; rows are its inner tables."""

    def walk(found, row):
        for key, value in found.items():
            if isinstance(value, dict):
                yield from walk(value, key)
            elif isinstance(value, int | float) and not isinstance(value, bool):
                yield Source(value, study, row)
                if key.startswith("share_"):
                    yield Source(100.0 * value, study, row)

    kept = json.loads((RESULTS / name).read_text())
    return list(walk({k: v for k, v in kept.items() if k not in ("libraries", "machine")}, ""))


def all_sources():
    """Block of the README -> what its numbers may come from."""
    digits = [*SHOWN_FIRST, "digits-ram-fast", "digits-dt-ram-fast", "digits-judge"]
    digits += ["digits-ram-fast-30", "digits-ram-fast-fixed"]
    authors = [
        Source(point.anchor.low + 0.3, "authors", model)
        for model, published in find_task("digits").published.items()
        for point in published.points("clipped-linear")
    ]
    gym = [name for name in STUDIES if name.startswith("gym-")]
    skills = ("skills-fast", "skills-visits", "skills-optimistic-log")
    return {
        "": [*of_study("skills-fast"), *of_file("report.json", "report")],
        "results": [
            *(source for name in skills for source in of_study(name)),
            *beside_authors("skills-fast", 1_200_000, "skills"),
        ],
        "digits": [
            *(source for name in digits for source in of_study(name)),
            *gaps_of_digits(),
            *of_noise(),
            *authors,
        ],
        "gym": [
            *(source for name in gym for source in of_study(name)),
            *(s for peer in CIRCLE_SQUARE for s in of_text(peer.text, "peers", peer.method)),
        ],
        "counting": [
            *of_study("counting"),
            *beside_authors("counting", 100_000, "counting"),
        ],
        "speed": [
            *of_file("throughput-sweep.json", "sweep"),
            *(
                source
                for task in ("skills", "digits", "counting", "gym")
                for source in of_file(f"throughput-{task}.json", task)
            ),
        ],
    }


# --- what is printed ---


class Passage(NamedTuple):
    """A sentence, or a cell of a table: in which block, below which title, beside which cells."""

    text: str
    block: str
    title: str = ""
    row: tuple[str, ...] = ()
    said_before: str = ""  # what stands above a table


def passages(readme):
    """All prose and all cells, without code, commands and addresses."""
    text = re.sub(r"```.*?```", "", readme, flags=re.S)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    text = re.sub(r"^    .*$", "", text, flags=re.M)
    text = re.sub(r"`[^`]*`", "``", text)
    block, header, before = "", (), ""
    for part in re.split(r"\n\s*\n|\n(?=<!--)|(?<=-->)\n", text):
        if mark := re.fullmatch(r"<!-- (end of )?(\w+) -->", part.strip()):
            block = "" if mark[1] else mark[2]
        elif part.lstrip().startswith("|"):
            lines = [
                tuple(c.strip() for c in line.strip()[1:-1].split("|"))
                for line in part.strip().splitlines()
            ]
            header, rows = lines[0], lines[2:]
            for title in header:
                yield Passage(title, block, said_before=before)
            for row in rows:
                for title, cell in zip(header, row, strict=True):
                    yield Passage(cell, block, title, row, " ".join((before, *header)))
        else:
            before = " ".join(part.split())
            for sentence in re.split(r"(?<=[.:?!]) (?=[A-Z`*\[!(])", before):
                yield Passage(sentence, block)


NUMBER = re.compile(r"(<= |< )?(?<![\w.])[+-]?(\d[\d,]*(?:\.\d+)?)(?![\d]*\w)")


def numbers(text):
    """(bound, digits) of all numbers of a text."""
    return [(m[1] or "", m[2].rstrip(",")) for m in NUMBER.finditer(text)]


def is_printed_as(value, bound, digits):
    """Whether a number, rounded as printed, is what stands there; signs are left to words."""
    plain = digits.replace(",", "")
    if bound:
        return abs(value) <= float(plain) * 1.0001
    decimals = len(plain.partition(".")[2])
    small = abs(value) < 0.1 and f"{abs(value):.2g}" == plain  # p values
    return small or f"{abs(value):.{decimals}f}" == plain


def fits(source, passage):
    """Whether a source belongs to a row and a column, as far as these say so."""
    if passage.title in SHOWN_FIRST.values() and SHOWN_FIRST.get(source.study) != passage.title:
        return False
    if not passage.row:
        return True
    cells = [cell.strip("* ").replace("irrl, PPO, ", "") for cell in passage.row]
    titles = {study.title: name for name, study in STUDIES.items()}
    if cells[0] in titles and source.study != titles[cells[0]]:
        return False
    if source.study == "noise":
        return source.row in [f"{reward} {cells[1]}" for reward in cells[0].split(", ")]
    row = source.row.removesuffix(" (oracle)")
    if source.study == "peers":
        return f"{row} (published)" == cells[0]
    if "own reward" in cells[0]:
        return source.study.endswith("own-reward")
    return row in cells
