"""One maze, many mazes, and that they are the same."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from irrl.envs.maze import Maze
from irrl.envs.maze_agents import PIXELS
from irrl.envs.maze_map import read_maze
from irrl.envs.maze_metrics import coverage
from irrl.envs.maze_vector import MazeVector
from tests.envs.mazes import MAZE, register

register()


@pytest.mark.parametrize("options", [{}, {"show_time": True, "random_start": True, "step": 2}])
def test_gymnasium_accepts_it(options, recwarn):
    env = gymnasium.make(MAZE, map="u-maze", render_mode="rgb_array", **options)
    check_env(env.unwrapped)
    assert [str(w.message) for w in recwarn] == []


def test_gymnasium_makes_many_at_once():
    envs = gymnasium.make_vec(MAZE, num_envs=3, map="u-maze", horizon=4)
    assert isinstance(envs.unwrapped, MazeVector) and envs.num_envs == 3
    assert envs.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    seen, _ = envs.reset(seed=0)
    assert envs.observation_space.contains(seen)
    assert envs.observation_space.contains(envs.step(envs.action_space.sample())[0])
    one_by_one = gymnasium.make_vec(MAZE, num_envs=2, vectorization_mode="sync")
    assert isinstance(one_by_one, SyncVectorEnv)


def test_the_docstring_has_the_headings_of_all_environments():
    headings = ("Action Space", "Observation Space", "Rewards", "Starting State", "Episode End")
    assert all(f"## {heading}\n" in Maze.__doc__ for heading in (*headings, "Arguments"))


def test_an_episode():
    env = Maze(horizon=3, show_time=True)
    seen, info = env.reset(seed=0)
    np.testing.assert_allclose(seen, [-0.9, -0.9, 0.0], atol=1e-7)
    assert info == {}
    taken = [env.step(np.array([1.0, 0.5], np.float32)) for _ in range(3)]
    assert [step[1:] for step in taken] == [(0.0, False, over, {}) for over in (False, False, True)]
    np.testing.assert_allclose(taken[-1][0], [-0.78, -0.84, 1.0], atol=1e-6)
    assert env.reset()[0].tolist() == seen.tolist()


def test_actions_are_limited():
    env = Maze()
    env.reset()
    far = env.step([np.inf, -7.0])[0]
    env.reset()
    np.testing.assert_array_equal(far, env.step([1.0, -1.0])[0])


@pytest.mark.parametrize("random_start", [False, True])
def test_where_episodes_start(random_start):
    envs = MazeVector(200, "+--+--+\n|    S|\n+--+--+\n", random_start=random_start)
    places = envs.maze_map.places(envs.reset(seed=1)[0])
    assert (places > [5.0, 0.0]).all() and (places < [10.0, 5.0]).all()
    if not random_start:
        np.testing.assert_allclose(places, np.tile([7.5, 2.5], (200, 1)), atol=1e-6)
        return
    assert places.std(axis=0).min() > 1.2
    np.testing.assert_array_equal(envs.reset(seed=1)[0], MazeVector.reset(envs, seed=1)[0])
    assert (envs.reset(seed=2)[0] != envs.reset(seed=1)[0]).any()


def test_many_mazes_are_as_many_of_one():
    horizon, rng = 7, np.random.default_rng(0)
    options = {"map": "u-maze", "horizon": horizon, "step": 4.0, "show_time": True}
    many = MazeVector(5, **options)
    ones = SyncVectorEnv([lambda: Maze(**options)] * 5, autoreset_mode=AutoresetMode.SAME_STEP)
    np.testing.assert_array_equal(many.reset(seed=0)[0], ones.reset(seed=0)[0])
    for t in range(30):
        if t == 10:  # from here on episodes do not end together
            mask = np.array([True, False, False, True, False])
            got, wanted = (
                env.reset(options={"reset_mask": mask.copy()})[0] for env in (many, ones)
            )
            np.testing.assert_array_equal(got, wanted)
        actions = rng.uniform(-1, 1, (5, 2)).astype(np.float32)
        got, wanted = many.step(actions), ones.step(actions)
        for one, two in zip(got[:4], wanted[:4], strict=True):
            np.testing.assert_array_equal(one, two)
            assert one.dtype == two.dtype
        assert set(got[4]) == set(wanted[4])
        if got[3].any():
            np.testing.assert_array_equal(got[4]["_final_obs"], wanted[4]["_final_obs"])
            assert got[4]["final_info"] == wanted[4]["final_info"] == {}
            for one, two in zip(got[4]["final_obs"], wanted[4]["final_obs"], strict=True):
                np.testing.assert_array_equal(one, two)


def test_what_is_returned_is_not_changed_afterwards():
    envs = MazeVector(2, horizon=2)
    kept = [envs.reset()[0], *(envs.step(np.ones((2, 2)))[0] for _ in range(2))]
    copies = [array.copy() for array in kept]
    envs.step(-np.ones((2, 2)))
    envs.reset()
    for array, copy in zip(kept, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"horizon": 0}, "horizon must be a whole number, at least 1, got 0"),
        ({"horizon": 2.5}, "horizon must be a whole number, at least 1, got 2.5"),
        ({"repeat": 0}, "repeat must be a whole number, at least 1, got 0"),
        ({"repeat": 3}, "repeat must divide the horizon, 200, got 3"),
        ({"step": 0.0}, "step must lie between 0 and the size of the maze, 50, got 0.0"),
        ({"step": 51}, "step must lie between 0 and the size of the maze, 50, got 51"),
        ({"step": float("nan")}, "step must lie between 0 and the size of the maze, 50, got nan"),
        ({"render_mode": "human"}, "render_mode must be rgb_array, got 'human'"),
        ({"map": "nowhere"}, "unknown map 'nowhere'"),
    ],
)
def test_settings_that_cannot_be(options, said):
    for make in (Maze, MazeVector):
        with pytest.raises(ValueError, match=said):
            make(**options)


@pytest.mark.parametrize("count", [0, True, 1.5])
def test_so_many_environments_cannot_be(count):
    with pytest.raises(ValueError, match="num_envs must be a whole number, at least 1"):
        MazeVector(count)


def test_actions_and_masks_that_cannot_be():
    envs = MazeVector(3)
    envs.reset()
    with pytest.raises(ValueError, match=r"actions must have shape \(3, 2\), got \(2,\)"):
        envs.step([0.0, 0.0])
    with pytest.raises(ValueError, match=r"action of agent 1 is not a number: \[0.0, nan\]"):
        envs.step([[0.0, 0.0], [0.0, np.nan], [0.0, 0.0]])
    for mask in (np.ones(2, bool), np.ones(3)):
        with pytest.raises(ValueError, match="reset_mask must be 3 booleans"):
            envs.reset(options={"reset_mask": mask})


def test_pictures():
    env = Maze(map="u-maze", render_mode="rgb_array")
    env.reset()
    first = env.render()
    assert first.shape == (10 * PIXELS + 3, 10 * PIXELS + 3, 3) and first.dtype == np.uint8
    agent = (0, 114, 178)
    rows, columns = np.nonzero((first == agent).all(axis=2))
    assert abs(columns.mean() - (1 + PIXELS / 2)) < 1  # in the middle of the lower left square
    assert abs(rows.mean() - (1 + 9.5 * PIXELS)) < 1
    dark = (first == (60, 60, 60)).all(axis=2)
    assert dark[5 * PIXELS, PIXELS] and dark[0].all() and dark[:, -1].all()
    env.step([1.0, 0.0])
    assert (env.render() != first).any()
    many = MazeVector(3, render_mode="rgb_array")
    many.reset()
    assert len(many.render()) == 3
    assert Maze().render() is None and MazeVector(1).render() is None


@pytest.mark.parametrize(
    ("name", "uniform", "full"), [("bottleneck", 18.9, 29.0), ("u-maze", 14.0, 23.9)]
)
def test_how_much_random_actions_cover(name, uniform, full):
    """The numbers of the guide: what an agent covers says whether two mazes are the same."""
    maze, episodes = read_maze(name), 50
    assert maze.width == 50.0

    def covered(seed, sample):
        rng = np.random.default_rng(seed)
        envs = MazeVector(episodes, name, horizon=201)
        seen = [envs.reset(seed=seed)[0]]
        seen += [envs.step(sample(rng))[0] for _ in range(200)]
        return coverage(np.stack(seen, axis=1))

    shape = (episodes, 2)
    samples = {uniform: lambda rng: rng.uniform(-1, 1, shape)}
    samples[full] = lambda rng: rng.choice([-1.0, 1.0], shape)
    for wanted, sample in samples.items():
        found = np.mean([covered(seed, sample) for seed in range(20)])
        assert abs(found - wanted) < 1.5


def test_an_action_of_several_steps_is_that_action_several_times():
    rng, many, one = np.random.default_rng(0), MazeVector(4, horizon=12, repeat=3), MazeVector(4)
    many.reset(seed=0), one.reset(seed=0)
    for n in range(4):
        actions = rng.uniform(-1, 1, (4, 2)).astype(np.float32)
        steps = [one.step(actions)[0] for _ in range(3)]
        seen, _, _, over, info = many.step(actions)
        np.testing.assert_array_equal(info["maze_path"], np.stack(steps, axis=1))
        assert over.all() == (n == 3)
    np.testing.assert_array_equal(np.stack(list(info["final_obs"])), steps[-1])
    np.testing.assert_array_equal(info["final_info"]["maze_path"], info["maze_path"])
    np.testing.assert_array_equal(seen, many.reset()[0])


def test_one_maze_with_actions_of_several_steps():
    env = Maze(repeat=5, horizon=10)
    check_env(env)
    env.reset()
    seen, *_, info = env.step(np.array([1.0, 0.0], np.float32))
    np.testing.assert_allclose(seen, [-0.7, -0.9], atol=1e-6)
    np.testing.assert_allclose(
        info["maze_path"][:, 0], [-0.86, -0.82, -0.78, -0.74, -0.7], atol=1e-6
    )
    assert env.step(np.zeros(2, np.float32))[3]
