"""A comparison as a table: seeds, intervals, and the authors' numbers with their training."""

from irrl.analysis.stats import mean_estimate
from irrl.analysis.tables import AUTHORS_NOTE, note_below, table_rows
from irrl.tasks import find_task

TASK = find_task("skills")


def found(values, authors=None, said="-"):
    estimate = {"mean": mean_estimate(values).to_json(), "values": values}
    return {
        "seeds": list(range(len(values))),
        **dict.fromkeys(TASK.all_columns(), estimate),
        "steps_to": None,
        "standing": None,
        "authors": authors,
        "beside_authors": said,
    }


def test_the_authors_numbers_stand_with_their_training():
    theirs = "85-90 at 20 to 30 million iterations"
    rewards = {"a": found([1.0, 3.0], theirs, "89.6 by then: agrees"), "b": found([2.0] * 5)}
    header, rows = table_rows({"rewards": rewards}, TASK)
    assert header[-2:] == ["authors", "beside authors"] and AUTHORS_NOTE in note_below(header)
    assert rows[0][-2:] == [theirs, "89.6 by then: agrees"] and rows[1][-2:] == ["-", "-"]
    assert rows[0][2] == "2.0 (1.0, 3.0)" and rows[1][2] == "2.0 [2.0, 2.0]"


def test_without_a_number_of_theirs_there_is_no_column():
    header, _ = table_rows({"rewards": {"a": found([1.0, 3.0])}}, TASK)
    assert "authors" not in header and AUTHORS_NOTE not in note_below(header)


def test_a_verdict_that_is_not_given_has_no_column():
    header, _ = table_rows({"rewards": {"a": found([1.0], "47.3 at 100 epochs")}}, TASK)
    assert header[-1] == "authors"
