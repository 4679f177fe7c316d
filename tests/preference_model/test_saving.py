import numpy as np
import pytest
import torch
from gymnasium.spaces import Box

import irrl
from irrl.preference_model import PreferenceModel
from tests.preference_model.test_model import SPACE, segment, taught


def test_saved_and_loaded_it_goes_on_as_if_nothing_had_been(tmp_path):
    kept, random = taught(count=60, ensemble=2)
    kept.add(segment(random), segment(random), 0.5)  # one that it has not learned from
    kept.save(tmp_path / "model")
    found = PreferenceModel.load(tmp_path / "model")
    assert found.settings == kept.settings
    for _ in range(2):
        steps = segment(random, 9)
        np.testing.assert_array_equal(found.rewards(steps), kept.rewards(steps))
        assert found.health() == kept.health()
        pair = segment(random), segment(random)
        for model in (found, kept):
            model.add(*pair, 1)
        assert found.learn() == kept.learn()
    mine, its = (model.to_checkpoint() for model in (kept, found))
    assert mine[1] == its[1] and set(mine[0]) == set(its[0])
    for name, array in mine[0].items():
        np.testing.assert_array_equal(array, its[0][name])


def test_without_its_comparisons_it_can_pay(tmp_path):
    kept, random = taught(count=30)
    kept.save(tmp_path / "whole")
    kept.save(tmp_path / "small", store=False)
    assert (tmp_path / "small").stat().st_size < (tmp_path / "whole").stat().st_size / 2
    found = PreferenceModel.load(tmp_path / "small")
    steps = segment(random, 9)
    np.testing.assert_array_equal(found.rewards(steps), kept.rewards(steps))
    assert found.learn() == {}


def test_a_network_of_ones_own_is_given_again(tmp_path):
    def make():
        return torch.nn.Linear(2, 1)

    kept, random = taught(count=10, network=make)
    kept.save(tmp_path / "model")
    with pytest.raises(ValueError, match="network of its own: give what makes that again"):
        PreferenceModel.load(tmp_path / "model")
    found = PreferenceModel.load(tmp_path / "model", network=make)
    steps = segment(random, 3)
    np.testing.assert_array_equal(found.rewards(steps), kept.rewards(steps))
    with pytest.raises(ValueError, match="cannot be loaded: network must map"):
        PreferenceModel.load(tmp_path / "model", network=lambda: torch.nn.Linear(2, 2))


def test_what_does_not_fit_leaves_a_model_as_it_was():
    kept, random = taught(count=10)
    steps = segment(random, 3)
    before = kept.rewards(steps)
    others = {
        "another observation space": PreferenceModel(Box(-1.0, 1.0, (3,))),
        "another network": taught(count=3, ensemble=2)[0],
        "shape": taught(count=3, width=4)[0],
        "network of its own": taught(count=3, network=lambda: torch.nn.Linear(2, 1))[0],
    }
    for said, other in others.items():
        with pytest.raises(ValueError, match=said):
            kept.restore(*other.to_checkpoint())
    arrays, state = kept.to_checkpoint()
    for broken in (
        {**state, "counts": [1, 2]},
        {**state, "counts": [-1, 0, 0]},
        {name: value for name, value in state.items() if name != "parts"},
    ):
        with pytest.raises(ValueError, match=r"."):
            kept.restore(arrays, broken)
    arrays["references.observation"] = arrays["references.observation"] * np.nan
    with pytest.raises(ValueError, match="damaged"):
        kept.restore(arrays, state)
    np.testing.assert_array_equal(kept.rewards(steps), before)


def test_files_that_are_none_of_ours(tmp_path):
    with pytest.raises(ValueError, match="is not a saved"):
        PreferenceModel.load(tmp_path / "missing")
    irrl.RewardModel(SPACE, labels=2).save(tmp_path / "other")
    with pytest.raises(ValueError, match=r"no preference model: irrl.RewardModel.load reads it"):
        PreferenceModel.load(tmp_path / "other")
    kept, _ = taught(count=3)
    kept.save(tmp_path / "model")
    content = bytearray((tmp_path / "model").read_bytes())
    content[-5] ^= 1
    (tmp_path / "altered").write_bytes(content)
    with pytest.raises(ValueError, match="was altered"):
        PreferenceModel.load(tmp_path / "altered")
