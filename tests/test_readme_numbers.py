"""Every number in the README is in `results/`, or is no measurement and is listed here."""

import re

import pytest

from irrl.tasks import find_task, make_config
from tests.helpers.command import REPOSITORY
from tests.helpers.numbers import RESULTS, all_sources, fits, is_printed_as, numbers, passages

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
SOURCES = all_sources()

NO_MEASUREMENT = (
    "ICML 2023",
    "Python 3.11",
    r"\d+ % interval",
    # how long, on what, with what
    r"\d+ epochs",
    r"[\d,]+ episodes(?! per)",
    r"\d+ million episodes",
    r"[\d,]+ new (scenes|episodes)",
    r"(the same )54,000",
    r"20 to 30 million iterations",
    r"25 times the authors' step size",
    r"\d+ x \d+",
    "18 glimpses of",
    r"\d+ codes",
    r"32 skills of a point mass",
    r"batch \d+",
    r"seed 0",
    # what runs: told by the commands beside it
    r"seeds: \d(; DT-RAM, leaked: \d)?",
    r"with 50 runs",
)
"""Patterns of what is chosen, not measured; each must stand in the README."""


def measured(passage):
    """The numbers of a passage that are left when what was chosen is taken out."""
    text = passage.text
    for pattern in NO_MEASUREMENT:
        text = re.sub(rf"(?<![\d.,])(?:{pattern})", "", text)
    if passage.title in ("cores", "epoch", "episodes"):
        return []
    return numbers(text)


def sources_of(passage, bound, digits):
    """What a number may come from."""
    found = (s for s in SOURCES[passage.block] if fits(s, passage))
    return [s for s in found if is_printed_as(s.value, bound, digits)]


def without_source(readme):
    return [
        f"{digits} in {passage.text!r} ({passage.title}; {', '.join(passage.row[:2])})"
        for passage in passages(readme)
        for bound, digits in measured(passage)
        if not sources_of(passage, bound, digits)
    ]


def test_every_number_is_in_the_results():
    assert without_source(README) == []
    assert sum(len(measured(passage)) for passage in passages(README)) > 300


def test_no_pattern_is_there_for_nothing():
    text = " ".join(passage.text for passage in passages(README))
    assert [p for p in NO_MEASUREMENT if not re.search(p, text)] == []


@pytest.mark.parametrize("block", [name for name in SOURCES if name])
def test_a_number_that_was_changed_is_found(block):
    """Not each time: by chance it may be one of the others of its row."""
    seen = found = 0
    for passage in passages(README):
        for bound, digits in measured(passage):
            if passage.block == block and len(digits) > 2 and not bound:
                other = f"{digits[:-1]}{(int(digits[-1]) + 4) % 10}"
                seen += 1
                found += not sources_of(passage, bound, other)
    assert seen >= 3 and found >= 0.8 * seen


def test_the_ceiling_is_the_ceiling():
    ceiling = find_task("skills").ceiling(make_config("skills"))
    assert f"The\nceiling is {ceiling:.1f} skills" in README


def test_commits_are_those_of_the_results():
    kept = "".join(path.read_text() for path in RESULTS.rglob("*.json"))
    named = re.findall(r"(?:commit|,) ([0-9a-f]{10})\b", README)
    assert len(named) > 6 and [commit for commit in named if commit not in kept] == []


# --- few seeds ---


def claims_of_few_seeds(readme):
    """Passages with a number over one or two seeds that do not say so."""
    silent = []
    for passage in passages(readme):
        said = passage.text if not passage.row else f"{passage.said_before} {passage.row}"
        for bound, digits in measured(passage):
            seeds = [source.seeds for source in sources_of(passage, bound, digits)]
            if seeds and all(n is not None and n < 3 for n in seeds) and "seed" not in said:
                silent.append(passage.text)
    return silent


def test_a_claim_of_fewer_than_three_seeds_says_so_in_the_same_sentence():
    assert claims_of_few_seeds(README) == []


@pytest.mark.parametrize("sentence", ["RAM is right on 91.4 %.", "With 15.9 glimpses on average."])
def test_a_claim_of_few_seeds_that_does_not_say_so_is_found(sentence):
    changed = README.replace("Hard attention on", f"{sentence}\n\nHard attention on", 1)
    assert claims_of_few_seeds(changed) == [sentence]
