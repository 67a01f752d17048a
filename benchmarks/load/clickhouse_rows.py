"""Multiply the generations in ClickHouse, faster than its writer could insert them.

Existing rows are copied by INSERT ... SELECT with new ids, traces and prompts and the same times.
The copies have rollup deltas too, so rollups and pairs are built from them as usual.
"""

from collector.store import Store, progress
from collector.store.clickhouse import AnalyticsConnection, watermarks

_CHANGED = {
    "span": ("trace_id",),
    "span_key": ("trace_id",),
    "generation": ("trace_id", "prompt_id"),
    "rollup_delta": (),
}


def repeat(store: Store, times: int) -> None:
    """Copy all rows until there are `times` copies (at most 255), not yet folded or counted."""
    with store.transaction() as connection:
        if not isinstance(connection, AnalyticsConnection):
            raise TypeError("the store has no ClickHouse")
        clickhouse, last = connection.clickhouse, connection.watermarks.committed
        first = clickhouse.query("SELECT min(id) FROM span").column(0)[0].as_py()
        shift = last - first + 1
        for number in range(1, times):
            for table, names in _CHANGED.items():
                clickhouse.command(
                    f"INSERT INTO {table} SELECT * REPLACE ({_changes(names, number, shift)}) "  # noqa: S608  # ours
                    # In a subquery: outside, the condition would apply to the new id.
                    f"FROM (SELECT * FROM {table} WHERE id BETWEEN {first} AND {last})",
                    {"final": 0},
                )
        end = last + (times - 1) * shift
        clickhouse.last_tried_id = end
        progress.reach(connection, watermarks.COMMITTED, end)


def _changes(names: tuple[str, ...], number: int, shift: int) -> str:
    values = {
        # The remaining fifteen random bytes are unique.
        "trace_id": f"toFixedString(concat(char({number}), substring(trace_id, 2)), 16)",
        "prompt_id": f"concat(prompt_id, '-{number}')",
    }
    changes = [f"id + {number * shift} AS id", *(f"{values[name]} AS {name}" for name in names)]
    return ", ".join(changes)
