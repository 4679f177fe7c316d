"""What the fuzzer says of what it found."""

from tests.fuzz import tally
from tests.fuzz.oracle import BreachError


def test_counts_are_of_all_cases_and_of_those_that_went_wrong(monkeypatch, capsys):
    def attempt(bench, verb, mutation):
        if mutation == "hang":
            raise BreachError("more than 20 s")
        return 2 if mutation else 0

    monkeypatch.setattr(tally, "attempt", attempt)
    found = tally.Tally()
    for name, case in [
        ("skills", ("eval", None)),
        ("skills", ("eval", "cut")),
        ("zoo", ("plot", "hang")),
        ("zoo", ("eval", "hang")),
    ]:
        found.look(name, None, case)
    assert found.to_json() == {
        "cases": 4,
        "wrong": 2,
        "kinds_wrong": {"zoo: BreachError: more than 20 s": 2},
        "benches": {"skills": 2, "zoo": 2},
        "verbs": {"eval": {"exit 0": 1, "exit 2": 1}},
        "verbs_of_benches": {"skills": {"eval": 2}, "zoo": {"eval": 1, "plot": 1}},
    }
    assert capsys.readouterr().out.count("more than 20 s") == 2  # kind and message, once
    assert found.text().splitlines()[-2:] == [
        "2 went wrong, in 1 ways",
        "      2  zoo: BreachError: more than 20 s",
    ]
