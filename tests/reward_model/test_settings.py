import json

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box

import irrl
from irrl.densities import Uniform
from irrl.errors import UserError
from irrl.reward_model import Settings
from irrl.reward_model.settings import JUDGES, PAYMENTS
from irrl.rewards import REWARDS
from tests.reward_model.episodes import small_model


def test_two_kinds_of_labels_have_two_defaults():
    labels, skills = Settings(), Settings(mode="skills")
    assert (labels.judge, skills.judge) == ("trajectory", "final")
    assert labels.store > 10 * skills.store
    assert Settings(mode="skills", store=7, judge="state").store == 7


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"judge": "states"}, "unknown judge 'states'. Did you mean 'state'"),
        ({"mode": "label"}, "unknown mode 'label'. Did you mean 'labels'"),
        ({"pay": "ends"}, "unknown pay 'ends'"),
        ({"core": "lstm"}, "unknown core 'lstm'"),
        ({"pixels": "grey"}, "unknown pixels 'grey'"),
        ({"reward": "liner"}, "unknown reward 'liner'. Did you mean 'linear'"),
        ({"reward": max}, "reward must be a name, or 'module:function'"),
        ({"wdith": 3}, "unknown setting of a reward model 'wdith'. Did you mean 'width'"),
        ({"width": 0}, "width must be a whole number, at least 1, got 0"),
        ({"width": 2.5}, "width must be a whole number"),
        ({"width": True}, "width must be a whole number"),
        ({"batch_size": "8"}, "batch_size must be a whole number, at least 1, got '8'"),
        ({"samples_per_episode": -1}, "samples_per_episode must be"),
        ({"store": 0}, "store must be"),
        ({"max_episode_steps": 0}, "max_episode_steps must be"),
        ({"warm_up": -1}, "warm_up must be a whole number, zero or more"),
        ({"seed": 2**63}, "seed must be"),
        ({"bonus": float("nan")}, "bonus must be zero or positive"),
        ({"learning_rate": 0.0}, "learning_rate must be positive"),
        ({"held_out": 1.0}, "held_out must be at least 0 and below 1"),
        ({"varying_length": "no"}, "varying_length must be True or False, got 'no'"),
        ({"normalise": 1}, "normalise must be True or False"),
        ({"prior": "count"}, "unknown prior 'count'. Did you mean 'counted'"),
        ({"prior": [0.5, 0.6]}, "prior must have a positive probability for each label"),
        ({"prior": [1.0, 0.0]}, "prior must have a positive probability"),
        ({"prior": {"a": 1.0}}, "prior must have a positive probability"),
        ({"prior": None}, "prior must have a positive probability"),
        ({"prior": [0.5, 0.5]}, "prior must have a probability for each of 3 labels, got 2"),
        ({"judge": "final", "pay": "steps"}, "pay 'steps' does not go with judge 'final'"),
        ({"ensemble": 1, "bonus": 0.1}, "ensemble must be 2 or more"),
        ({"ensemble": 1, "reward": "disdain"}, "ensemble must be 2 or more"),
        ({"device": "abacus"}, "device abacus cannot be used here"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(settings, said):
    with pytest.raises(ValueError, match=said) as caught:
        small_model(3, **settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("labels", [1, 0, True, 2.0, "3", None])
def test_a_number_of_labels_that_cannot_be(labels):
    with pytest.raises(ValueError, match="labels must be a whole number, at least 2"):
        small_model(labels)


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("pay", PAYMENTS)
def test_they_are_the_same_from_json(judge, pay):
    try:
        settings = Settings(judge=judge, pay=pay, prior=[0.25, 0.75])
    except UserError:
        assert (judge, pay) == ("final", "steps")
        return
    assert Settings.from_json(json.loads(json.dumps(settings.to_json()))) == settings


@pytest.mark.parametrize("name", REWARDS)
def test_every_reward_of_the_library_can_be_paid(name):
    model = small_model(reward=name)
    assert model.settings.ensemble == 1 + REWARDS[name].needs_ensemble


# --- the unit of rewards ---


@pytest.mark.parametrize("name", ["clipped-linear", "clipped-log", "accuracy", "f-chi2"])
def test_in_units_of_the_largest_certainty_earns_one(name):
    prior = (0.5, 0.3, 0.2)
    model = irrl.RewardModel(Box(-1.0, 1.0, (2,)), 3, reward=name, reward_unit="largest",
                             prior=prior)  # fmt: skip
    certain = torch.log_softmax(torch.tensor([[[0.0, 0.0, 60.0]]]), -1)
    rarest = model.kind.rewards(certain, torch.tensor([2]), np.zeros(3))
    assert rarest.item() == pytest.approx(1.0, rel=1e-5)


def test_a_reward_of_eight_times_the_size_is_the_same_in_its_unit():
    beliefs = torch.log_softmax(torch.randn(1, 20, 4, generator=torch.manual_seed(0)), -1)
    labels = torch.arange(20) % 4
    paid = [
        irrl.RewardModel(Box(-1.0, 1.0, (2,)), 4, reward=f"tests.reward_model.test_settings:{g}",
                         reward_unit="largest").kind.rewards(beliefs, labels, np.zeros(4))
        for g in ("once", "eightfold")
    ]  # fmt: skip
    assert torch.equal(*paid) and paid[0].max() > 0


def once(q):
    return q * q


def eightfold(q):
    return 8.0 * q * q


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"reward_unit": "large"}, "Did you mean 'largest'"),
        ({"reward_unit": "largest", "reward": "f-reverse-kl"}, "has no unit"),
        ({"reward_unit": "largest", "reward": "crps"}, "is of numbers"),
    ],
)
def test_a_unit_that_cannot_be(settings, said):
    with pytest.raises(ValueError, match=said):
        Settings(**settings)


def test_numbers_have_no_unit_of_classes():
    labels = irrl.Continuous((1,), Uniform(-1.0, 1.0), density="bins")
    with pytest.raises(ValueError, match="reward_unit is for classes"):
        irrl.RewardModel(Box(-1.0, 1.0, (2,)), labels, reward="linear", reward_unit="largest")
