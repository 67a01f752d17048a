"""Pairs counted on ClickHouse, with aggregation instead of correlated subqueries."""

from typing import Final

from collector.contract import Arm
from collector.store.clickhouse.connection import AnalyticsConnection

_KEY: Final = "rollout, prompt_id, repeat"
_PAIRS: Final = " AND ".join(
    f"{name} IS NOT NULL" for name in ("rollout", "prompt_id", "repeat", "arm")
)


def completed(
    connection: AnalyticsConnection, after: int, up_to: int | None, floor: int
) -> dict[str, int]:
    """Count the pairs that became complete with a generation in (after, up_to]."""
    if after >= connection.watermarks.committed:
        return {}
    end = "" if up_to is None else f" AND id <= {up_to}"
    touched = ""
    if after > floor:
        touched = f"AND ({_KEY}) IN ({_keys(f'id > {after}{end}')})"
    rows = connection.rows(
        f"SELECT rollout, count() FROM (SELECT {_KEY}, {_first('baseline')} AS b, "  # noqa: S608  # numbers and names of ours
        f"{_first('candidate')} AS c FROM generation "
        f"WHERE {_PAIRS} AND id >= {floor}{end} {touched} GROUP BY {_KEY}) "
        f"WHERE b IS NOT NULL AND c IS NOT NULL AND greatest(b, c) > {after} GROUP BY rollout"
    )
    return {rollout.decode(): count for rollout, count in rows}


def broken(connection: AnalyticsConnection, floor: int, before: int, last: int) -> dict[str, int]:
    """Count the pairs up to id `last` that use a generation in [floor, before)."""
    sides = ", ".join(
        f"{_first(arm, f'id >= {start}')} AS {arm}_{name}"
        for name, start in (("now", floor), ("then", before))
        for arm in Arm
    )
    rows = connection.rows(
        f"SELECT rollout, count() FROM (SELECT {_KEY}, {sides} FROM generation "  # noqa: S608  # as above
        f"WHERE {_PAIRS} AND id >= {floor} AND id <= {last} AND ({_KEY}) IN "
        f"({_keys(f'id >= {floor} AND id < {before} AND id <= {last}')}) GROUP BY {_KEY}) "
        "WHERE baseline_now IS NOT NULL AND candidate_now IS NOT NULL "
        "AND (baseline_then IS NULL OR candidate_then IS NULL) GROUP BY rollout"
    )
    return {rollout.decode(): count for rollout, count in rows}


def _keys(arrived: str) -> str:
    return f"SELECT {_KEY} FROM generation WHERE {_PAIRS} AND {arrived}"  # noqa: S608  # as above


def _first(arm: str, condition: str = "1") -> str:
    return f"minIf(id, arm = '{arm}' AND {condition})"
