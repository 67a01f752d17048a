"""The difference between slow requests and the rest, by dimension."""

from collections.abc import Sequence
from zoneinfo import ZoneInfo

import pyarrow as pa
import streamlit as st

from dashboard import address, markup, words
from dashboard.markup import TableCell, TableColumn
from evals.profiles import slow_requests
from evals.profiles.distributions import DIM
from evals.profiles.request_dimensions import Value, ValueBand
from evals.profiles.slow_requests import ShareDifference, SlowComparison

_METRICS = {"e2e_s": "End to end", "ttft_s": "TTFT", "tpot_s": "TPOT"}
_TITLES = {
    "start_unix_ns": "start",
    "input_tokens": "prompt tokens",
    "concurrency": "requests in flight",
    "turn": "turn of the session",
    "queue_s": "time in the queue",
    "response_model": "model",
    "service_name": "service",
    "error_type": "error",
    "finish_reasons": "finish reason",
    "acceptance": "acceptance rate of drafts",
    "cached_share": "share of the prompt in the cache",
}
_SHARES = ("acceptance", "cached_share")
_YES_OR_NO = ("streamed", "fallback", "mirrored")
_COLUMNS = (
    TableColumn("Requests with", "value and dimension"),
    TableColumn("Of the slow", number=True),
    TableColumn("Of the rest", number=True),
    TableColumn("Difference", "with limits", number=True),
)


NOT_A_TIME = "Enter a number of milliseconds above 0, such as 1500."


def show(table: pa.Table, chosen: str, rollout: str, zone: ZoneInfo | None) -> None:
    """Draw the comparison of the requests in the table, which has `slow_requests.FIELDS`.

    `chosen` names the choices that narrowed them, in words.
    """
    with st.container(horizontal=True):
        metric = address.choose(
            "Slow by", "by", list(_METRICS), of=rollout, titles=list(_METRICS.values())
        )
        typed = address.typed(
            "Slow from, in ms", "from", of=rollout, placeholder="the slowest tenth"
        )
    at_least_s = seconds(typed)
    if typed and at_least_s is None:
        st.html(markup.note(NOT_A_TIME))
        return
    requests = f"the newest {words.counted(table.num_rows, 'request')} of the chosen {chosen}"
    found = slow_requests.compare(table, metric, at_least_s)
    if found is None:
        st.html(markup.note(f"None of {requests} has this time."))
        return
    st.html(markup.note(_groups(found, requests, _METRICS[metric])))
    if found.differ:
        rows = [_row(one, found, zone) for one in found.differ]
        title = "How slow requests differ"
        st.html(markup.table(title, _COLUMNS, rows, fit="cards"))
    st.html(markup.bullets(_remarks(found)))


def seconds(typed: str) -> float | None:
    """Return typed milliseconds in seconds; `None` if the text is no number above 0."""
    try:
        milliseconds = float(typed)
    except ValueError:
        return None
    return milliseconds / 1_000 if 0 < milliseconds < float("inf") else None


def _groups(found: SlowComparison, requests: str, metric: str) -> str:
    left_out = f" {words.count(found.unmeasured)} have no such time." if found.unmeasured else ""
    return (
        f"Of {requests}, {words.count(found.slow)} are slow ({metric} ≥ "
        f"{words.milliseconds(found.threshold_s)}) and {words.count(found.rest)} are the rest."
        f"{left_out}"
    )


def _row(one: ShareDifference, found: SlowComparison, zone: ZoneInfo | None) -> list[TableCell]:
    limits = one.limits
    return [
        TableCell(markup.stacked(_value(one.dimension, one.value, zone), _title(one.dimension))),
        markup.numeric(words.share(one.slow, found.slow)),
        markup.numeric(words.share(one.rest, found.rest)),
        markup.numeric(
            markup.stacked(
                words.points(limits.estimate), words.between(limits.lower, limits.upper, "share")
            ),
            limits.estimate,
        ),
    ]


def _remarks(found: SlowComparison) -> list[str]:
    said = []
    if found.alike:
        said.append(f"No difference found: {_titles(found.alike)}.")
    if found.too_few:
        said.append(f"Too few requests to compare: {_titles(found.too_few)}.")
    if not (found.differ or found.alike or found.too_few):
        said.append("The requests are the same in every recorded dimension.")
    if found.differ:
        said.append(
            "Each dimension is shown by the value in which the groups differ most surely. The "
            "limits hold for all compared values together at 95\u202f%, if requests are "
            "independent. A difference need not be the cause."
        )
    return said


def _titles(dimensions: Sequence[str]) -> str:
    return ", ".join(map(_title, dimensions))


def _title(dimension: str) -> str:
    if dimension.startswith(DIM):
        return f"dimension {dimension.removeprefix(DIM)}"
    return _TITLES.get(dimension, dimension.replace("_", " "))


def _value(dimension: str, value: Value, zone: ZoneInfo | None) -> str:
    if isinstance(value, ValueBand):
        ends = [_number(dimension, end, zone) for end in value]
        return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
    if value is None:
        return "none" if dimension == "error_type" else "not recorded"
    if dimension in _YES_OR_NO:
        return "yes" if value == "true" else "no"
    return value or "empty"


def _number(dimension: str, number: float, zone: ZoneInfo | None) -> str:
    if dimension == "start_unix_ns":
        return words.moment(int(number), zone)
    if dimension == "queue_s":
        return words.milliseconds(number)
    return words.acceptance_rate(number) if dimension in _SHARES else words.count(int(number))
