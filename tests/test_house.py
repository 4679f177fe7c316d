"""Rules of the house that no linter knows: sizes, and which names may stand where."""

import ast

import pytest

from irrl.tasks.registry import task_names
from tests.helpers.command import REPOSITORY

PACKAGE = REPOSITORY / "src" / "irrl"
ROOMS = ("src", "benchmarks", "evidence")
MODULES = sorted(path for room in ROOMS for path in (REPOSITORY / room).rglob("*.py"))
# Skills are what a policy discovers, too: a mode of reward models, and a wrapper.
ROOMS_WITH_THE_WORD = {"skills": ("reward_model", "envs", "adapters")}
OUTSIDE = [path for path in PACKAGE.rglob("*.py") if PACKAGE / "tasks" not in path.parents[1:]]


def names_of(path):
    """Every name, attribute, module and text of a module, docstrings included."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        for field in ("id", "attr", "name", "module", "arg"):
            if isinstance(value := getattr(node, field, None), str):
                yield from value.split(".")


def test_no_module_is_longer_than_three_hundred_lines():
    lengths = {path: len(path.read_text().splitlines()) for path in MODULES}
    assert len(lengths) > 50
    assert {str(path): length for path, length in lengths.items() if length > 300} == {}


@pytest.mark.parametrize("task", task_names())
def test_the_name_of_a_task_stands_in_its_folder_only(task):
    assert (PACKAGE / "tasks" / task / "task.py").is_file()
    assert len(OUTSIDE) > 30
    allowed = [PACKAGE / room for room in ROOMS_WITH_THE_WORD.get(task, ())]
    found = [path for path in OUTSIDE if task in set(names_of(path))]
    assert [str(path) for path in found if path.parent not in allowed] == []
