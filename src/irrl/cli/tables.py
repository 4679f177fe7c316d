"""Tables on the terminal."""

import sys
from collections.abc import Sequence


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
