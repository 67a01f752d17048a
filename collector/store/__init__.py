"""The store: the only package that uses SQL."""

from collector.store.batch import Batch, merge
from collector.store.engine import Store, exists
from collector.store.span_rows import SpanRows
from collector.store.upkeep.retention import Keep

__all__ = ["Batch", "Keep", "SpanRows", "Store", "exists", "merge"]
