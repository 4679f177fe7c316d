import dataclasses

import pytest

from irrl.errors import UserError
from irrl.runs.config import value_type
from irrl.tasks import find_task, make_config
from irrl.tasks.registry import task_names


@pytest.mark.parametrize("task", task_names())
def test_presets_are_valid(task):
    for preset in find_task(task).presets:
        config = make_config(task, preset)
        assert find_task(task).config.from_settings(config.settings()) == config


@pytest.mark.parametrize("task", task_names())
def test_every_setting_has_a_default_a_help_text_and_a_type_for_its_flag(task):
    cls = find_task(task).config
    for f in dataclasses.fields(cls):
        assert f.default is not dataclasses.MISSING and f.metadata["help"]
        assert value_type(cls, f.name)[0] in (int, float, str, bool)


def test_settings_left_open_are_filled_in():
    config = make_config("skills", reward="disdain", learning_rate=0.3)
    assert (config.ensemble_size, config.bonus, config.bonus_weight) == (2, "disagreement", 20.0)
    plain = make_config("skills", reward="linear")
    assert (plain.ensemble_size, plain.bonus, plain.bonus_weight) == (1, "none", 0.0)


def test_configurations_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        make_config("skills").seed = 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seed": 1.5}, "seed must be int"),
        ({"seed": True}, "seed must be int"),
        ({"reward": None}, "reward must be str"),
        ({"epsilon": float("inf")}, "epsilon must be finite"),
        ({"horizn": 3}, "Did you mean 'horizon'"),
    ],
)
def test_wrong_types_and_names_are_told(settings, message):
    with pytest.raises(UserError, match=message):
        make_config("skills", **settings)
