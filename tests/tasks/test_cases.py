"""Case studies show episodes in which agents differ, drawn by chance, and say so."""

import pytest

from irrl.tasks.cases import sample_cases


def test_only_where_agents_differ():
    answers = [[1, 2, 3, 4, 5, 6], [1, 0, 3, 0, 0, 6]]
    chosen, how = sample_cases(answers, 2, seed=0, what="scenes")
    assert len(chosen) == 2 and set(chosen) < {1, 3, 4} and chosen == sorted(chosen)
    assert how == (
        "2 scenes drawn at random (seed 0) among the 3 of 6 on which the agents' answers differ"
    )
    assert chosen == sample_cases(answers, 2, seed=0, what="scenes")[0]
    drawn = {tuple(sample_cases(answers, 2, seed, "scenes")[0]) for seed in range(20)}
    assert drawn == {(1, 3), (1, 4), (3, 4)}


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ([[1, 2]], "2 scenes drawn at random (seed 3) among 2"),
        ([[1, 2], [1, 2]], "among 2, on none of which the agents' answers differ"),
        ([[1, 2], [1, 0]], "1 scenes drawn at random (seed 3) among the 1 of 2"),
    ],
)
def test_what_there_is_is_said(answers, words):
    assert words in sample_cases(answers, 5, seed=3, what="scenes")[1]
