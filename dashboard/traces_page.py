"""Whole traces: an agent's steps, and the findings on each step's cohort."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import NamedTuple
from zoneinfo import ZoneInfo

import streamlit as st

from collector.client import Client, ClientError
from collector.contract import Arm, Finding, Generation, RolloutOverview, Verdict, encode
from dashboard import address, charts, markup, reading, rollout_choice, words
from dashboard.drawing import draw
from dashboard.markup import TableCell, TableColumn
from dashboard.sections import slow_requests
from dashboard.source import Source
from dashboard.trace_steps import TraceStep, steps
from evals.profiles.distributions import DIM, Slice, narrowed
from evals.report.findings_by_margin import worst_first

RECENT = 200
"""Number of newest generations whose traces are listed."""
LISTED = 15
_ORDERS: Mapping[str, Callable[[Sequence[Generation]], float]] = {
    "Most generations": len,
    "Slowest answer": lambda of: max((one.e2e_s or 0.0 for one in of), default=0.0),
}
_KINDS = ("All", "Failed")
_STEPS = (
    TableColumn("Step"),
    TableColumn("Arm"),
    TableColumn("Cohort"),
    TableColumn("Duration", number=True),
    TableColumn("TTFT", number=True),
    TableColumn("Tokens", "output", number=True),
    TableColumn("Acceptance", number=True),
    TableColumn("Error"),
)
_DELTAS = (
    TableColumn("Step's cohort", "metric"),
    TableColumn("Outcome", "and the cell's role"),
    TableColumn("Candidate against baseline", number=True),
    TableColumn("Limits", "one-sided", number=True),
    TableColumn("Margin", number=True),
    TableColumn("n", "pairs", number=True),
)


class _TraceFilters(NamedTuple):
    """The viewer's choices; `None` does not filter."""

    cohort: str | None
    arm: Arm | None
    failed: bool
    attribute: str
    """Part of an attribute's `name=value`, in lower case."""
    least_s: float

    def keeps(self, one: Generation) -> bool:
        return (
            self.cohort in (None, one.cohort)
            and self.arm in (None, one.arm)
            and (one.error_type is not None or not self.failed)
            and one.e2e_s >= self.least_s
            and _has(one, self.attribute)
        )


def show(client: Client, source: Source, zone: ZoneInfo | None) -> None:
    """Draw the trace named in the address bar, or one of the newest."""
    overview = rollout_choice.choose(client, source, "traces")
    if overview is None:
        return
    st.html(markup.title("Traces", overview.rollout))
    chosen = _choose_filters(overview)
    if chosen is None:
        return
    if address.ticked("How slow requests differ", "slow", of=overview.rollout):
        _compare_slow(client, reading.stamp(source.address, overview), chosen, zone)
    newest = list(filter(chosen.keeps, client.newest(RECENT, overview.rollout)))
    beside, place = st.columns([1, 4])
    with beside, st.container(key="beside"):
        trace_id = _choose(newest, overview.rollout, zone)
    with place, st.container(key="place"):
        _show_trace(client, overview, trace_id)


def _choose_filters(overview: RolloutOverview) -> _TraceFilters | None:
    """Draw the filters; return `None`, and say why, if the duration is none."""
    of = overview.rollout
    cohort = address.narrow("Cohort", "cohort", overview.cohorts, of=of, every="All cohorts")
    with st.container(horizontal=True):
        arm = address.narrow("Arm", "arm", [arm.value for arm in Arm], of=of, every="Both arms")
        failed = address.choose("Show", "show", _KINDS, of=of) == "Failed"
        attribute = address.typed(
            "Attribute contains", "attribute", of=of, placeholder=f"{DIM}language=de"
        ).casefold()
        took = address.typed("Took at least, in ms", "took", of=of, placeholder="any time")
    least_s = slow_requests.seconds(took) if took else 0.0
    if least_s is None:
        st.html(markup.note(slow_requests.NOT_A_TIME))
        return None
    return _TraceFilters(cohort, None if arm is None else Arm(arm), failed, attribute, least_s)


def _compare_slow(
    client: Client, at: reading.Stamp, chosen: _TraceFilters, zone: ZoneInfo | None
) -> None:
    """Compare the slow requests with the rest, of those that pass the filters."""
    dimension = chosen.attribute if chosen.attribute.startswith(DIM) else ""
    if chosen.attribute and not dimension:
        st.html(
            markup.note(
                "This comparison ignores “Attribute contains”: of the attributes it reads "
                f"dimensions alone, so enter a text that begins with {DIM}"
            )
        )
    wanted = Slice(failed=chosen.failed, least_e2e_s=chosen.least_s, dim_part=dimension)
    kept = narrowed(reading.compared(client, at, chosen.cohort, chosen.arm), wanted)
    by = ["cohort", "arm", "outcome"]
    by += ["dimension"] * bool(dimension) + ["least duration"] * bool(chosen.least_s)
    slow_requests.show(kept, f"{words.listed(by[:-1])} and {by[-1]}", at.rollout, zone)


