"""The list of a rollout's pairs, regressions first, and how one pair is fetched."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import streamlit as st

from collector.client import Client
from collector.contract import Arm, Pair
from dashboard import words

_SCORE = "baseline_score_"
PAGE = 500
"""Pairs asked for at once on the way to one of them."""


class ScoreChange(NamedTuple):
    """A metric whose two scores of a pair differ."""

    metric: str
    baseline: float
    candidate: float

    @property
    def regressed(self) -> bool:
        """Say whether the candidate scored lower."""
        return self.candidate < self.baseline


class PairLine(NamedTuple):
    """One pair of the list."""

    prompt_id: str
    repeat: int
    cohort: str | None
    position: int
    """Place in the rollout, by prompt and repeat."""
    changes: tuple[ScoreChange, ...]
    trouble: tuple[str, ...]
    """Sides that never arrived or answered with an error."""

    @property
    def regressed(self) -> bool:
        """Say whether any metric scored lower."""
        return any(change.regressed for change in self.changes)

    @property
    def label(self) -> str:
        """What the list shows."""
        name = f"{self.prompt_id} · repeat {self.repeat}"
        about = [name, words.scope(self.cohort) if self.cohort else "no cohort", *self.trouble]
        for change in self.changes:
            sign = "▼" if change.regressed else "▲"
            about.append(
                f"{sign} {words.metric(change.metric)} "
                f"{words.score(change.baseline)} → {words.score(change.candidate)}"
            )
        return " · ".join(about)


# Any: a row's values are of the table's many types.
Row = Mapping[str, Any]


@st.cache_data(ttl=10, show_spinner="Reading the pairs …", max_entries=16)
def pair_lines(_client: Client, address: str, rollout: str) -> list[PairLine]:  # noqa: ARG001
    """Return all pairs of the rollout: regressions first, then trouble, then the rest.

    The address is part of the cache's key, the client is not.
    """
    table = _client.pairs_table(rollout)
    wanted = {"prompt_id", "repeat", "cohort"}
    for arm in Arm:
        wanted |= {f"{arm.value}_span_id", f"{arm.value}_error_type"}
    columns = [name for name in table.column_names if name in wanted or "_score_" in name]
    rows: Sequence[Row] = table.select(columns).to_pylist()
    lines = [_line(position, row) for position, row in enumerate(rows)]
    return sorted(lines, key=lambda line: (not line.regressed, not line.trouble, line.position))


def fetch(client: Client, rollout: str, line: PairLine) -> Pair | None:
    """Return the pair with its content; `None` where it is gone.

    Pages are ordered like the table, so the pages before the pair are fetched without content.
    Pairs that arrived since may have moved it, and then every page is searched.
    """
    after, before = None, line.position
    while before > 0:
        page = client.pairs(rollout, limit=min(before, PAGE), after=after)
        before -= len(page.pairs)
        after = page.next
        if after is None:
            return _search(client, rollout, line)
    found = client.pairs(rollout, content=True, limit=1, after=after).pairs
    if found and _is(found[0], line):
        return found[0]
    return _search(client, rollout, line)


def _search(client: Client, rollout: str, line: PairLine) -> Pair | None:
    after = None
    while True:
        page = client.pairs(rollout, content=True, limit=PAGE, after=after)
        for pair in page.pairs:
            if _is(pair, line):
                return pair
        if page.next is None:
            return None
        after = page.next


def _is(pair: Pair, line: PairLine) -> bool:
    return (pair.prompt_id, pair.repeat) == (line.prompt_id, line.repeat)


def _line(position: int, row: Row) -> PairLine:
    return PairLine(
        prompt_id=row["prompt_id"],
        repeat=row["repeat"],
        cohort=row["cohort"],
        position=position,
        changes=tuple(_changes(row)),
        trouble=tuple(_trouble(row)),
    )


def _changes(row: Row) -> Iterator[ScoreChange]:
    for column in row:
        if column.startswith(_SCORE):
            metric = column.removeprefix(_SCORE)
            baseline, candidate = row[column], row.get(f"candidate_score_{metric}")
            if baseline is not None and candidate is not None and baseline != candidate:
                yield ScoreChange(metric, baseline, candidate)


def _trouble(row: Row) -> Iterator[str]:
    for arm in Arm:
        if row[f"{arm.value}_span_id"] is None:
            yield f"{arm.value} missing"
        elif row[f"{arm.value}_error_type"] is not None:
            yield f"{arm.value} failed"
