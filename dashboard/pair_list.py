"""The list of a rollout's pairs: filtered, regressions first, paginated.

Filtering and sorting work on Arrow columns; only the shown page is converted to rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from collector.client import RegressionPage
from collector.contract import Arm, Pair, Regression
from dashboard import words

PAGE = 15
_SCORE = "baseline_score_"


class ScoreChange(NamedTuple):
    """A metric in which a pair's two scores differ."""

    metric: str
    baseline: float
    candidate: float

    @property
    def regressed(self) -> bool:
        """Whether the candidate scored lower."""
        return self.candidate < self.baseline


class PairLine(NamedTuple):
    """One pair of the list."""

    prompt_id: str
    repeat: int
    cohort: str | None
    changes: tuple[ScoreChange, ...]
    trouble: tuple[str, ...]
    """Arms that are missing or failed, in words."""

    @property
    def said(self) -> str:
        """The arms in trouble and the score changes, in words."""
        return " · ".join((*self.trouble, *map(_said, self.changes)))


class PairFilter(NamedTuple):
    """Selects and orders pairs."""

    cohort: str | None = None
    kind: str = "all"
    """A key of `KINDS`."""
    metric: str | None = None
    """The metric whose changes count; `None` for any."""
    text: str = ""
    """Part of the prompt's id."""


class FilteredPage(NamedTuple):
    """One page of the filtered pairs."""

    lines: tuple[PairLine, ...]
    first: int
    """Index of the page's first line, from 0."""
    pairs: int
    """Number of all filtered pairs."""


KINDS: Mapping[str, str] = {
    "all": "All, regressions first",
    "regressed": "Regressed",
    "improved": "Improved",
    "trouble": "Failed or missing",
}

_NO = pa.scalar(value=False)
# Any: a row's values are of the table's many types.
Row = Mapping[str, Any]


def find(table: pa.Table, wanted: PairFilter, page: int) -> FilteredPage:
    """Return a page (from 0) of the pairs: regressions first, then trouble, then the rest."""
    rows = table.filter(_kept(table, wanted))
    regressed, trouble = _changed(rows, wanted.metric, pc.less), _trouble(rows)
    kind = {
        "regressed": regressed,
        "improved": _changed(rows, wanted.metric, pc.greater),
        "trouble": trouble,
    }.get(wanted.kind)
    weight = pc.if_else(regressed, 0, pc.if_else(trouble, 1, 2))
    if kind is not None:
        rows, weight = rows.filter(kind), pc.filter(weight, kind)
    order = pc.sort_indices(weight)  # stable: keeps the order by prompt and repeat
    first = min(page * PAGE, max((rows.num_rows - 1) // PAGE * PAGE, 0))
    shown: Sequence[Row] = rows.take(order.slice(first, PAGE)).to_pylist()
    return FilteredPage(tuple(map(_line, shown)), first, rows.num_rows)


def regressions(table: pa.Table, wanted: PairFilter) -> int:
    """Count the pairs of the filter's cohort, text and metric in which the candidate is lower."""
    rows = table.filter(_kept(table, wanted))
    return pc.sum(_changed(rows, wanted.metric, pc.less)).as_py() or 0


def metrics(table: pa.Table) -> tuple[str, ...]:
    """Return the metrics for which the table has scores."""
    return tuple(n.removeprefix(_SCORE) for n in table.column_names if n.startswith(_SCORE))


def line_of(pair: Pair) -> PairLine:
    """Return the line of a pair record, without score changes."""
    sides = ((Arm.BASELINE, pair.baseline), (Arm.CANDIDATE, pair.candidate))
    trouble = [f"{arm.value} missing" for arm, side in sides if side is None]
    trouble += [f"{arm.value} failed" for arm, side in sides if side and side.error_type]
    return PairLine(pair.prompt_id, pair.repeat, pair.cohort, (), tuple(trouble))


def line_of_regression(regression: Regression) -> PairLine:
    """Return the line of a pair with its largest loss."""
    change = ScoreChange(regression.metric, regression.baseline, regression.candidate)
    return PairLine(regression.prompt_id, regression.repeat, regression.cohort, (change,), ())


def losses(found: RegressionPage, pairs: int) -> str:
    """Describe how many pairs regressed, and how many scores are not ranked yet."""
    of = f"of {words.counted(pairs, 'complete pair')} in all cohorts"
    if not found.counted:
        said = f"In no pair here, {of}, was the candidate seen to score lower on the same metric."
    else:
        beyond = "more than " if found.counted == found.counted_at_most else ""
        number = words.count(found.counted)
        said = (
            f"In {beyond}{number} here, {of}, the candidate scored lower; the greatest loss first."
        )
    if not found.waiting_scores:
        return said
    waiting = words.counted(found.waiting_scores, "new score")
    return f"{said} {waiting}, of any rollout, stand in this order within seconds."


def _said(change: ScoreChange) -> str:
    sign = "▼" if change.regressed else "▲"
    scores = f"{words.score(change.baseline)} → {words.score(change.candidate)}"
    return f"{sign} {words.metric(change.metric)} {scores}"


def _kept(table: pa.Table, wanted: PairFilter) -> Any:  # Any: Arrow's own
    keep = pc.is_valid(table["prompt_id"])
    if wanted.cohort is not None:
        keep = pc.and_(keep, pc.fill_null(pc.equal(table["cohort"], wanted.cohort), _NO))
    if wanted.text:
        found = pc.match_substring(table["prompt_id"], wanted.text, ignore_case=True)
        keep = pc.and_(keep, found)
    return keep


def _changed(table: pa.Table, metric: str | None, compare: Any) -> Any:  # Any: Arrow's own
    """Return a mask of pairs in which `compare(candidate, baseline)` holds for any metric."""
    changed = _none(table)
    for name in metrics(table) if metric is None else (metric,):
        columns = [f"{arm.value}_score_{name}" for arm in Arm]
        if set(columns) <= set(table.column_names):
            found = compare(table[columns[1]], table[columns[0]])
            changed = pc.or_(changed, pc.fill_null(found, _NO))
    return changed


def _trouble(table: pa.Table) -> Any:  # Any: Arrow's own
    trouble = _none(table)
    for arm in Arm:
        missing = pc.is_null(table[f"{arm.value}_trace_id"])
        failed = pc.is_valid(table[f"{arm.value}_error_type"])
        trouble = pc.or_(trouble, pc.or_(missing, failed))
    return trouble


def _none(table: pa.Table) -> Any:  # Any: Arrow's own
    return pc.and_(pc.is_valid(table["prompt_id"]), _NO)


def _line(row: Row) -> PairLine:
    return PairLine(
        prompt_id=row["prompt_id"],
        repeat=row["repeat"],
        cohort=row["cohort"],
        changes=tuple(_changes(row)),
        trouble=tuple(_troubles(row)),
    )


def _changes(row: Row) -> Iterator[ScoreChange]:
    for column in row:
        if column.startswith(_SCORE):
            metric = column.removeprefix(_SCORE)
            baseline, candidate = row[column], row.get(f"candidate_score_{metric}")
            if baseline is not None and candidate is not None and baseline != candidate:
                yield ScoreChange(metric, baseline, candidate)


def _troubles(row: Row) -> Iterator[str]:
    for arm in Arm:
        if row[f"{arm.value}_span_id"] is None:
            yield f"{arm.value} missing"
        elif row[f"{arm.value}_error_type"] is not None:
            yield f"{arm.value} failed"