def _choose(newest: Sequence[Generation], rollout: str, zone: ZoneInfo | None) -> str | None:
    """Draw the newest traces in the order chosen, and a field for a trace id."""
    typed = address.typed("Trace id", "trace", of=rollout, placeholder="32 hexadecimal digits")
    by_trace: dict[str, list[Generation]] = {}
    for generation in newest:
        by_trace.setdefault(generation.trace_id, []).append(generation)
    order = address.choose("Order", "order", list(_ORDERS), of=rollout)
    ids = sorted(by_trace, key=lambda trace_id: -_ORDERS[order](by_trace[trace_id]))[:LISTED]
    if not ids:
        return typed or None
    chosen: int | None = st.radio(
        f"Traces of the newest {RECENT} generations",
        options=range(len(ids)),
        index=ids.index(typed) if typed in ids else None if typed else 0,
        format_func=lambda i: markup.label(_line(ids[i], by_trace[ids[i]], zone)),
        key=f"traces {rollout} {typed} {ids}",
    )
    if chosen is None or ids[chosen] == typed:
        return typed or ids[0]
    if typed:
        st.query_params["trace"] = ids[chosen]
        st.session_state.pop(f"trace {rollout}", None)
        st.rerun()
    return ids[chosen]


def _has(one: Generation, text: str) -> bool:
    """Return whether `name=value` of an attribute, prompts and answers left out, has the text."""
    if not text:
        return True
    attributes = encode(replace(one, content=None)).attributes
    return any(
        text in f"{name}=".casefold() + str(value).casefold() for name, value in attributes.items()
    )


def _line(trace_id: str, of: Sequence[Generation], zone: ZoneInfo | None) -> str:
    first = min(generation.start_unix_ns for generation in of)
    arms = sorted({generation.arm.value for generation in of if generation.arm is not None})
    counted = words.counted(len(of), "generation")
    sessions = {generation.conversation_id for generation in of}
    session = sessions.pop() if len(sessions) == 1 else None
    name = f"{trace_id[:12]}…" if session is None else f"session {session}"
    return f"{name} · {counted} · {', '.join(arms)} · {words.moment(first, zone)}"


def _show_trace(client: Client, overview: RolloutOverview, trace_id: str | None) -> None:
    if trace_id is None:
        st.html(
            markup.note("No trace here: choose another filter, or wait for the first generation.")
        )
        return
    try:
        spans = client.trace(trace_id)
    except ClientError as error:
        if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY):
            raise
        st.html(
            markup.panel(
                "No such trace",
                ["The collector holds no span of it. A trace id has 32 hexadecimal digits."],
            )
        )
        return
    found = steps(spans)
    st.html(markup.heading(f"Trace {trace_id}: {words.counted(len(found), 'step')}", level=2))
    draw(charts.waterfall(found), alt="Waterfall of the trace's steps")
    rows = [_row(place, step) for place, step in enumerate(found, start=1)]
    st.html(markup.table("Steps", _STEPS, rows, fit="cards"))
    stored = client.newest_verdict(overview.rollout)
    _show_deltas(None if stored is None else stored.verdict, found)


def _show_deltas(verdict: Verdict | None, found: Sequence[TraceStep]) -> None:
    cohorts = {s.generation.cohort for s in found if s.generation and s.generation.cohort}
    findings = () if verdict is None else verdict.findings
    deltas = [f for f in worst_first(findings) if f.cohort in cohorts]
    if not deltas:
        st.html(markup.note("No verdict has findings on these steps' cohorts yet."))
        return
    st.html(
        markup.table("Findings on the steps' cohorts", _DELTAS, map(_delta, deltas), fit="cards")
    )


def _row(place: int, step: TraceStep) -> list[TableCell]:
    generation = step.generation
    error = "✕ failed" if step.failed else ""
    turn = None if generation is None else generation.turn
    name = TableCell(f"{place}. {step.name}{'' if turn is None else f', turn {turn}'}")
    duration = step.end_s - step.start_s
    if generation is None:
        blank = markup.numeric("")
        times = markup.numeric(words.milliseconds(duration), duration)
        return [name, TableCell("–"), TableCell("–"), times, blank, blank, blank, TableCell(error)]
    spec = generation.speculation
    accepted = (
        "did not speculate"
        if spec is None
        else words.draft_counts(spec.accepted_tokens, spec.draft_tokens, spec.steps)
    )
    return [
        name,
        TableCell("–" if generation.arm is None else generation.arm.value),
        TableCell(generation.cohort or words.ABSENT),
        markup.numeric(words.milliseconds(duration), duration),
        markup.numeric(words.milliseconds(generation.ttft_s), generation.ttft_s),
        markup.numeric(words.count(generation.output_tokens), generation.output_tokens),
        markup.numeric(accepted),
        TableCell(generation.error_type or error),
    ]


def _delta(finding: Finding) -> list[TableCell]:
    unit = words.unit_of(finding.unit, finding.stat)
    what = words.measure(finding.metric, finding.stat)
    return [
        TableCell(markup.stacked(words.scope(finding.cohort), what)),
        TableCell(markup.stacked(markup.outcome(finding.outcome), words.ROLE_WORDS[finding.role])),
        markup.numeric(words.in_unit(finding.estimate, unit), finding.estimate),
        markup.numeric(words.limits(finding)),
        markup.numeric(words.margin(finding), finding.margin),
        markup.numeric(words.count(finding.n), finding.n),
    ]
