import pytest

from irrl.analysis.stats import Estimate
from irrl.cli.main import main
from irrl.runs.shown import shown_number


def test_small_numbers_are_shown_with_more_decimals():
    shown = [shown_number(x) for x in (90.04, 0.0, 0.463, 0.0123, -0.05)]
    assert shown == ["90.0", "0.0", "0.46", "0.0123", "-0.0500"]
    assert shown_number(0.15, beside=0.05) == "0.1500"


@pytest.mark.parametrize(
    ("estimate", "said"),
    [
        (Estimate(0.0123, 0.011, 0.0136, 5), "0.0123 [0.0110, 0.0136]"),
        (Estimate(90.0, 88.05, 91.0, 5), "90.0 [88.0, 91.0]"),
        (Estimate(0.05, None, None, 2, (0.02, 0.08)), "0.0500 (0.0200, 0.0800)"),
        (Estimate(90.0, None, None, 2, (90.0, 90.0)), "90.0"),
    ],
)
def test_an_interval_has_as_many_decimals_as_its_number(estimate, said):
    assert str(estimate) == said


def test_a_task_of_classes_is_not_paid_by_densities(capsys):
    assert main(["compare", "skills", "--rewards", "ball", "--seeds", "1"]) == 2
    assert "unknown reward 'ball'" in capsys.readouterr().err
