import os

import pytest

from tests.helpers.cluster import local_ray  # noqa: F401
from tests.helpers.command import irrl_command


@pytest.fixture
def irrl(tmp_path):
    """The command, run in an empty folder."""
    return lambda *arguments, **options: irrl_command(*arguments, cwd=tmp_path, **options)


@pytest.fixture(scope="session")
def smoke_run(tmp_path_factory):
    """A finished smoke run. Do not change it: copy it first."""
    folder = tmp_path_factory.mktemp("smoke") / "run"
    result = irrl_command("train", "skills", "--preset", "smoke", "--out", folder)
    assert result.returncode == 0, result.stderr
    return folder


@pytest.fixture(scope="session")
def mnist_cache():
    """The real MNIST in the user's cache folder, fetched the first time."""
    from irrl.tasks.digits.mnist import fetch_mnist

    return fetch_mnist()[0]


@pytest.fixture(scope="session")
def digits_run(tmp_path_factory, mnist_cache):
    """A finished smoke run on real digits. Do not change it: copy it first."""
    folder = tmp_path_factory.mktemp("digits") / "run"
    result = irrl_command("train", "digits", "--preset", "smoke", "--out", folder)
    assert result.returncode == 0, result.stderr
    return folder


def pytest_configure(config):
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
