"""Pieces of episodes in a batch: paid as whole episodes are, and handed over once. Without Ray."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from irrl.adapters.rllib_rows import (
    CUT,
    END,
    FIRST,
    PADDING,
    STEP,
    Rows,
    flattened,
    of_columns,
    pay,
    take_in,
    to_columns,
    unflattened,
)
from irrl.errors import UserError
from tests.adapters.worlds import SCRIPT, Scripted, model_for, played

HOW = [("final", "end"), ("final", "differences"), ("state", "end"), ("state", "differences"),
       ("state", "steps"), ("trajectory", "end"), ("trajectory", "differences"),
       ("trajectory", "steps")]  # fmt: skip


def rows_of(episode, start, stop):
    """Rows of the steps of an episode from one to another, with the artificial one."""
    parts, label = played(Scripted(), episode)
    seen = parts["observation"][start : stop + 1]
    n = len(seen)
    kinds = np.full(n, STEP, np.int8)
    kinds[-1] = END if stop == SCRIPT[episode % len(SCRIPT)].steps else CUT
    first = np.repeat(parts["observation"][:1], n, axis=0)
    return Rows(kinds, start + np.arange(n), np.full(n, label),
                {"observation": seen}, {"observation": first})  # fmt: skip


def one_after_the_other(*pieces):
    columns = [to_columns(piece) for piece in pieces]
    joined = {name: np.concatenate([c[name] for c in columns]) for name in columns[0]}
    return of_columns(joined)[0]


WHOLE = [(0, 0, 3), (1, 0, 1), (2, 0, 5), (3, 0, 2)]
CUTS = [(2, 3, 5), (0, 0, 3), (1, 0, 1), (2, 0, 3), (3, 0, 1)]


@pytest.mark.parametrize(("judge", "how"), HOW)
@pytest.mark.parametrize("layout", [WHOLE, CUTS], ids=["whole", "cut"])
def test_rows_are_paid_what_their_episodes_are(judge, how, layout):
    if judge == "trajectory" and layout is CUTS:
        return
    model = model_for(judge=judge, pay=how)
    paid = pay(model, one_after_the_other(*(rows_of(*piece) for piece in layout)))
    expected = []
    for episode, start, stop in layout:
        whole, label = played(Scripted(), episode)
        expected += [*model.rewards(whole, label)[start:stop], 0.0]  # the artificial step: nothing
    assert np.abs(expected).max() > 0
    np.testing.assert_allclose(paid, expected, atol=1e-6)


def test_a_trajectory_is_not_judged_by_a_piece_of_it():
    with pytest.raises(UserError, match="complete_episodes"):
        pay(model_for(judge="trajectory"), one_after_the_other(rows_of(2, 3, 5)))


@pytest.mark.parametrize("judge", ["final", "trajectory"])
def test_only_whole_episodes_are_handed_over(judge):
    model = model_for(judge=judge)
    layout = WHOLE if judge == "trajectory" else CUTS
    take_in(model, one_after_the_other(*(rows_of(*piece) for piece in layout)))
    ended = [e for e, _, stop in layout if stop == SCRIPT[e].steps]
    assert len(model.given) == len(ended)
    for (seen, label), episode in zip(model.given, ended, strict=True):
        whole, its = played(Scripted(), episode)
        array = whole["observation"][[0, -1]] if judge == "final" else whole["observation"]
        np.testing.assert_array_equal(seen["observation"], array)
        assert label == its


def test_of_single_states_each_is_handed_over_once():
    model = model_for(judge="state")
    for start, stop in ((0, 2), (2, 3), (3, 5)):
        take_in(model, one_after_the_other(rows_of(2, start, stop)))
    given = np.concatenate([seen["observation"] for seen, _ in model.given])
    np.testing.assert_array_equal(given, played(Scripted(), 2)[0]["observation"])


def test_padding_is_left_out_and_an_axis_of_time_is_read_row_by_row():
    rows = one_after_the_other(*(rows_of(*piece) for piece in WHOLE))
    columns = {}
    for name, array in to_columns(rows).items():
        padded = np.zeros((4, 6, *array.shape[1:]), array.dtype)
        start = 0
        for line, (_, _, stop) in enumerate(WHOLE):
            padded[line, : stop + 1] = array[start : start + stop + 1]
            start += stop + 1
        columns[name] = torch.from_numpy(padded)
    found, slots = of_columns({**columns, "obs": None})
    assert slots.shape == (4, 6) and slots.sum() == len(rows.kinds) == 15
    assert PADDING == 0 and any(name.startswith(FIRST) for name in columns)
    for a, b in zip(to_columns(found).values(), to_columns(rows).values(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_is_not_told_is_asked_for():
    rows = one_after_the_other(rows_of(0, 0, 3))
    with pytest.raises(UserError, match="told no label"):
        pay(model_for(judge="final"), rows._replace(labels=np.full(4, -1)))


def test_vectors_become_observations_again():
    space = spaces.Dict({
        "code": spaces.Box(0.0, 1.0, (3,)), "place": spaces.Discrete(5, start=2),
        "two": spaces.MultiDiscrete([2, 3]), "bits": spaces.MultiBinary(4),
        "in": spaces.Dict({"image": spaces.Box(0, 255, (2, 2), np.uint8)}),
    })  # fmt: skip
    space.seed(0)
    several = [space.sample() for _ in range(4)]
    vectors = np.stack([spaces.flatten(space, one) for one in several])
    found = unflattened(space, vectors)
    for name in ("code", "place", "two", "bits"):
        np.testing.assert_array_equal(found[name], np.stack([one[name] for one in several]))
    assert found["in"]["image"].dtype == np.uint8
    np.testing.assert_array_equal(flattened(space, found), vectors)
