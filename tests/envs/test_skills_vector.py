"""Skills of environments that are stepped together, against `Skills` one by one."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

from irrl import RewardModel
from irrl.adapters.gymnasium import Rewarded
from irrl.envs import Skills, SkillsVector
from irrl.envs.maze import Maze
from irrl.envs.maze_vector import MazeVector
from tests.adapters.worlds import Scene, Scripted

CODES = 5
scenes = st.builds(Scene, st.integers(1, 4), st.booleans(), st.just(0))
scripts = st.lists(st.lists(scenes, min_size=1, max_size=3), min_size=1, max_size=4)


def require_same(one, two):
    """Whatever environments return: arrays, dictionaries of them, objects in arrays."""
    if isinstance(two, dict):
        assert set(one) == set(two)
        for key in two:
            require_same(one[key], two[key])
    elif isinstance(two, tuple) or getattr(two, "dtype", np.dtype(int)).kind == "O":
        for first, second in zip(one, two, strict=True):
            require_same(first, second)
    else:
        np.testing.assert_array_equal(one, two)


@settings(max_examples=40, deadline=None)
@given(
    scripts,
    st.sampled_from(list(AutoresetMode)),
    st.booleans(),
    st.integers(0, 100),
    st.integers(1, 12),
)
def test_it_is_skills_one_by_one(scripts, mode, named, seed, steps):
    def make(wrapped):
        envs = [Scripted(n, tuple(s), named, tells="never") for n, s in enumerate(scripts)]
        inside = [Skills(env, CODES) for env in envs] if wrapped else envs
        vector = SyncVectorEnv([lambda env=env: env for env in inside], autoreset_mode=mode)
        return vector if wrapped else SkillsVector(vector, CODES)

    ours, theirs = make(False), make(True)
    assert ours.single_observation_space == theirs.single_observation_space
    assert ours.observation_space == theirs.observation_space
    require_same(ours.reset(seed=seed), theirs.reset(seed=seed))
    for _ in range(steps):
        actions = np.zeros(len(scripts), int)
        got, wanted = ours.step(actions), theirs.step(actions)
        require_same(got, wanted)
        ended = wanted[2] | wanted[3]
        if mode == AutoresetMode.DISABLED and ended.any():
            begun = [env.reset(options={"reset_mask": ended.copy()}) for env in (ours, theirs)]
            require_same(begun[0][0], begun[1][0])
            known = begun[1][1]["_label"]
            np.testing.assert_array_equal(begun[0][1]["label"][known], begun[1][1]["label"][known])


def test_mazes_at_once_are_mazes_one_by_one():
    rng = np.random.default_rng(0)
    ours = SkillsVector(MazeVector(4, horizon=6), CODES)
    theirs = SyncVectorEnv(
        [lambda: Skills(Maze(horizon=6), CODES)] * 4, autoreset_mode=AutoresetMode.SAME_STEP
    )
    require_same(ours.reset(seed=3), theirs.reset(seed=3))
    for _ in range(20):
        actions = rng.uniform(-1, 1, (4, 2)).astype(np.float32)
        require_same(ours.step(actions), theirs.step(actions))


def test_codes_are_drawn_by_the_seed_and_uniformly():
    env = SkillsVector(MazeVector(300, horizon=1), CODES)

    def drawn(seed):
        codes = [env.reset(seed=seed)[1]["label"]]
        return np.stack([*codes, *(env.step(np.zeros((300, 2)))[4]["label"] for _ in range(9))])

    one, two, other = drawn(1), drawn(1), drawn(2)
    np.testing.assert_array_equal(one, two)
    assert (one != other).any()
    assert np.abs(np.bincount(one.ravel(), minlength=CODES) / one.size - 1 / CODES).max() < 0.03
    few = SkillsVector(SyncVectorEnv([Maze] * 3), CODES)
    assert few.reset(seed=[1, 2, 3])[1]["label"].tolist() == one[0, :3].tolist()


def test_codes_can_be_given():
    env = SkillsVector(MazeVector(3, horizon=2), CODES)
    seen, info = env.reset(options={"code": np.array([4, 0, 2])})
    assert info["label"].tolist() == [4, 0, 2] == seen["code"].argmax(axis=1).tolist()
    assert env.step(np.zeros((3, 2)))[4]["label"].tolist() == [4, 0, 2]
    end = env.step(np.zeros((3, 2)))[4]
    assert end["final_info"]["label"].tolist() == [4, 0, 2]
    assert [last["code"].argmax() for last in end["final_obs"]] == [4, 0, 2]
    assert env.reset(options={"code": 1})[1]["label"].tolist() == [1, 1, 1]
    options = {"code": [3, 3, 3], "reset_mask": np.array([False, True, False])}
    assert env.reset(options=options)[1]["label"].tolist() == [1, 3, 1]
    assert set(options) == {"code", "reset_mask"}  # the caller's own dictionary is left alone


@pytest.mark.parametrize("code", [5, -1, 1.0, "2", True, [0, 1], [0, 1, 5], [[0, 1, 2]]])
def test_codes_that_are_none_are_refused_before_anything_is_reset(code):
    env = SkillsVector(MazeVector(3), CODES)
    env.reset(options={"code": 2})
    with pytest.raises(ValueError, match=r"code must lie in 0..4, one for all or for each of 3"):
        env.reset(options={"code": code})
    assert env.step(np.zeros((3, 2)))[4]["label"].tolist() == [2, 2, 2]


@pytest.mark.parametrize("codes", [1, True, 2.0])
def test_a_number_of_codes_that_cannot_be(codes):
    with pytest.raises(ValueError, match="codes must be a whole number, at least 2"):
        SkillsVector(MazeVector(2), codes)


def test_single_environments_are_refused():
    with pytest.raises(ValueError, match="SkillsVector is for vector environments, got Maze"):
        SkillsVector(Maze(), 4)


def test_what_is_returned_is_not_changed_afterwards():
    env = SkillsVector(MazeVector(50, horizon=1), CODES)
    seen, info = env.reset(seed=0)
    codes, labels = seen["code"].copy(), info["label"].copy()
    for _ in range(3):
        env.step(np.zeros((50, 2)))
    np.testing.assert_array_equal(seen["code"], codes)
    np.testing.assert_array_equal(info["label"], labels)


# --- with adapters ---


def model_of(**options):
    space = spaces.Box(-1.0, 1.0, (2,), np.float32)
    return RewardModel(space, CODES, mode="skills", width=8, **options)


def test_the_gymnasium_adapter_pays_the_same_as_one_by_one():
    paid, stored = [], []
    for vector in (
        SkillsVector(MazeVector(4, horizon=6), CODES),
        SyncVectorEnv([lambda: Skills(Maze(horizon=6), CODES)] * 4,
                      autoreset_mode=AutoresetMode.SAME_STEP),
    ):  # fmt: skip
        model = model_of(seed=0, judge="state", pay="differences", reward="linear")
        env, rng = Rewarded(vector, model), np.random.default_rng(0)
        env.reset(seed=1)
        steps = [env.step(rng.uniform(-1, 1, (4, 2)).astype(np.float32)) for _ in range(20)]
        paid.append(np.stack([step[1] for step in steps]))
        ends = model.store.episodes(np.arange(len(model.store)))
        stored.append((ends.labels, ends.observations["observation"]))
        assert len(model.store) == 12
    assert (paid[0] != 0).any()
    np.testing.assert_array_equal(*paid)
    require_same(*stored)


def test_stable_baselines3_learns_from_many_at_once():
    sb3 = pytest.importorskip("stable_baselines3")
    from irrl.adapters.sb3 import Rewarded as RewardedVecEnv
    from irrl.adapters.sb3_vector import GymnasiumVecEnv

    envs = GymnasiumVecEnv(SkillsVector(MazeVector(8, horizon=5), CODES))
    envs.seed(0)
    seen = envs.reset()
    wanted = SkillsVector(MazeVector(8, horizon=5), CODES).reset(seed=0)[1]["label"]
    assert seen["code"].argmax(axis=1).tolist() == wanted.tolist()
    for _ in range(5):
        seen, _, dones, infos = envs.step(np.ones((8, 2), np.float32))
    assert dones.all()
    for n, info in enumerate(infos):
        last = info["terminal_observation"]
        assert last["code"].argmax() == info["label"] == wanted[n]
        assert last["observation"][0] > seen["observation"][n, 0]
        assert seen["code"][n].argmax() == envs.reset_infos[n]["label"]
    envs.set_options({"code": np.arange(8) % CODES})
    assert envs.reset()["code"].argmax(axis=1).tolist() == [n % CODES for n in range(8)]

    model = model_of(seed=0)
    env = RewardedVecEnv(envs, model)
    agent = sb3.PPO("MultiInputPolicy", env, n_steps=10, batch_size=40, n_epochs=1, device="cpu")
    agent.learn(160, callback=env.learner())
    assert 16 <= len(model.store) <= 32  # without those that are kept for a look at its health
    ends = model.store.episodes(np.arange(len(model.store)))
    assert set(np.unique(ends.labels)) <= set(range(CODES))


def test_gymnasium_can_wrap_it():
    env = SkillsVector(MazeVector(2, horizon=3), CODES)
    env = gymnasium.wrappers.vector.RecordEpisodeStatistics(env)
    env.reset(seed=0)
    for _ in range(3):
        info = env.step(np.zeros((2, 2)))[4]
    assert info["episode"]["l"].tolist() == [3, 3]
