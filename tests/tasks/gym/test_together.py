"""Environments whose author steps many at once: the same numbers as one by one, only faster."""

import json

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from stable_baselines3.common.vec_env import DummyVecEnv

from irrl.adapters.sb3_vector import GymnasiumVecEnv
from irrl.envs.maze_metrics import coverage
from irrl.envs.maze_vector import MazeVector
from irrl.envs.skills import CODE
from irrl.errors import UserError
from irrl.tasks import make_config
from irrl.tasks.gym import environments
from irrl.tasks.gym.environments import describe, make_envs
from irrl.tasks.gym.evaluate import evaluate_now, play_episodes
from irrl.tasks.gym.learner import prepare
from irrl.tasks.gym.train import learn_once
from tests.helpers.runs import content, run_in
from tests.tasks.gym.test_runs import MAZE


class NextStep(MazeVector):
    """Resets with the next step, which Stable-Baselines3 cannot follow."""

    metadata = {**MazeVector.metadata, "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012


class Limited(MazeVector):
    """Says of itself that it can be cut short, but not here."""


SINGLE = "irrl.envs.maze:Maze"
for _name, _vector, _limit in (("NextStep", NextStep, None), ("Limited", Limited, 7)):
    if f"{_name}-v0" not in gymnasium.registry:
        gymnasium.register(
            f"{_name}-v0", SINGLE, vector_entry_point=_vector, max_episode_steps=_limit
        )


def test_runs_are_those_of_environments_one_by_one(tmp_path, monkeypatch):
    together = run_in(tmp_path / "together", "gym", **MAZE, steps=800)
    assert isinstance(prepare(together.config, None).envs.venv, GymnasiumVecEnv)
    monkeypatch.setattr(environments, "goes_together", lambda config, env: False)
    single = run_in(tmp_path / "single", "gym", **MAZE, steps=800)
    assert isinstance(prepare(single.config, None).envs.venv, DummyVecEnv)
    assert content(together.folder) == content(single.folder)


def test_evaluation_plays_each_code_in_turn():
    learner = prepare(make_config("gym", "smoke", **MAZE, deterministic=True), None)
    played = play_episodes(learner.config, learner.described, learner.agent, learner.model, 10)
    assert [episode.label for episode in played] == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]
    paths = [episode.path["observation"] for episode in played]
    assert all(path.shape == (21, 2) for path in paths)
    np.testing.assert_array_equal(paths[0], paths[4])  # the same code, start and actions
    assert (paths[0][-1] != paths[1][-1]).any()


def test_coverage_is_of_one_path_of_each_code():
    config = make_config("gym", "smoke", **MAZE)
    learner = prepare(config, None)
    parts = (config, learner.described, learner.agent, learner.model)
    played = play_episodes(*parts, config.evaluate_episodes)
    expected = coverage([episode.path["observation"] for episode in played[:4]])
    more = coverage([episode.path["observation"] for episode in played])
    assert expected < more  # else this would not tell one from two
    assert evaluate_now(*parts)["coverage"] == expected


def test_coverage_counts_every_step_of_an_action():
    walls = "+--" * 10 + "+"
    corridor = f"{walls}\n|S {9 * '   '}|\n{walls}"
    options = {"map": corridor, "horizon": 45, "repeat": 45}
    config = make_config("gym", "smoke", **{**MAZE, "env_options": json.dumps(options)})
    learner = prepare(config, None)
    right = np.array([1.0, 0.0], np.float32)
    learner.agent.predict = lambda seen, *_: (np.tile(right, (len(seen[CODE]), 1)), None)
    parts = (config, learner.described, learner.agent, learner.model)
    assert evaluate_now(*parts)["coverage"] == 10
    assert play_episodes(*parts, 1)[0].places.shape == (46, 2)


def test_coverage_is_of_mazes_only():
    learner = prepare(make_config("gym", "smoke"), None)
    found = evaluate_now(learner.config, learner.described, learner.agent, learner.model)
    assert "coverage" not in found


