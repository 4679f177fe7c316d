"""What the README shows must work as it is shown."""

import os
import re
import subprocess
import sys
from importlib import import_module

import pytest

from irrl.cli.main import VERBS
from tests.helpers.command import REPOSITORY

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")


def test_the_lines_for_an_own_environment_run_as_they_stand(tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.S)
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = re.fullmatch(r"(\d\.\d) of 8 skills can be told from where they end\n", done.stdout)
    assert found is not None and float(found[1]) > 6.0


def test_the_commands_exist_and_are_all_told():
    shown = re.findall(r"^    irrl (\w+)", README, flags=re.M)
    assert shown and set(shown) <= set(VERBS)
    chapter = (REPOSITORY / "docs" / "command-line.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^    irrl (\w+)", chapter, flags=re.M)) == set(VERBS)


def test_it_is_short():
    assert len(README.splitlines()) <= 130


def test_the_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)", README):
        assert target.startswith("http") or (REPOSITORY / target).exists(), target


def test_the_make_verbs_exist():
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    for verb in re.findall(r"^    make (\w+)", README, flags=re.M):
        assert re.search(rf"^{verb}:", makefile, flags=re.M)


METHOD = (REPOSITORY / "docs" / "method.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "module"), re.findall(r"`(\w+)` in `(irrl[\w.]+)`", METHOD))
def test_the_functions_that_the_method_names_are_there(name, module):
    found = import_module(module)
    assert hasattr(found, name) or (name == "learn" and hasattr(found, "_learn"))


def test_the_tests_that_the_method_names_are_there():
    tests = "".join(path.read_text() for path in (REPOSITORY / "tests").rglob("test_*.py"))
    named = re.findall(r"`(test_\w+)`", METHOD)
    assert len(named) > 8
    assert [name for name in named if f"def {name}(" not in tests] == []


def test_the_snippets_about_other_labels_run():
    guide = (REPOSITORY / "docs" / "guide" / "rewards.md").read_text(encoding="utf-8")
    chapter = guide.split("## Other labels than classes")[1].split("\n## ")[0]
    snippets = re.findall(r"```python\n(.*?)```", chapter, flags=re.S)
    scope = {}
    for code in snippets:
        exec(code, scope)
        assert scope["rewards"].shape == (2,)
    assert len(snippets) == 3 and scope["per_dimension"].shape == (2, 2)
