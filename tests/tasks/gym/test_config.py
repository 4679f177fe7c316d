import pytest

from irrl.errors import UserError
from irrl.reward_model import Settings
from irrl.tasks import make_config
from irrl.tasks.gym.checks import seen_part
from irrl.tasks.gym.config import OF_REWARD_MODEL, GymConfig


def test_what_is_left_open_follows_the_mode():
    skills, labels = GymConfig(), GymConfig(mode="labels")
    assert (skills.judge, skills.store, skills.samples_per_episode) == ("final", 2_048, 32)
    assert (labels.judge, labels.store, labels.samples_per_episode) == ("trajectory", 50_000, 8)
    assert GymConfig(reward="disdain").ensemble_size == 2


@pytest.mark.parametrize("mode", ["skills", "labels"])
@pytest.mark.parametrize("judge", [None, "state", "final", "trajectory"])
def test_the_reward_model_would_choose_the_same(mode, judge):
    ours = GymConfig(mode=mode, judge=judge).reward_model_settings()
    theirs = Settings(mode=mode, judge=judge).to_json()
    assert {name: theirs[name] for name in ours} == ours


def test_every_setting_of_the_reward_model_that_matters_has_a_flag():
    left_out = {"normalise", "max_episode_steps", "device"}  # of one's own modules; elsewhere
    assert set(OF_REWARD_MODEL.values()) | left_out == set(Settings().to_json())


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"mode": "skill"}, "Did you mean 'skills'"),
        ({"agent": "ppo2"}, "Known: ppo, a2c"),
        ({"agent": "sac", "judge": "trajectory"}, "judge must be state or final"),
        ({"agent": "sac", "observe": "standardised"}, "observe standardised is for agents that"),
        ({"agent": "td3", "action_gain": 1.0}, "action-gain is for agents that collect rollouts"),
        ({"action_gain": 0.0}, "action-gain must be positive"),
        ({"engine": "rllib", "action_gain": 1.0}, "action-gain is for --engine sb3"),
        ({"repeat": 0}, "repeat must be at least 1"),
        ({"codes": 1}, "codes must be at least 2"),
        ({"labels": 1}, "labels must be at least 2"),
        ({"env_options": "horizon=8"}, "env-options must be JSON"),
        ({"env_options": "[1]"}, "env-options must be a JSON object"),
        ({"widths": "64;64"}, "widths must be numbers"),
        ({"widths": "0"}, "widths must be numbers"),
        ({"steps": 0}, "steps must be at least 1"),
        ({"oracle": ""}, "oracle must be the folder"),
        ({"discount": 1.5}, "discount must be between 0 and 1"),
        ({"reward": "liner"}, "Did you mean 'linear'"),
        ({"reward": "ball"}, "is for labels that are numbers: mode regression"),
        ({"label_moves": True}, "label-moves is for labels that are numbers"),
        ({"beta_nll": 0.5}, "beta-nll is for labels that are numbers"),
        ({"discriminator_schedule": "cos"}, "Did you mean 'cosine'"),
        (
            {"mode": "regression", "reward": "crps", "density": "bins", "beta_nll": 0.5},
            "beta-nll goes with density normal",
        ),
        (
            {"engine": "rllib", "discriminator_schedule": "cosine"},
            "engine rllib learns with a constant discriminator-schedule",
        ),
        ({"mode": "regression"}, "reward clipped-linear is of classes: take density bins, or"),
        ({"mode": "regression", "reward": "bal", "density": "bins"}, "unknown reward 'bal'"),
        ({"mode": "regression", "reward": "ball", "epsilon": 0.0}, "epsilon must be positive"),
        ({"mode": "regression", "reward": "crps", "label_low": 0.0}, "label-low must be below"),
        ({"mode": "regression", "reward": "crps", "density": "bin"}, "Did you mean 'bins'"),
    ],
)
def test_impossible_settings_are_refused(settings, said):
    with pytest.raises(UserError, match=said):
        GymConfig(**settings)


def test_what_is_seen():
    assert seen_part("all", []) is None
    assert seen_part("0:2", []) == slice(0, 2)
    assert seen_part("3", []) == slice(3, 4)
    assert seen_part("place, time", ["place", "time", "code"]) == ["place", "time"]
    with pytest.raises(UserError, match="Did you mean 'place'"):
        seen_part("plac", ["place"])
    with pytest.raises(UserError, match="sees must be"):
        seen_part("first", [])


def test_presets_can_be_made():
    for preset in (
        "fast", "smoke", "four-rooms", "perception", "localisation", "lidar", "replay",
        "half-cheetah",
    ):  # fmt: skip
        assert make_config("gym", preset).task == "gym"
