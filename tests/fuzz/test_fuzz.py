"""Damaged run folders: a fixed budget of cases, always the same; `make fuzz` draws new ones."""

import pytest
from hypothesis import HealthCheck, example, given, settings

from tests.fuzz import bench
from tests.fuzz.bench import ALWAYS_REFUSED, attempt, cases, cases_of
from tests.fuzz.mutations import Mutation
from tests.fuzz.oracle import VERBS, BreachError

NOT_OF_SKILLS = {
    "play", "noise", "case study", "by an oracle", "gradient by an oracle", "gradient by it",
}  # fmt: skip
CODES = (0, 1, 2)  # 1: of sweeps, with a line about each run that failed
OF_SKILLS = sorted(set(VERBS) - NOT_OF_SKILLS)
FIXED = {
    "deadline": None,
    "derandomize": True,
    "database": None,
    "suppress_health_check": list(HealthCheck),
}


@pytest.mark.parametrize("verb", sorted(set(OF_SKILLS) - set(ALWAYS_REFUSED)))
def test_what_is_not_damaged_is_shown(skills_bench, verb):
    assert attempt(skills_bench, verb, None) == 0


def test_only_what_a_whole_folder_allows_is_tried_on_damaged_ones(monkeypatch):
    refused = {"noise", *ALWAYS_REFUSED}
    monkeypatch.setattr(bench, "attempt", lambda _, verb, mutation: 2 if verb in refused else 0)
    zoo = bench.Bench(None, None, None, None, {})  # which does not go on
    assert set(bench.verbs_of(zoo)) == set(VERBS) - {"noise", "go on", "sweep on"}


@settings(max_examples=50, **FIXED)
@given(case=cases_of(OF_SKILLS))
@example(case=("go on", Mutation("kind", 3, 0, False)))  # metrics.jsonl linked to another file
@example(case=("sweep on", Mutation("zeros", 26, 14014, False)))  # one of its runs fails
@example(case=("go on", Mutation("floats", 821, 821, True)))  # so large that training diverges
def test_damaged_folders_of_skills(skills_bench, case):
    assert attempt(skills_bench, *case) in CODES


@settings(max_examples=10, **FIXED)
@given(case=cases)
def test_damaged_folders_of_digits(digits_bench, case):
    assert attempt(digits_bench, *case) in CODES


@settings(max_examples=5, **FIXED)
@given(case=cases)
def test_damaged_folders_of_counting(counting_bench, case):
    assert attempt(counting_bench, *case) in CODES


@settings(max_examples=5, **FIXED)
@given(case=cases)
def test_damaged_folders_of_an_environment(environment_bench, case):
    assert attempt(environment_bench, *case) in CODES


def test_the_oracle_notices_what_is_wrong(skills_bench, monkeypatch):
    """A fuzzer that finds nothing must be one that could."""
    from irrl.runs import reading, run

    monkeypatch.setattr(run, "check_metrics", lambda folder, digest: None)
    monkeypatch.setattr(reading, "require_row", lambda row: None)
    with pytest.raises((BreachError, TypeError, ValueError, KeyError)):
        attempt(skills_bench, "plot", Mutation("row", 0, 4 + 6 * 8, False))
