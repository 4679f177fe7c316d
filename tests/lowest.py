"""The lowest versions that `pyproject.toml` allows, as constraints for pip.

python -m tests.lowest > constraints.txt
"""

import re
import tomllib

from tests.helpers.command import REPOSITORY

KEPT = ("torch",)
"""Not tried at its lower end: older builds for processors were not at hand."""

TOOLS = ("dev", "docs", "notebooks")
"""Extras of what is not imported by the package."""


def lowest_versions() -> dict[str, str]:
    """Name -> version, of all that the package itself or an extra of its asks for."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(w for e in extras if e not in TOOLS for w in extras[e])]
    found = (re.match(r"([\w-]+)(?:\[[\w,]+\])?>=([\w.]+)", each) for each in wanted)
    return {match[1]: match[2] for match in found if match and match[1] not in KEPT}


if __name__ == "__main__":
    print("\n".join(f"{name}=={version}" for name, version in lowest_versions().items()))
    print("torch==2.13.0")
