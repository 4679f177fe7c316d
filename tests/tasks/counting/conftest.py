import pytest

from tests.helpers.command import irrl_command

TRAIN, EVAL, SIDE = 64, 32, 32


@pytest.fixture(scope="session")
def renderer():
    """One for all tests: opening takes a tenth of a second."""
    from irrl.tasks.counting.render import Renderer

    with Renderer() as renderer:
        yield renderer


@pytest.fixture(scope="session")
def scenes_folder(tmp_path_factory):
    """A few scenes, really rendered. Do not change it: copy it first."""
    folder = tmp_path_factory.mktemp("scenes") / "scenes"
    result = irrl_command("data", "scenes", "--train", TRAIN, "--eval", EVAL, "--out", folder,
                          "--resolution", SIDE, "--workers", 1)  # fmt: skip
    assert result.returncode == 0, result.stderr
    return folder


@pytest.fixture(scope="session")
def counting_run(tmp_path_factory, scenes_folder):
    """A finished smoke run. Do not change it: copy it first."""
    folder = tmp_path_factory.mktemp("counting") / "run"
    result = irrl_command("train", "counting", "--preset", "smoke", "--scenes", scenes_folder,
                          "--out", folder)  # fmt: skip
    assert result.returncode == 0, result.stderr
    return folder
