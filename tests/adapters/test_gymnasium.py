"""All three autoreset modes of Gymnasium, against a twin that knows the script."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorWrapper
from hypothesis import given, settings
from hypothesis import strategies as st

from irrl.adapters.gymnasium import Rewarded
from irrl.envs import Skills, perceive
from irrl.reward_model import RewardModel
from tests.adapters.worlds import (
    BOX,
    LABELS,
    SCRIPT,
    Scene,
    Scripted,
    episodes_within,
    model_for,
    played,
    require_played,
)

MODES = list(AutoresetMode)
scenes = st.builds(Scene, st.integers(1, 5), st.booleans(), st.integers(0, LABELS - 1))
scripts = st.lists(st.lists(scenes, min_size=1, max_size=3), min_size=1, max_size=3)


def made(envs, mode, model, **options):
    vector = SyncVectorEnv([lambda env=env: env for env in envs], autoreset_mode=mode)
    return Rewarded(vector, model, **options)


def rolled_out(env, steps, reset_with=None):
    """Rewards of each environment, episode by episode as the loop sees them; all that came back."""
    env.reset(seed=0)
    paid = [[[]] for _ in range(env.num_envs)]
    seen = []
    for _ in range(steps):
        step = env.step(np.zeros(env.num_envs, int))
        _, rewards, terminated, truncated, info = step
        seen.append(step)
        ended = terminated | truncated
        for n in range(env.num_envs):
            if info["reset_step"][n]:
                assert rewards[n] == 0.0
                continue
            paid[n][-1].append(rewards[n])
            if ended[n]:
                paid[n].append([])
        if env.mode == AutoresetMode.DISABLED and ended.any():
            options = {"reset_mask": ended}
            env.reset(options=options)
            assert "reset_mask" in options  # the caller's own dictionary is left alone
    return paid, seen


@settings(max_examples=60, deadline=None)
@given(
    scripts,
    st.sampled_from(MODES),
    st.sampled_from(["state", "trajectory"]),
    st.sampled_from(["end", "differences", "steps"]),
    st.booleans(),
    st.sampled_from(["always", "reset", "steps"]),
    st.integers(1, 16),
)
def test_episodes_and_rewards_are_those_that_happened(
    scripts, mode, judge, pay, named, tells, steps
):
    envs = [Scripted(n, tuple(script), named, tells) for n, script in enumerate(scripts)]
    model = model_for(envs[0], judge=judge, pay=pay)
    paid, seen = rolled_out(made(envs, mode, model), steps)
    between = int(mode == AutoresetMode.NEXT_STEP)
    require_played(model, envs, [episodes_within(env, steps, between) for env in envs])
    for env, episodes in zip(envs, paid, strict=True):
        for number, rewards in enumerate(episodes):
            expected = model.rewards(*played(env, number))[: len(rewards)]
            np.testing.assert_allclose(rewards, expected, atol=1e-5)
    for _, rewards, terminated, truncated, _ in seen:
        assert rewards.dtype == np.float32
        if pay != "steps":
            assert not truncated.any()
        else:
            assert not (terminated & truncated).any()


@pytest.mark.parametrize("mode", MODES)
def test_where_steps_are_paid_a_truncation_stays_one(mode):
    env = made([Scripted(script=(Scene(2, True, 0),))], mode, model_for(pay="steps"))
    _, seen = rolled_out(env, 2)
    assert [bool(step[3][0]) for step in seen] == [False, True]
    env = made([Scripted(script=(Scene(2, True, 0),))], mode, model_for(pay="end"))
    _, seen = rolled_out(env, 2)
    assert [bool(step[2][0]) for step in seen] == [False, True]


def test_the_reset_step_is_marked_and_opens_the_new_episode():
    env = made([Scripted(script=(Scene(2, True, 1),))], AutoresetMode.NEXT_STEP, model_for())
    _, seen = rolled_out(env, 6)
    assert [bool(step[4]["reset_step"][0]) for step in seen] == [0, 0, 1, 0, 0, 1]
    require_played(env.model, env.unwrapped.envs, [2])


def test_labels_told_at_the_end_only():
    for mode in MODES:
        envs = [Scripted(0, tells="end"), Scripted(1, SCRIPT[::-1], tells="end")]
        model = model_for()
        rolled_out(made(envs, mode, model), 12)
        between = int(mode == AutoresetMode.NEXT_STEP)
        require_played(model, envs, [episodes_within(env, 12, between) for env in envs])


def test_a_label_by_a_path():
    for mode in MODES:
        model = model_for()
        env = made([Scripted()], mode, model, label="deep.label")
        rolled_out(env, 6)
        assert [label for _, label in model.given] == [scene.label for scene in SCRIPT[:2]]


class Batched(VectorWrapper):
    """Last observations with a leading axis, as older vector environments have them."""

    def step(self, actions):
        *rest, info = self.env.step(actions)
        if "final_obs" in info:
            blank = self.single_observation_space.sample()
            rows = [blank if row is None else row for row in info["final_obs"]]
            info["final_obs"] = {name: np.stack([row[name] for row in rows]) for name in blank}
        return *rest, info


def test_last_observations_in_their_other_form():
    envs = [Scripted(n, SCRIPT[n:], named=True) for n in range(2)]
    vector = SyncVectorEnv(
        [lambda env=env: env for env in envs], autoreset_mode=AutoresetMode.SAME_STEP
    )
    model = model_for(envs[0])
    rolled_out(Rewarded(Batched(vector), model), 9)
    require_played(model, envs, [episodes_within(env, 9) for env in envs])


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_environments_in_processes_of_their_own(mode):
    envs = [Scripted(n, SCRIPT[n:], named=True) for n in range(2)]
    model = model_for(envs[0])
    vector = AsyncVectorEnv([lambda env=env: env for env in envs], autoreset_mode=mode)
    env = Rewarded(vector, model)
    rolled_out(env, 8)
    env.close()
    between = int(mode == AutoresetMode.NEXT_STEP)
    require_played(model, envs, [episodes_within(env, 8, between) for env in envs])


def test_it_learns_between_steps_and_pays_what_it_then_believes():
    for mode in MODES:
        model = model_for(judge="trajectory", pay="end", core="gru")
        env = made([Scripted(0), Scripted(1, SCRIPT[1:])], mode, model)
        env.reset()
        paid = []
        for t in range(30):
            _, rewards, ended, _, _ = env.step(np.zeros(2, int))
            paid += [rewards[n] for n in np.nonzero(ended)[0]]
            if mode == AutoresetMode.DISABLED and ended.any():
                env.reset(options={"reset_mask": ended})
            if t % 3 == 0:
                env.learn()
        assert model.updates > 3
        np.testing.assert_allclose(paid, model.worth, atol=1e-5)
        assert len(set(np.round(paid, 5))) > 4


def test_the_code_of_skills_does_not_reach_the_discriminator():
    vector = SyncVectorEnv([lambda: Skills(Scripted(tells="never"), LABELS)] * 2)
    model = model_for(BOX, mode="skills")
    env = Rewarded(vector, model)
    rolled_out(env, 10)
    assert model.given
    assert all(set(seen) == {"observation"} for seen, _ in model.given)
    with pytest.raises(ValueError, match="would see the code"):
        Rewarded(vector, model_for(vector.single_observation_space))


def test_ap_gym_gets_what_is_believed_as_its_prediction():
    inner = perceive("ap_gym:CircleSquare-v0", num_envs=3)
    model = RewardModel(inner.single_observation_space, labels=2)
    env = Rewarded(inner, model)
    env.reset(seed=0)
    for _ in range(20):
        believed = env.collector.log_probs
        env.step(env.action_space.sample())
        np.testing.assert_allclose(inner.predictions, believed, atol=1e-6)
    assert np.ptp(believed) > 0
    assert model.episodes == 3


def test_evaluation_leaves_the_model_as_it_is():
    model = model_for()
    env = made([Scripted()], AutoresetMode.SAME_STEP, model, training=False)
    paid, _ = rolled_out(env, 8)
    assert model.episodes == 0
    np.testing.assert_allclose(paid[0][0], model.rewards(*played(Scripted(), 0)), atol=1e-6)


class WrongLabel(gymnasium.Wrapper):
    def __init__(self, env, label):
        super().__init__(env)
        self.label = label

    def step(self, action):
        *rest, info = self.env.step(action)
        return *rest, {**info, "label": self.label}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("label", "said"),
    [(LABELS, "out of range"), (-1, "out of range"), (0.5, "whole number"), (None, "no label")],
)
def test_a_wrong_label_is_one_line(mode, label, said):
    env = made([WrongLabel(Scripted(tells="never"), label)], mode, model_for())
    with pytest.raises(ValueError, match=said) as caught:
        rolled_out(env, 3)
    assert "\n" not in str(caught.value)


def test_no_label_at_all():
    env = made([Scripted(tells="never")], AutoresetMode.SAME_STEP, model_for())
    with pytest.raises(ValueError, match="environment 0 told no label"):
        rolled_out(env, 3)


def test_an_episode_that_is_over_must_be_reset():
    env = made([Scripted(script=(Scene(1, False, 0),))], AutoresetMode.DISABLED, model_for())
    env.reset()
    env.step(np.zeros(1, int))
    with pytest.raises(ValueError, match="episode of environment 0 is over: reset it"):
        env.step(np.zeros(1, int))


def test_a_model_for_other_observations():
    with pytest.raises(ValueError, match="make it for what they show") as caught:
        made([Scripted()], AutoresetMode.SAME_STEP, model_for(spaces.Box(-1.0, 1.0, (3,))))
    assert "\n" not in str(caught.value)
