"""What `import irrl` offers: its names, its help, its examples, and what it does not import."""

import doctest
import importlib
import inspect
import pydoc
import subprocess
import sys
from pathlib import Path

import pytest

import irrl

MODULES = (
    "bins", "delta_noise", "densities", "density_noise", "density_rewards", "diagnostics",
    "divergences", "ensembles", "episodes", "errors", "gradient_measured", "gradient_noise",
    "losses", "noise", "noise_measured", "preferences", "returns", "rewards", "shapes",
)  # fmt: skip
AROUND_IT = (  # what else the reference shows
    "adapters.gymnasium", "adapters.sb3", "adapters.sb3_preferences", "adapters.sb3_replay",
    "adapters.sb3_standardised", "adapters.sb3_vector", "adapters.trl", "analysis.curves",
    "analysis.stats", "envs", "envs.last_action", "envs.maze", "envs.maze_metrics",
    "envs.maze_plots", "envs.maze_vector", "envs.perceive", "envs.point_mass", "envs.repeat",
    "envs.skills", "envs.skills_vector", "preference_model.settings", "reward_model.collector",
    "reward_model.model", "reward_model.settings", "runs.config", "runs.run", "runs.seeding",
    "tasks.contract", "tasks.counting.env", "tasks.digits.env", "tasks.published",
    "tasks.skills.env",
)  # fmt: skip
HEAVY = ("numpy", "torch", "jax", "gymnasium", "numba", "matplotlib")


def module(name):
    return importlib.import_module(f"irrl.{name}")


def public(name):
    """Functions and classes that a module of the library defines."""
    for thing_name, thing in vars(module(name)).items():
        own = getattr(thing, "__module__", None) == f"irrl.{name}"
        made = inspect.isfunction(thing) or inspect.isclass(thing)
        if own and made and not thing_name.startswith("_"):
            yield thing_name, thing


EVERYTHING = [(name, *found) for name in MODULES for found in public(name)]


def in_a_fresh_process(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def documented(heading):
    """The names under a heading of the package's docstring."""
    lines = irrl.__doc__.split(f"{heading}:\n")[1].split("\n\n")[0].splitlines()
    return {line.split()[0] for line in lines}


def test_the_docstring_lists_what_there_is():
    assert documented("Names") == set(irrl.__all__) == set(irrl._NAMES)
    assert documented("Modules") == set(irrl._MODULES)


def test_every_documented_name_is_there():
    for name in documented("Names"):
        assert getattr(irrl, name) is getattr(importlib.import_module(irrl._NAMES[name]), name)
    for name in documented("Modules"):
        assert getattr(irrl, name) is module(name)
    with pytest.raises(AttributeError, match="no attribute 'no_such_thing'"):
        _ = irrl.no_such_thing


def test_dir_and_help_show_them():
    shown = dir(irrl)
    assert {*documented("Names"), *documented("Modules"), "__version__"} <= set(shown)
    assert shown == sorted(shown) and "TYPE_CHECKING" not in shown
    text = pydoc.render_doc(irrl, renderer=pydoc.plaintext)
    assert 'irrl.reward("clipped-linear")' in text
    assert "Find a reward by name, or make one of a function g" in text


def test_the_version_is_that_of_the_package():
    from importlib.metadata import version

    assert irrl.__version__ == version("irrl")


def test_importing_it_imports_nothing_heavy():
    code = f"import irrl, sys; print([m for m in {HEAVY} if m in sys.modules], dir(irrl))"
    assert in_a_fresh_process(code).startswith("[] ")


def test_modules_and_names_are_reached_without_importing_them():
    names = [f"irrl.{name}" for name in (*sorted(documented("Modules")), *irrl.__all__)]
    in_a_fresh_process("import irrl\n" + "\n".join(names))


def test_the_library_imports_nothing_else_of_ours():
    code = f"""
import importlib, sys
for name in {MODULES}:
    importlib.import_module("irrl." + name)
print(sorted(m for m in sys.modules if m.startswith("irrl.")))
"""
    private = ["_accept", "_arrays", "_own", "_quadrature", "_special"]
    wanted = sorted(f"irrl.{name}" for name in (*MODULES, *private))
    assert in_a_fresh_process(code).strip() == str(wanted)


def test_rewards_need_neither_torch_nor_jax():
    code = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in ("torch", "jax", "gymnasium"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import irrl, numpy as np, pydoc
for name in ("rewards", "returns", "noise", "noise_measured", "diagnostics", "divergences",
             "density_noise", "bins", "preferences"):
    getattr(irrl, name)
density = irrl.densities.Normal(np.zeros((1, 1)), 1.0)
irrl.density_reward("crps")(density, np.ones((1, 1)), irrl.densities.Uniform(-1.0, 1.0))
irrl.reward("log")(np.log([[0.5, 0.5]]), np.array([0]))
irrl.returns.gae(np.ones(2), 1.0, np.ones(3))
assert not hasattr(irrl, "losses") and not hasattr(irrl, "RewardModel")
pydoc.render_doc(irrl)
for name in ("losses", "RewardModel"):
    try:
        getattr(irrl, name)
    except AttributeError as error:
        print(error)
try:
    import irrl.losses
except ModuleNotFoundError as error:
    print(error.name)
"""
    said = in_a_fresh_process(code).splitlines()
    missing = [f"irrl.{name} needs torch, which is missing" for name in ("losses", "RewardModel")]
    assert said == [*missing, "torch"]


@pytest.mark.parametrize("name", ["", *MODULES, *AROUND_IT])
def test_examples_run(name):
    found = importlib.import_module(f"irrl.{name}".rstrip("."))
    tried = doctest.testmod(found)
    assert tried.failed == 0 and tried.attempted > 0


@pytest.mark.parametrize(("name", "thing"), [(f"{m}.{n}", t) for m, n, t in EVERYTHING])
def test_everything_public_says_what_it_takes_and_shows_how(name, thing):
    text = inspect.getdoc(thing)
    assert "Example:\n" in text and ">>> " in text
    if inspect.isfunction(thing):
        assert "Args:\n" in text and "Returns:\n" in text
        parameters = inspect.signature(thing).parameters
        assert len(parameters) <= 8
        for parameter in parameters:
            assert f"{parameter}: " in text


@pytest.mark.parametrize("name", MODULES)
def test_what_a_module_offers_is_there(name):
    offered = getattr(module(name), "__all__", [])
    assert all(hasattr(module(name), each) for each in offered)
    assert len(Path(module(name).__file__).read_text().splitlines()) <= 300
