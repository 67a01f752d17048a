"""A table for a terminal: a title on the left, headings, and no lines."""

from collections.abc import Iterable

from rich.table import Table


def plain_table(title: str, words: Iterable[str], numbers: Iterable[str] = ()) -> Table:
    """Return a table without rows: columns of words, then columns of numbers on the right."""
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        header_style="dim",
        box=None,
        pad_edge=False,
    )
    for heading in words:
        table.add_column(heading, overflow="fold")
    for heading in numbers:
        table.add_column(heading, justify="right", overflow="fold")
    return table
