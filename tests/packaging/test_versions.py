"""What pyproject, changelog, citation and documents say of versions agrees."""

import re
import tomllib

from tests.helpers.command import REPOSITORY
from tests.lowest import EXTRAS, KEPT, lowest_versions

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]


def test_one_version_everywhere():
    version = PROJECT["version"]
    changelog = (REPOSITORY / "CHANGELOG.md").read_text()
    assert re.findall(r"^## (\S+)", changelog, flags=re.M)[0] == version
    newest = changelog.split("\n## ")[1]
    categories = re.findall(r"^### (.*)", newest, flags=re.M)
    assert categories == ["Added", "Changed", "Fixed", "Removed"]
    assert f"version: {version}\n" in (REPOSITORY / "CITATION.cff").read_text()
    install = (REPOSITORY / "docs" / "install.md").read_text()
    assert set(re.findall(r"irrl-([\d.]+)-py3", install)) == {version}


def test_every_library_has_a_lower_bound_that_is_tried():
    extras = (PROJECT["optional-dependencies"][name] for name in EXTRAS)
    named = {re.match(r"[\w-]+", each)[0] for each in sum(extras, PROJECT["dependencies"])}
    assert named - {"irrl", *KEPT} == set(lowest_versions())


def test_every_extra_is_told_in_the_documents():
    install = (REPOSITORY / "docs" / "install.md").read_text()
    told = set(re.findall(r"^\| `(\w+)` \|", install, flags=re.M))
    assert told == set(PROJECT["optional-dependencies"])
