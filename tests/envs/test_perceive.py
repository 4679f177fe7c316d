import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from irrl.envs import perceive

CIRCLES = "ap_gym:CircleSquare-v0"
STEPS = 16


@pytest.fixture
def circles():
    """The real environments, closed in the end: a thread reads pictures for them."""
    env = perceive(CIRCLES, 4)
    yield env
    env.close()


def test_the_policy_acts_and_sees_what_agents_can_read(circles):
    env = circles
    assert env.num_envs == 4 and env.labels == 2
    assert type(env.single_action_space) is Box and env.single_action_space.shape == (2,)
    assert env.action_space.shape == (4, 2)
    space = env.single_observation_space
    assert {name: inner.shape for name, inner in space.items()} == {
        "glimpse": (5, 5, 1), "glimpse_pos": (2,), "time_step": (1,),
    }  # fmt: skip
    assert all(type(inner) is Box for inner in space.values())
    seen, info = env.reset(seed=0)
    assert env.observation_space.contains(seen) and seen["time_step"].shape == (4, 1)
    assert info == {}  # what leads to the label is not told
    seen, *_ = env.step(env.action_space.sample())
    assert env.observation_space.contains(seen)


@pytest.mark.parametrize("knows", [True, False])
def test_predictions_that_are_handed_over_are_those_that_count(circles, knows):
    env = circles
    env.reset(seed=1)
    still = np.zeros((4, 2), np.float32)
    *_, info = env.step(still)
    labels = info["label"]
    for _ in range(STEPS - 1):
        right = np.where(np.arange(2) == labels[:, None], 0.0, -20.0)
        env.predict(right if knows else right[:, ::-1])
        _, _, terminated, truncated, info = env.step(still)
        assert set(info) >= {"label"} and "index" not in info
        np.testing.assert_array_equal(info["label"], labels)
    assert (terminated | truncated).all()
    assert info["final_accuracy"].tolist() == [float(knows)] * 4


def test_predictions_begin_anew_with_a_reset(circles):
    env = circles
    env.reset(seed=0)
    env.predict(np.ones((4, 2)))
    assert env.predictions.all()
    env.reset()
    assert not env.predictions.any()
    with pytest.raises(ValueError, match=r"predictions must have shape \(4, 2\), got \(3, 2\)"):
        env.predict(np.ones((3, 2)))


# --- any environment whose label is in info ---


class Guess(gymnasium.Env):
    """Tells its label under a path, and much that gives it away; ends after label + 2 steps."""

    observation_space = Dict({"time": Box(0.0, 9.0, (), np.float32), "n": Discrete(3)})
    action_space = Discrete(2)

    def __init__(self, silent=False):
        self.silent = silent

    def _show(self):
        target = {} if self.silent else {"target": self.label}
        info = {"truth": {"of": target}, "secret": self.label, "stats": 3.0}
        return {"time": np.array(self.t, np.float32), "n": np.int64(self.t % 3)}, info

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.label = 0, int(self.np_random.integers(3))
        return self._show()

    def step(self, action):
        self.t += 1
        seen, info = self._show()
        return seen, 0.0, False, self.t == self.label + 2, info


def vector(mode, makes):
    return perceive(SyncVectorEnv(makes, autoreset_mode=mode), label="truth.of.target")


def test_a_label_under_any_path_is_told_and_nothing_else():
    env = vector(AutoresetMode.NEXT_STEP, [Guess, Guess, Guess])
    assert env.single_observation_space["time"].shape == (1,) and not env.asks
    seen, info = env.reset(seed=0)
    assert seen["time"].shape == (3, 1) and env.observation_space.contains(seen)
    assert set(info) == {"label", "_label"}
    labels = [inner.label for inner in env.env.envs]
    assert info["label"].tolist() == labels and len(set(labels)) > 1
    env.predict(np.zeros((3, 3)))  # nobody asked
    seen, _, _, _, info = env.step(np.zeros(3, int))
    assert info["label"].tolist() == labels and set(info) == {"label", "_label"}


def test_who_told_no_label_is_not_taken_to_have_told_one():
    env = vector(AutoresetMode.NEXT_STEP, [Guess, lambda: Guess(silent=True)])
    _, info = env.reset(seed=0)
    assert info["_label"].tolist() == [True, False]
    silent = vector(AutoresetMode.NEXT_STEP, [lambda: Guess(silent=True)])
    assert silent.reset(seed=0)[1] == {}


def test_where_environments_reset_in_the_same_step_the_end_is_told_apart():
    env = vector(AutoresetMode.SAME_STEP, [Guess, Guess, Guess])
    _, info = env.reset(seed=0)
    before, ends = info["label"], 0
    for _ in range(12):
        seen, _, _, truncated, info = env.step(np.zeros(3, int))
        assert set(info) <= {
            "label", "_label", "final_obs", "_final_obs", "final_info", "_final_info",
        }  # fmt: skip
        for n in np.nonzero(truncated)[0]:
            assert set(info["final_info"]) == {"label", "_label"}
            assert info["final_info"]["label"][n] == before[n]
            assert info["final_obs"][n]["time"].tolist() == [before[n] + 2.0]
            assert seen["time"][n].tolist() == [0.0]
            ends += 1
        for n in np.nonzero(~truncated)[0] if truncated.any() else ():
            assert info["final_obs"][n] is None
        before = info["label"]
    assert ends > 3


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ("NoSuchThing-v0", r"cannot make environment 'NoSuchThing-v0': .*module:NAME-v0"),
        ("nowhere:Thing-v0", "cannot make environment 'nowhere:Thing-v0': ModuleNotFoundError"),
        ("ap_gym:NoSuchThing-v0", "cannot make environment 'ap_gym:NoSuchThing-v0': NameNotFound"),
        (Guess(), "env must be an id or a vector environment, got Guess"),
    ],
)
def test_what_cannot_be_made_is_said_in_one_line(env, said):
    with pytest.raises(ValueError, match=said) as caught:
        perceive(env)
    assert "\n" not in str(caught.value)


def test_options_that_an_environment_does_not_have_are_refused_in_one_line():
    with pytest.raises(ValueError, match=r"cannot make environment 'CartPole-v1': .*colour"):
        perceive("CartPole-v1", 2, colour="red")
