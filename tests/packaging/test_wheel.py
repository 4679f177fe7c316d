"""The wheel by itself, in an environment of its own, far from the repository."""

import email
import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import nbformat
import pytest

from tests.helpers.command import REPOSITORY

TOY = REPOSITORY / "tests" / "tasks" / "toy"
USE = """
import irrl, numpy as np
print(irrl.__version__, irrl.__file__)
print(irrl.reward("clipped-linear")(np.log([[0.75, 0.25]]), np.array([0])).tolist())
"""


def run(*command, cwd, **more):
    """A command that knows nothing of the repository; it must succeed."""
    hidden = ("PYTHONPATH", "VIRTUAL_ENV", "PYTEST_CURRENT_TEST")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env={**environment, **more}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """What `make dist` builds."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=REPOSITORY)
    return folder


@pytest.fixture(scope="module")
def wheel(dist):
    (found,) = dist.glob("*.whl")
    return found


def make_environment(folder, libraries):
    """A new environment; ``libraries`` are folders in which it finds what irrl needs."""
    venv.create(folder, with_pip=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "libraries.pth").write_text("\n".join(libraries))  # no .pth of theirs is read
    return folder / "bin"


@pytest.fixture(scope="module")
def alone(wheel, tmp_path_factory):
    """The wheel installed; libraries come from the tests' environment, irrl from the wheel only."""
    libraries = [path for path in sys.path if Path(path).name == "site-packages"]
    folder = tmp_path_factory.mktemp("alone")
    programs = make_environment(folder / "environment", libraries)
    offline = ("--quiet", "--no-deps", "--no-index", "--ignore-installed")
    run(programs / "python", "-m", "pip", "install", *offline, wheel, cwd=folder)
    return programs


def test_metadata(dist, wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (path,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        told = email.message_from_bytes(archive.read(path))
    assert told["Name"] == "irrl" and told["Version"] == "0.2.0" and told["License-Expression"]
    assert told["Requires-Python"] and told.get_all("Project-URL") and told.get_all("Classifier")
    assert {"irrl/py.typed", "irrl/report/page.css", "irrl/report/page.js"} <= set(names)
    assert not [name for name in names if name.split("/")[0] not in ("irrl", path.split("/")[0])]
    (source,) = dist.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        kept = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "src/irrl/py.typed", "docs/index.md", "mkdocs.yml"} <= kept
    assert not [name for name in kept if "_cache" in name or name.startswith((".venv", "site/"))]
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, source, cwd=dist)


def uses_library_and_commands(programs, folder):
    """Library, command line and an entry-point task, all of it in a folder of its own."""
    said = run(programs / "python", "-c", USE, cwd=folder).splitlines()
    assert said[0].startswith("0.2.0 ") and str(programs.parent) in said[0] and said[1] == "[0.25]"
    run(programs / "irrl", "train", "skills", "--preset", "smoke", "--out", "run", cwd=folder)
    assert (folder / "run" / "summary.json").is_file()
    assert "n_skills" in run(programs / "irrl", "eval", "run", "--json", cwd=folder)
    shutil.copytree(TOY, folder / "toy", ignore=shutil.ignore_patterns("__pycache__"))
    quietly = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index")
    run(programs / "python", "-m", "pip", "install", *quietly, folder / "toy", cwd=folder)
    run(programs / "irrl", "train", "doors", "--preset", "smoke", "--out", "doors", cwd=folder)
    assert (folder / "doors" / "summary.json").is_file()


def test_the_wheel_alone_has_library_commands_and_tasks_of_others(alone, tmp_path):
    uses_library_and_commands(alone, tmp_path)


def test_a_notebook_installs_the_wheel_that_lies_beside_it(wheel, tmp_path):
    programs = make_environment(tmp_path / "environment", [])
    shutil.copy(wheel, tmp_path)
    notebook = nbformat.read(REPOSITORY / "notebooks" / "rewards_and_noise.ipynb", as_version=4)
    first = next(cell.source for cell in notebook.cells if cell.cell_type == "code")
    installs, _, _ = first.partition("if importlib.util.find_spec(NEEDS)")
    code = f"{installs}\nimport irrl; print(irrl.__file__)"
    offline = {"PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1"}
    assert str(tmp_path) in run(programs / "python", "-c", code, cwd=tmp_path, **offline)


@pytest.mark.slow
def test_the_wheel_with_dependencies_from_the_index(wheel, tmp_path):
    """Nothing of the tests' environment at all: what a stranger types."""
    programs = make_environment(tmp_path / "environment", [])
    pip = (programs / "python", "-m", "pip", "install", "--quiet")
    run(*pip, wheel, "hatchling", cwd=tmp_path)
    uses_library_and_commands(programs, tmp_path)
