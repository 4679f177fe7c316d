"""Files that verbs write for people: nothing that is there is written over without `--force`."""

import os
from collections.abc import Iterable
from pathlib import Path

from irrl.cli.flags import Parser
from irrl.errors import UserError


def add_force(parser: Parser) -> None:
    parser.add_argument("--force", action="store_true", help="write over files that are there")


def check_free(paths: Iterable[str | Path], force: bool) -> None:
    """Raise if one of some files is there already, before any work is done for it."""
    there = [str(path) for path in paths if os.path.lexists(path)]
    if there and not force:
        raise UserError(
            f"{' and '.join(there)} {'is' if len(there) == 1 else 'are'} there already; choose "
            "another name with -o, or write over with --force"
        )


def check_picture(path: str | Path, force: bool, *beside: str) -> None:
    """The same for a picture, whose name must tell its format, and files ``beside`` it."""
    from irrl.analysis.plots import check_format

    check_format(path)
    check_free([path, *(Path(path).with_suffix(suffix) for suffix in beside)], force)
