import os
import subprocess
import sys
from collections import namedtuple

import pytest
import yaml

from tests.helpers.command import REPOSITORY

Built = namedtuple("Built", "folder said")


def mkdocs(config, site):
    """Build a site as `make docs` does, into a folder of its own."""
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", config, "-d", site],
        capture_output=True, text=True, cwd=REPOSITORY,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The whole site, built once for all tests."""
    folder = tmp_path_factory.mktemp("built") / "site"
    done = mkdocs(REPOSITORY / "mkdocs.yml", folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def small_site(tmp_path):
    """Build a site of a few pages, given as text, with our hooks: what the build says."""

    def build(**pages):
        docs = tmp_path / "docs"
        docs.mkdir()
        for name, text in pages.items():
            (docs / f"{name}.md").write_text(text)
        config = {
            "site_name": "small",
            "docs_dir": str(docs),
            "hooks": [str(REPOSITORY / "docs" / "hooks.py")],
            "validation": {"nav": {"omitted_files": "ignore"}, "links": {"anchors": "warn"}},
        }
        (tmp_path / "mkdocs.yml").write_text(yaml.safe_dump(config))
        return mkdocs(tmp_path / "mkdocs.yml", tmp_path / "site")

    return build
