"""Describe the capacity of both arms in a few words."""

from collections.abc import Mapping

from collector.contract import LATENCIES, ArmCapacity

COLUMNS = ("Requests", "Good", "Share", "Good per second", "Tokens per second", "In flight")
"""Titles of the columns of `numbers`."""


def title(bounds_ms: Mapping[str, float]) -> str:
    """Return the title of a table of capacity, with the bounds of goodput."""
    bounds = " and ".join(
        f"{LATENCIES[key.removesuffix('_ms')].short} ≤ {ms:g} ms" for key, ms in bounds_ms.items()
    )
    return f"Capacity: requests with {bounds}" if bounds else "Capacity"


def share(row: ArmCapacity) -> float | None:
    """Return good ÷ all requests; `None` if whether one was good is unknown."""
    if row.good is None or row.unknown or not row.requests:
        return None
    return row.good / row.requests


def numbers(row: ArmCapacity) -> tuple[str, ...]:
    """Return the texts of `COLUMNS`."""
    unknown = f" (+{row.unknown:,} unknown)" if row.unknown else ""
    part = share(row)
    return (
        f"{row.requests:,}",
        "–" if row.good is None else f"{row.good:,}{unknown}",
        "–" if part is None else f"{part:.1%}",
        _number(row.good_per_s),
        _number(row.output_tokens_per_s),
        _number(row.in_flight),
    )


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
