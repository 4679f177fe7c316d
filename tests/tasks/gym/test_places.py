"""How far skills go, where what is judged is a place without bounds."""

import numpy as np
import pytest
from gymnasium import spaces

from irrl.reward_model.spaces import parts_of
from irrl.tasks.gym.places import metrics_of_places

PLACE = spaces.Box(-np.inf, np.inf, (2,), np.float32)


def path(*places):
    return {"observation": np.array(places, np.float32)}


def test_the_way_from_start_to_end_and_the_buckets_touched():
    paths = [path((0.5, 0.5), (3.5, 4.5)), path((0.5, 0.5), (9.5, 0.5), (0.5, 0.5))]
    found = metrics_of_places(parts_of(PLACE), paths, None)
    assert found == {"final_distance": 2.5, "buckets_reached": 3.0}


def test_buckets_have_the_side_that_is_said():
    paths = [path((0.1, 0.0), (0.9, 0.0), (-0.1, 0.0))]
    found = [metrics_of_places(parts_of(PLACE), paths, side) for side in (1.0, 0.5)]
    assert [each["buckets_reached"] for each in found] == [2.0, 3.0]


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-1.0, 1.0, (2,)),
        spaces.Box(-np.inf, np.inf, (4,)),
        spaces.Discrete(5),
        spaces.Dict({"place": PLACE, "more": PLACE}),
    ],
    ids=["bounded", "too many numbers", "categories", "more than a place"],
)
def test_nothing_is_said_of_what_is_no_place(space):
    assert metrics_of_places(parts_of(space), [], None) == {}
