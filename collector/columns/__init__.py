"""Tables of columns over numpy, read from Arrow and written as Arrow."""

from collector.columns.arrow import ArrowError
from collector.columns.column import Coded, Column, Kind, concat
from collector.columns.table import Table, joined

__all__ = ["ArrowError", "Coded", "Column", "Kind", "Table", "concat", "joined"]
