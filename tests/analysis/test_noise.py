"""Tables of measured noise: bounds told as bounds, and no row twice."""

import numpy as np
import pytest

from irrl.analysis.noise import delta_cells, delta_rows, each_once, oracle_text, shown_p
from irrl.noise_measured import Posteriors, describe_delta


@pytest.mark.parametrize(
    ("p", "least", "text"),
    [
        (1 / 2001, 1 / 2001, "<= 0.0005"),
        (2 / 2001, 1 / 2001, "0.001"),
        (1 / 201, 1 / 201, "<= 0.005"),
        (0.25, 1 / 201, "0.25"),
    ],
)
def test_a_p_that_cannot_be_smaller_is_a_bound(p, least, text):
    assert shown_p(p, least) == text


def test_a_test_by_resampling_reaches_its_bound_and_says_so():
    far = np.full(50, -0.4) + 0.01 * np.arange(50)  # all but a few on one side
    for resamples in (100, 400):
        found = describe_delta(far, resamples)
        assert found.p_symmetric == 1 / (1 + resamples) and found.resamples == resamples
        cells = delta_cells({"step": 3, **found.to_json()})
        assert cells[4] == f"<= {1 / (1 + resamples):.1g}"
        assert cells[3] == "< 0.0001" or found.p_zero_mean >= 1e-4


def test_old_tables_without_the_number_of_resamples_are_of_two_thousand():
    (row,) = delta_rows([Posteriors(3, np.full(20, 0.2), np.linspace(0.3, 0.5, 20), 0.1)])
    del row["resamples"]
    assert delta_cells(row)[4] == "<= 0.0005"


def test_a_row_that_several_runs_share_is_told_once():
    rows = [("a", ("0", "x")), ("a", ("1", "y")), ("b", ("0", "x")), ("b", ("1", "z"))]
    assert each_once(rows) == [["a, b", "0", "x"], ["a", "1", "y"], ["b", "1", "z"]]


def test_the_oracle_is_told_with_what_it_gets_right():
    found = {"run": "runs/judge", "accuracy_percent": 87.55, "test_accuracy_percent": 86.04}
    assert oracle_text(found) == "The oracle, runs/judge: accuracy 87.5 %; test accuracy 86.0 %."
    assert "not known" in oracle_text({"run": "runs/judge"})
