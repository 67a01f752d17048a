"""Tables of columns over numpy, read from Arrow and written as Arrow."""

from collector.columns.arrow import ArrowError
from collector.columns.column import Column, Kind, concat
from collector.columns.table import Table, joined

__all__ = ["ArrowError", "Column", "Kind", "Table", "concat", "joined"]
