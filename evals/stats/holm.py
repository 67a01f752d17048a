"""Holm's step-down correction."""

from collections.abc import Sequence


def adjusted(p_values: Sequence[float | None]) -> list[float | None]:
    """Return the p values adjusted for the whole family, in the order given.

    p̃₍ᵢ₎ = max over j ≤ i of (m − j + 1)·p₍ⱼ₎, at most 1; rejecting where p̃ ≤ α keeps the chance of
    any false rejection below α under any dependence. `None` is a hypothesis without evidence: it
    counts in m as p = 1 and stays `None`. An empty family is an empty list; with m = 1 nothing
    changes.

    Source: S. Holm, Scandinavian Journal of Statistics 6 (1979) 65–70.
    """
    order = sorted(
        (i for i, p in enumerate(p_values) if p is not None), key=lambda i: p_values[i] or 0.0
    )
    result: list[float | None] = [None] * len(p_values)
    running = 0.0
    for rank, i in enumerate(order):
        running = max(running, min(1.0, (len(p_values) - rank) * (p_values[i] or 0.0)))
        result[i] = running
    return result
