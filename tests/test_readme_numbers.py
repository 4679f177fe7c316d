"""Every number in the README is in `results/`, or is no measurement and is listed here."""

import re

import pytest

from tests.helpers.command import REPOSITORY
from tests.helpers.numbers import all_sources, is_printed_as, numbers, passages

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
SOURCES = all_sources()

NO_MEASUREMENT = (
    "ICML 2023",
    "Python 3.11",
    r"95 % interval",
    "0/1",
    r"max\(q − p\(y\), 0\)",  # noqa: RUF001
    # how long, on what, with what
    r"\d+ epochs",
    r"[\d,]+ episodes",
    r"\d+ million episodes",
    r"\d+ codes",
    r"128 skills",
    r"18 glimpses",
    r"at most 32",
    r"50 skills",
    r"8 skills",
    r"buckets of 100",
    r"600 comparisons",
    r"0\.2 to 4 times",
    r"begin at 0",
)
"""Patterns of what is chosen, not measured; each must stand in the README."""


def measured(passage):
    """The numbers of a passage that are left when what was chosen is taken out."""
    text = passage.text
    for pattern in NO_MEASUREMENT:
        text = re.sub(rf"(?<![\d.,])(?:{pattern})", "", text)
    return numbers(text)


def sources_of(passage, digits):
    """What a number may come from."""
    return [s for s in SOURCES.get(passage.row, []) if is_printed_as(s.value, digits)]


def without_source(readme):
    return [
        f"{digits} in {passage.text!r} ({passage.row})"
        for passage in passages(readme)
        for digits in measured(passage)
        if not sources_of(passage, digits)
    ]


def test_every_number_is_in_the_results():
    assert without_source(README) == []
    assert sum(len(measured(passage)) for passage in passages(README)) > 40


def test_no_pattern_is_there_for_nothing():
    text = " ".join(passage.text for passage in passages(README))
    assert [p for p in NO_MEASUREMENT if not re.search(p, text)] == []


@pytest.mark.parametrize("row", SOURCES)
def test_a_number_that_was_changed_is_found(row):
    """Not each time: by chance it may be one of the others of its row."""
    seen = found = 0
    for passage in passages(README):
        for digits in measured(passage):
            if passage.row == row and len(digits) > 2:
                other = f"{digits[:-1]}{(int(digits[-1]) + 4) % 10}"
                seen += 1
                found += not sources_of(passage, other)
    assert seen and found >= 0.6 * seen


# --- few seeds ---


def claims_of_few_seeds(readme):
    """Passages with a number over one or two seeds that do not say so."""
    silent = []
    for passage in passages(readme):
        for digits in measured(passage):
            seeds = [source.seeds for source in sources_of(passage, digits)]
            few = seeds and all(n is not None and n < 3 for n in seeds)
            if few and "seed" not in (passage.said or passage.text):
                silent.append(passage.text)
    return silent


def test_a_claim_of_fewer_than_three_seeds_says_so_beside_it():
    assert claims_of_few_seeds(README) == []


def test_a_claim_of_few_seeds_that_does_not_say_so_is_found():
    changed = README.replace(", seeds: 2", "")
    assert changed != README and "**91.4 (91.2, 91.6)**" in claims_of_few_seeds(changed)
