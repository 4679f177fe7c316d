import pytest

from irrl.runs.schedule import is_due, next_due


def test_the_start_every_multiple_and_the_end_are_due():
    steps = [step for step in range(24) if is_due(step - 1, step, every=5, end=23)]
    assert steps == [0, 5, 10, 15, 20, 23]


@pytest.mark.parametrize(("before", "now", "due"), [(4, 7, True), (5, 9, False), (9, 21, True)])
def test_a_multiple_that_was_jumped_over_is_due(before, now, due):
    assert is_due(before, now, every=5, end=100) is due


def test_the_next_multiple_of_any_interval():
    assert [next_due(step, 4, 6) for step in (0, 3, 4, 6, 8)] == [4, 4, 6, 8, 12]
