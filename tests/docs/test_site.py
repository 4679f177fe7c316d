"""The documentation site: whole, small, offline; what is wrong fails the build and says where."""

import re

import pytest

from tests.helpers.command import REPOSITORY

MEGABYTES = 20


def test_it_is_small_and_has_every_page(site):
    sizes = [path.stat().st_size for path in site.rglob("*") if path.is_file()]
    assert sum(sizes) < MEGABYTES * 1e6
    pages = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    sources = (REPOSITORY / "docs").rglob("*.md")
    names = {path.relative_to(REPOSITORY / "docs").with_suffix(".html") for path in sources}
    assert {name.as_posix() for name in names} <= pages
    assert {"changelog.html", "examples/skills.html", "notebooks/active_perception.html"} <= pages


def test_it_asks_the_net_for_nothing(site):
    for path in site.rglob("*.html"):
        tags = re.findall(r"<(?:script|link|img|iframe)\b[^>]*>", path.read_text())
        assert [tag for tag in tags if re.search(r'(?:src|href)="(?:https?:)?//', tag)] == [], path


def test_links_of_the_readme_lead_to_headings(site):
    readme = (REPOSITORY / "README.md").read_text()
    for page, anchor in re.findall(r"\]\(docs/([\w/-]+)\.md#([\w-]+)\)", readme):
        assert f'id="{anchor}"' in (site / f"{page}.html").read_text(), (page, anchor)


def test_the_reference_shows_names_arguments_and_examples(site):
    text = (site / "api" / "rewards.html").read_text()
    assert 'id="irrl.rewards.reward"' in text
    assert "clipped-linear" in text and "Examples:" in text and "&gt;&gt;&gt;" in text
    assert 'id="irrl.adapters.sb3.Rewarded"' in (site / "api" / "adapters.html").read_text()


def test_a_small_site_without_faults_is_built(small_site):
    done = small_site(index="# Home\n\n[an example](../examples/skills.py)\n")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("link", ["no-such-page.md", "other.md#no-such-heading"])
def test_a_broken_link_fails_the_build_and_is_named(small_site, link):
    done = small_site(index=f"# Home\n\n[there]({link})\n", other="# Other\n")
    assert done.returncode == 1
    assert "index.md" in done.stderr and link.split("#")[-1] in done.stderr


UNDOCUMENTED = '''"""A module."""


def explained():
    """Do nothing.

    Example:
        >>> explained()
    """


def no_example():
    """Do nothing."""


def silent(): ...


class Thing:
    """A thing.

    Example:
        >>> thing = Thing()
    """

    def use(self): ...
'''


def test_an_undocumented_public_name_fails_the_build_and_is_named(
    small_site, tmp_path, monkeypatch
):
    (tmp_path / "undocumented.py").write_text(UNDOCUMENTED)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = small_site(index="# Home\n", api="# API\n\n::: undocumented\n")
    assert done.returncode == 1
    assert "api.md: undocumented.no_example (undocumented.py:12)" in done.stderr
    assert "its docstring has no example" in done.stderr
    assert "undocumented.silent (undocumented.py:16) is public and has no docstring" in done.stderr
    assert "undocumented.Thing.use (undocumented.py:26)" in done.stderr
    assert "undocumented.explained" not in done.stderr
    assert "irrl.rewards is public, and on no page of docs/api/" in done.stderr
