"""Tables on the terminal, and the same as JSON."""

import json
import sys
from collections.abc import Sequence
from typing import Any

from irrl.cli.flags import Parser


def print_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], caption: str | None = None
) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(caption=Text(caption) if caption else None)
    for column in header:
        table.add_column(column, no_wrap=column == header[0])
    for row in rows:
        table.add_row(*map(Text, row))
    # Off a terminal a table is as wide as it needs to be.
    Console(width=None if sys.stdout.isatty() else 200).print(table)


def add_json(parser: Parser, help: str = "print JSON in place of a table") -> None:
    parser.add_argument("--json", action="store_true", help=help)


def print_json(content: Any) -> None:
    print(json.dumps(content, indent=1))