@pytest.mark.parametrize(
    ("env", "options", "together"),
    [
        ("irrl/Maze-v0", {}, True),
        ("irrl/Maze-v0", {"max_episode_steps": 5}, False),
        ("NextStep-v0", {}, False),
        ("Limited-v0", {}, False),
        ("irrl/PointMass-v0", {}, False),
    ],
)
def test_what_goes_together(env, options, together):
    config = make_config("gym", "smoke", env=env, **options)
    described = describe(config)
    assert described.together == together
    envs = make_envs(config, described, 2, seed=0)
    envs.reset()
    limit = {"Limited-v0": 7}.get(env, config.max_episode_steps)
    steps = 0
    while not envs.step(np.zeros((2, 2), np.float32))[2].all():
        steps += 1
    assert limit is None or steps == limit - 1
    envs.close()


def test_walls_are_drawn_where_the_whole_place_is_judged():
    def maze(**settings):
        return describe(make_config("gym", "smoke", env="irrl/Maze-v0", **settings)).maze

    timed = {"env_options": '{"show_time": true}'}
    assert maze() is not None and maze(**timed) is not None and maze(**timed, sees="0:2")
    assert maze(sees="0") is None and maze(**timed, sees="1:3") is None
    assert describe(make_config("gym", "smoke")).maze is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nowhere", "unknown map 'nowhere'. Known: bottleneck, u-maze, or the path of a text file"),
        ("+--+\n|  |\n+--+--+", "the map is ragged: line 3 has 7 characters, line 1 has 4"),
        ("+--+\n|##|\n+--+", "the map has no start: the square at the bottom left is solid, mark "
         "an 'S'"),
        ("+--+--+\n|S |  |\n+--+--+", "the map has 1 squares that cannot be reached from the "
         "start, the first in line 2, column 5: open a wall or fill them with '##'"),
    ],
)  # fmt: skip
def test_a_map_that_cannot_be_read_is_told_in_one_line(text, said):
    options = json.dumps({"map": text})
    with pytest.raises(UserError) as told:
        describe(make_config("gym", "smoke", env="irrl/Maze-v0", env_options=options))
    assert str(told.value) == f"environment irrl/Maze-v0 cannot be made: {said}"


def test_a_maze_of_the_preset_is_learned_in():
    config = make_config("gym", "maze", envs=8, steps=320, codes=4, evaluate_episodes=4)
    learner = prepare(config, None)
    learner.begin_segment()
    learn_once(learner)
    found = evaluate_now(config, learner.described, learner.agent, learner.model)
    assert found["coverage"] >= 1 and found["episode_steps"] == 20  # of ten steps each
    assert learner.model.visits is not None and learner.model.episodes == 8


def test_an_ant_is_judged_by_its_place():
    options = {
        "exclude_current_positions_from_observation": False,
        "include_cfrc_ext_in_observation": False,
    }
    ant = {"env": "Ant-v5", "env_options": json.dumps(options), "sees": "0:2"}
    described = describe(make_config("gym", "half-cheetah", **ant))
    assert described.judged.shape == (2,) and not described.together
    seen = {"observation": np.arange(58, dtype=np.float64).reshape(2, 29)}
    np.testing.assert_array_equal(described.see(seen), [[0, 1], [29, 30]])


def test_actions_that_last_are_taken_one_by_one():
    config = make_config("gym", "smoke", **MAZE, repeat=4)
    described = describe(config)
    assert not described.together
    envs = make_envs(config, described, 2, seed=0)
    envs.reset()
    ends = [envs.step(np.ones((2, 2), np.float32))[2].all() for _ in range(5)]
    assert ends == [False, False, False, False, True]  # 20 steps, four to an action


def test_actions_cannot_last_where_predictions_are_asked_for():
    config = make_config("gym", "perception", repeat=2)
    with pytest.raises(UserError, match="repeat is for environments that do not ask"):
        describe(config)
