"""One Ray for all tests of a process, which nobody outside this machine can reach."""

import pytest


@pytest.fixture(scope="session")
def local_ray():
    from irrl.runs.ray_cluster import connect, import_rllib

    ray = import_rllib(None)
    connect(ray, None, 4)
    yield ray
    ray.shutdown()
