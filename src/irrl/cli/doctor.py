"""`irrl doctor`: what is there, what is missing, and the line that brings it. It never fails."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from irrl.cli.flags import Parser
from irrl.cli.tables import add_json, print_json, print_table

if TYPE_CHECKING:
    from packaging.requirements import Requirement as Package
    from packaging.specifiers import SpecifierSet

    from irrl.tasks.contract import Requirement

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "firefox")
GPU = """
import torch
if not torch.cuda.is_available():
    raise SystemExit("PyTorch sees none")
print(torch.cuda.get_device_name(0), "by CUDA", torch.version.cuda)
"""


class Library(NamedTuple):
    """Packages that one extra of irrl brings, or, where irrl has none of that name, another."""

    name: str
    purpose: str
    extra: str
    otherwise: str = ""


LIBRARIES = (
    Library("PyTorch", "tasks with networks, and reward models", "torch"),
    Library("Stable-Baselines3", "reward models on any Gymnasium environment", "sb3"),
    Library("Ray", "sweeps on several machines", "ray"),
    Library("RLlib", "reward models for agents of RLlib", "rllib", "ray[rllib]"),
    Library("TRL", "rewards for language models", "trl", "trl"),
    Library("JAX", "rewards on arrays of JAX", "jax"),
    Library("TensorBoard", "--tensorboard", "tensorboard"),
    Library("Plotly", "`irrl report`", "report"),
)


class Finding(NamedTuple):
    name: str
    found: bool
    what: str  # was found, or is missing
    purpose: str
    install: str


def run_doctor(parser: Parser, arguments: list[str]) -> int:
    parser.epilog = "Only what stands under `for` needs what is missing; all else works without."
    add_json(parser)
    options = parser.parse_args(arguments)
    findings = [finding(requirement) for requirement in all_requirements()]
    if options.json:
        print_json([f._asdict() for f in findings])
        return 0
    rows = [
        [f.name, "there" if f.found else "missing", f.what, f.purpose, "" if f.found else f.install]
        for f in findings
    ]
    missing = sum(not f.found for f in findings)
    told = f"{missing} missing; each is needed only for what stands beside it"
    print_table(["", "", "found", "for", "get it by"], rows, told if missing else "nothing missing")
    return 0


def finding(requirement: "Requirement") -> Finding:
    """What came of looking, whatever went wrong."""
    name, purpose, install, look = requirement
    try:
        return Finding(name, True, look(), purpose, install)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        said = " ".join(str(error).split()) or type(error).__name__
        return Finding(name, False, said, purpose, install)


def all_requirements() -> Iterator["Requirement"]:
    """Ours, then those of each task, in this package or in others."""
    from irrl.runs.probe import probe
    from irrl.tasks.contract import Requirement
    from irrl.tasks.registry import all_tasks

    yield Requirement("irrl", "everything", "pip install irrl", _about_irrl)
    for library in LIBRARIES:
        what = _brings(library)
        yield Requirement(
            library.name,
            library.purpose,
            f"pip install '{what}'",
            lambda what=what: packages(what),  # type: ignore[misc]
        )
    yield Requirement(
        "GPU", "larger networks in less time; nothing needs one",
        "a CUDA build of PyTorch, see pytorch.org", lambda: probe(GPU),
    )  # fmt: skip
    yield Requirement(
        "browser", "to open reports", "apt-get install chromium, or any other browser", _browser
    )
    for task in all_tasks().values():
        yield from task.requirements


def _about_irrl() -> str:
    from importlib.metadata import version

    return f"irrl {version('irrl')}, Python {sys.version.split()[0]}"


def _browser() -> str:
    import shutil

    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise RuntimeError(f"none of {', '.join(BROWSERS)}")
    return found


# --- packages ---


def _brings(library: Library) -> str:
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        known = metadata("irrl").get_all("Provides-Extra") or []
    except PackageNotFoundError:
        known = []
    is_ours = library.extra in known or not library.otherwise
    return f"irrl[{library.extra}]" if is_ours else library.otherwise


def packages(what: str) -> str:
    """Names and versions of what ``package[extra]`` asks for; raises for what it lacks."""
    from importlib.metadata import PackageNotFoundError, version

    found, lacking = {}, []
    for name, wanted in asked_for(what).items():
        try:
            found[name] = version(name)
            if not wanted.contains(found[name], prereleases=True):
                lacking.append(f"{name}{wanted} (there is {found[name]})")
        except PackageNotFoundError:
            lacking.append(name)
    if lacking:
        raise RuntimeError(", ".join(lacking))
    return ", ".join(f"{name} {number}" for name, number in found.items())


def asked_for(what: str) -> dict[str, "SpecifierSet"]:
    """Packages by name, and which versions of them: of irrl the extra's, else itself as well."""
    from importlib.metadata import PackageNotFoundError, requires

    from packaging.requirements import Requirement as Package
    from packaging.specifiers import SpecifierSet

    package, any_version = Package(what), SpecifierSet()
    found = {} if package.name == "irrl" else {package.name: any_version}
    try:
        lines = requires(package.name) or []
    except PackageNotFoundError:
        return {package.name: any_version}
    for wanted in map(Package, lines):
        if any(_is_for(wanted, extra) for extra in package.extras):
            # others pin what they were tested with, and mostly work with more
            found[wanted.name] = wanted.specifier if package.name == "irrl" else any_version
    return found


def _is_for(wanted: "Package", extra: str) -> bool:
    """Whether a package is wanted for an extra, and not without it."""
    marker = wanted.marker
    return marker is not None and marker.evaluate({"extra": extra}) > marker.evaluate({"extra": ""})
