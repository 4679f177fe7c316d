"""A reward of one's own: `module:function`, compiled for the loop."""

import math

import numpy as np
import pytest

from irrl.errors import UserError
from irrl.rewards import reward
from irrl.tasks import begin, make_config
from irrl.tasks.skills.reward import compiled_reward
from tests.helpers.runs import run_in
from tests.tasks.skills import twin

OWN = """
import numpy as np

def line(q):
    return 1.0 * q

def cube(q):
    return q**3

def log(q):
    return np.log(q)

def root(q):
    return np.sqrt(q)

def looks_it_up(q):
    return np.interp(q, KNOTS, KNOTS) if isinstance(q, np.ndarray) else TABLE[q]

KNOTS = np.array([0.0, 1.0])
TABLE = {}

def of_arrays_only(q):
    return q.reshape(-1).reshape(q.shape)

def imports_inside(q):
    import os
    return q * len(os.sep)
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    (tmp_path / "own_rewards.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    return "own_rewards"


@pytest.mark.parametrize("clipped", ["", "clipped-"])
@pytest.mark.parametrize("function", ["cube", "log", "root"])
def test_compiled_rewards_of_ones_own_are_the_librarys(own, clipped, function):
    name = f"{clipped}{own}:{function}"
    log_q = twin.log_softmax(4 * np.random.default_rng(3).normal(size=(20, 6)))
    log_q = log_q.astype(np.float32)
    log_q[0, 0] = -math.inf  # finite all the same, as in the library
    labels = np.zeros(20, dtype=int)
    reward_fn, log_p = compiled_reward(reward(name)), np.float32(-math.log(6))
    got = [reward_fn(row, np.uint32(0), log_p) for row in log_q]
    expected = reward(name, validate=False)(log_q, labels)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-6)


def test_what_numba_knows_already_stays_as_it_is():
    own, named = compiled_reward(reward("clipped-numpy:sqrt")), compiled_reward(reward("root-2"))
    log_q, log_p = np.log(np.array([0.75, 0.25], np.float32)), np.float32(math.log(0.5))
    assert own(log_q, np.uint32(0), log_p) == pytest.approx(named(log_q, np.uint32(0), log_p))
    assert own(log_q, np.uint32(1), log_p) == 0.0


def test_a_run_learns_from_a_reward_of_ones_own(own, tmp_path):
    its = run_in(tmp_path / "own", "skills", reward=f"clipped-{own}:line").rows()
    named = run_in(tmp_path / "named", "skills", reward="clipped-linear").rows()
    assert its[0]["reward_mean"] == pytest.approx(named[0]["reward_mean"])
    assert its[-1]["n_skills"] > 2 * its[0]["n_skills"]
    assert its[-1]["n_skills"] == pytest.approx(named[-1]["n_skills"], rel=0.2)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("looks_it_up", "TABLE"),
        ("of_arrays_only", "Unknown attribute 'reshape'"),
        ("imports_inside", "IMPORT_NAME"),
    ],
)
def test_what_cannot_be_compiled_is_refused_before_a_folder_is_made(
    own, tmp_path, function, reason
):
    config = make_config("skills", "smoke", reward=f"clipped-{own}:{function}")
    with pytest.raises(UserError) as refusal:
        begin(tmp_path / "run", config)
    told = str(refusal.value)
    assert told.startswith(f"reward 'clipped-{own}:{function}' cannot be compiled for skills: ")
    assert reason in told and "write its g as" in told and "\n" not in told
    assert not (tmp_path / "run").exists()
