"""Rewards in units of the largest: exchanging them changes nothing but their shape."""

import pytest

from irrl.errors import UserError
from irrl.tasks import make_config
from tests.helpers.runs import content, run_in

OWN = """
def line(q):
    return q

def eightfold(q):
    return 8.0 * q
"""


@pytest.mark.parametrize("model", ["ram", "dt-ram"])
def test_a_reward_of_eight_times_the_size_trains_the_same_weights(tmp_path, monkeypatch, model):
    (tmp_path / "own_sizes.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)

    def weights(folder, name, unit):
        reward = f"clipped-own_sizes:{name}"
        run = run_in(tmp_path / folder, "digits", model=model, reward=reward, reward_unit=unit)
        found = content(run.folder)
        return [found[step] for step in found if step.isdigit()]

    one = weights("one", "line", "largest")
    assert one
    assert weights("eight", "eightfold", "largest") == one
    assert weights("absolute", "eightfold", "absolute") != one


def test_what_cannot_be_is_told():
    with pytest.raises(UserError, match="unknown reward-unit 'gold'"):
        make_config("digits", "smoke", reward_unit="gold")
    with pytest.raises(UserError, match="'f-reverse-kl' has no unit"):
        make_config("digits", "smoke", reward_unit="largest", reward="f-reverse-kl")
