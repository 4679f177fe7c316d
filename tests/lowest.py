"""The lowest versions that `pyproject.toml` allows, as constraints for pip; and what tries them.

python -m tests.lowest > constraints.txt
python -m tests.lowest tests
python -m tests.lowest extras
"""

import re
import sys
import tomllib

from tests.helpers.command import REPOSITORY

KEPT = ("torch",)
"""Not tried at its lower end: older builds for processors were not at hand."""

EXTRAS = ("torch", "counting", "sb3", "jax", "ray", "tensorboard", "report")
"""Those that are tried; bounds of the others are what they were made with, or of tools."""

TESTS = (
    "cli", "envs", "reward_model", "runs", "tasks/skills",
    "adapters/test_gymnasium.py", "adapters/test_sb3.py", "adapters/test_sb3_agents.py",
    "adapters/test_sb3_replay.py", "report/test_figures.py", "sweeps/test_engine_ray.py",
    "tasks/counting/test_env.py",
    "tasks/counting/test_render.py", "tasks/digits/test_ram.py", "tasks/gym/test_runs.py",
)  # fmt: skip
"""Beside those of the library: each library that has a bound is used by one of them."""

NOT_THESE = ("evidence", "examples", "house", "notebooks", "readme", "readme_numbers")
"""About documents and style, and about what comes in its newest version."""


def lowest_versions() -> dict[str, str]:
    """Name -> version, of all that the package itself or an extra of its asks for."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(each for name in EXTRAS for each in extras[name])]
    found = (re.match(r"([\w-]+)(?:\[[\w,]+\])?>=([\w.]+)", each) for each in wanted)
    return {match[1]: match[2] for match in found if match and match[1] not in KEPT}


def tests() -> list[str]:
    """Paths of the tests."""
    left_out = {f"test_{name}.py" for name in NOT_THESE}
    library = {path.name for path in (REPOSITORY / "tests").glob("test_*.py")} - left_out
    return [f"tests/{name}" for name in (*sorted(library), *TESTS)]


if __name__ == "__main__":
    if sys.argv[1:] == ["tests"]:
        sys.exit(print(*tests()))
    if sys.argv[1:] == ["extras"]:
        sys.exit(print(*EXTRAS, sep=","))
    print("\n".join(f"{name}=={version}" for name, version in lowest_versions().items()))
    print("torch==2.13.0")
