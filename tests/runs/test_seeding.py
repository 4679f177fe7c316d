import numpy as np
import pytest

from irrl.runs.seeding import STREAMS, stream


def test_streams_are_addressed_not_advanced():
    first = stream(1, "policy", 5).random(4)
    stream(1, "policy", 4).random(100)
    np.testing.assert_array_equal(first, stream(1, "policy", 5).random(4))


def test_streams_differ_by_seed_name_and_index():
    draws = [stream(seed, name, i).random() for seed in (0, 1) for name in STREAMS for i in (0, 1)]
    assert len(set(draws)) == len(draws)


def test_unknown_streams_are_refused():
    with pytest.raises(ValueError, match="unknown stream"):
        stream(0, "weather")
