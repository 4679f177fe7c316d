"""What others publish stands beside runs of their environment, and of no other."""

from irrl.report.pages import peers
from irrl.report.studies import study_of
from irrl.tasks import find_task
from irrl.tasks.gym.peers import CIRCLE_SQUARE
from tests.helpers.runs import run_in


def test_rows_are_those_of_the_environment():
    task = find_task("gym")
    assert task.peers({"env": "ap_gym:CircleSquare-v0"}) == CIRCLE_SQUARE
    assert task.peers({"env": "irrl/PointMass-v0"}) == ()


def test_the_report_names_them(tmp_path):
    run = run_in(
        tmp_path / "run", "gym", env="ap_gym:CircleSquare-v0", mode="labels", observe="inputs",
        steps=256, rollout=16, evaluate_every=256,
    )  # fmt: skip
    task = find_task("gym").for_variant(run.settings)
    (line,) = peers(study_of(task, "labels", "smoke", [run]))
    assert "CrossQ, transformer 96.7 (250k steps)" in line and "2505.06182" in line
    assert "environment_final_accuracy_percent" in run.summary()
