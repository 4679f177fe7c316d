"""What MkDocs does not do by itself.

Pages link to files of the repository (`../examples/skills.py`) as they do in an editor: here each
becomes a page or a picture of the site. And the reference is whole: every public module is on a
page, and every public name of it has a docstring with an example. What is wrong is a warning that
says where, and the build is strict.
"""

import ast
import json
import logging
import posixpath
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
DOCS = "docs"
ALWAYS = ("CHANGELOG.md", "examples/*.py", "notebooks/*.ipynb")
LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")
DIRECTIVE = re.compile(r"^::: (\S+)", re.M)
CODE = {".py": "python", ".toml": "toml", ".sh": "bash", ".yml": "yaml"}

log = logging.getLogger("mkdocs.hooks.irrl")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    for path in sorted(_always() | set(_linked(files))):
        if files.get_file_from_path(_uri(path)) is None:
            files.append(_file(path, config))
    for said in gaps({page.src_uri: page.content_string for page in files.documentation_pages()}):
        log.warning(said)
    return files


def on_page_markdown(markdown: str, *, page: Any, files: Files, **_: Any) -> str:
    """Links to files of the repository lead to their pages."""
    here, place = page.file.src_uri, _place(page.file.src_uri)

    def lead(link: re.Match[str]) -> str:
        target = _target(place, link[2])
        if target is None or files.get_file_from_path(_uri(target)) is None:
            return link[0]
        return f"{link[1]}{posixpath.relpath(_uri(target), posixpath.dirname(here))}{link[3]}"

    return LINK.sub(lead, markdown)


# --- files of the repository as parts of the site ---


def _always() -> set[str]:
    return {path.relative_to(ROOT).as_posix() for each in ALWAYS for path in ROOT.glob(each)}


def _linked(files: Files) -> Iterator[str]:
    for page in files.documentation_pages():
        for link in LINK.finditer(page.content_string):
            if target := _target(_place(page.src_uri), link[2]):
                yield target


def _place(src_uri: str) -> str:
    """Where a page of the site is in the repository."""
    outside = {_uri(path): path for path in _always()}
    return outside.get(src_uri, f"{DOCS}/{src_uri}")


def _target(place: str, link: str) -> str | None:
    """The file of the repository a link leads to, unless it is in docs/, or none."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(place), link))
    if ":" in link or path.startswith(("..", "/")) or not (ROOT / path).is_file():
        return None
    return None if path.startswith(f"{DOCS}/") and place.startswith(f"{DOCS}/") else path


def _uri(path: str) -> str:
    """Its address among the sources of the site."""
    if path.startswith(f"{DOCS}/"):
        return path.removeprefix(f"{DOCS}/")
    stem, suffix = posixpath.splitext(path)
    if path.isupper() or stem.isupper():
        return f"{stem.lower()}.md"
    return f"{stem}.md" if suffix in {*CODE, ".ipynb"} else path


def _file(path: str, config: MkDocsConfig) -> File:
    source, uri = ROOT / path, _uri(path)
    if not uri.endswith(".md"):
        return File.generated(config, uri, abs_src_path=str(source))
    return File.generated(config, uri, content=_as_markdown(source, path))


def _as_markdown(source: Path, path: str) -> str:
    text = source.read_text(encoding="utf-8")
    if source.suffix == ".ipynb":
        return _notebook(json.loads(text), path)
    if source.suffix in CODE:
        return f"# {source.name}\n\n`{path}`\n\n```{CODE[source.suffix]}\n{text}```\n"
    return text if source.suffix == ".md" else f"# {source.name}\n\n```text\n{text}```\n"


def _notebook(notebook: dict[str, Any], path: str) -> str:
    """Its cells, without outputs; where it is stands below the title."""
    cells = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        cells.append(f"```python\n{text}\n```" if cell["cell_type"] == "code" else text)
    title, *rest = cells[0].split("\n", 1)
    return "\n\n".join([title, f"A notebook: `{path}`.", *rest, *cells[1:]]) + "\n"


# --- a reference without gaps ---


def gaps(pages: dict[str, str]) -> Iterator[str]:
    """What is public and not on a page, or on a page without docstring or example."""
    shown = [(page, name) for page, text in pages.items() for name in DIRECTIVE.findall(text)]
    if not shown:
        return
    for name in sorted(_public()):
        if not any(f"{each}.".startswith(f"{name}.") for _, each in shown):
            yield f"{name} is public, and on no page of docs/api/"
    for page, name in shown:
        found = _find(name)
        for thing in [found] if not found.is_module else found.members.values():
            if found.is_module and not thing.is_public:
                continue
            yield from (f"{page}: {said}" for said in _undocumented(thing))


def _find(name: str) -> griffe.Object:
    """A module, or what a module has under a name, read without being imported."""
    package, _, path = name.partition(".")
    found: Any = _package(package)[path] if path else _package(package)
    return found.final_target if found.is_alias else found


@cache
def _package(name: str) -> griffe.Object:
    return griffe.load(name, search_paths=[ROOT / "src", *sys.path], resolve_aliases=True)  # type: ignore[return-value]


def _public() -> set[str]:
    """Modules that `irrl` lists or takes names from, and adapters that say what they offer."""
    tree = ast.parse((ROOT / "src" / "irrl" / "__init__.py").read_text(encoding="utf-8"))
    said = {
        getattr(node.targets[0], "id", ""): ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
    }
    adapters = _find("irrl.adapters").members.values()
    offered = {each.path for each in adapters if each.is_module and each.exports is not None}
    return {f"irrl.{name}" for name in said["_MODULES"]} | {*said["_NAMES"].values()} | offered


def _undocumented(thing: Any) -> Iterator[str]:
    """Functions and classes have an example; methods, and what a module exports, a docstring."""
    thing = thing.final_target if thing.is_alias else thing
    text = thing.docstring.value if thing.docstring else ""
    if thing.is_module or (thing.is_attribute and not text and not thing.is_exported):
        return
    if not text:
        yield f"{_where(thing)} is public and has no docstring"
    elif not thing.is_attribute and ">>> " not in text:
        yield f"{_where(thing)} is public and its docstring has no example"
    if thing.is_class:
        for method in thing.members.values():
            if method.is_function and not method.name.startswith("_") and not method.docstring:
                yield f"{_where(method)} is public and has no docstring"


def _where(thing: Any) -> str:
    return f"{thing.path} ({Path(thing.filepath).name}:{thing.lineno})"
