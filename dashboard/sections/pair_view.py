"""One pair: prompt, material, both answers, scores, timelines, raw spans.

Everything here was written by models or by strangers: it is shown as plain text, never as markup.
"""

import json
from collections.abc import Sequence
from zoneinfo import ZoneInfo

import streamlit as st

from collector.client import Client
from collector.contract import Arm, Content, Generation, Pair, Score
from collector.contract.span_json import span_to_document
from dashboard import address, answer_markup, charts, markup, words
from dashboard.divergence import divergence
from dashboard.drawing import draw
from dashboard.messages import answer, calls_tools, messages, reasoning, tools
from dashboard.sections import pair_tables, session_view

_MARKS = {"differences": "Differences", "support": "Support and faults"}


def show(client: Client, pair: Pair, zone: ZoneInfo | None, *, withheld: bool) -> None:
    """Draw the pair; only its numbers if its text is withheld."""
    st.html(
        markup.heading(
            f"{pair.prompt_id} · repeat {pair.repeat} · {pair.cohort or 'no cohort'}", level=2
        )
    )
    if not withheld:
        _show_text(pair)
        session_view.show(client, pair)
    st.html(pair_tables.scores(pair))
    _show_timelines(pair)
    st.html(pair_tables.measurements(pair, zone))
    _show_spans(client, pair)


def _show_text(pair: Pair) -> None:
    given = _content(pair.baseline) or _content(pair.candidate) or Content()
    _show_answers(pair)
    own = pair.baseline is not None and pair.baseline.own_history
    st.html(markup.heading("Prompt of the baseline" if own else "Prompt"))
    prompt = messages(given.input_messages)
    for message in prompt:
        st.html(markup.said(message.role, message.text))
    if not prompt:
        st.html(markup.note("No prompt was recorded: the spans carry no content."))
    _show_material(given)


def _show_material(given: Content) -> None:
    """Draw the material that the answer is scored against, collapsed."""
    context = given.context or ()
    if context:
        with st.expander(f"Context: {words.counted(len(context), 'passage')}"):
            for passage in context:
                st.html(markup.passage(passage))
    offered = tools(given.tool_definitions)
    if offered:
        choice = "" if given.tool_choice is None else f", tool choice {given.tool_choice}"
        with st.expander(markup.label(f"Tools: {words.counted(len(offered), 'tool')}{choice}")):
            for tool in offered:
                st.html(markup.passage(tool))
    for name, value in (("Reference", given.reference), ("Output schema", given.output_schema)):
        if value is not None:
            with st.expander(name):
                st.html(markup.passage(value))


def _show_answers(pair: Pair) -> None:
    texts = [_answer(pair.baseline), _answer(pair.candidate)]
    scores = [
        _with_spans(pair.baseline, pair.baseline_scores),
        _with_spans(pair.candidate, pair.candidate_scores),
    ]
    marked = "differences"
    if any(scores):
        marked = address.choose("Mark", "mark", list(_MARKS), titles=list(_MARKS.values()))
    shown: list[markup.Html | None] = [t if t is None else markup.passage(t) for t in texts]
    if marked == "support":
        st.html(markup.note(answer_markup.LEGEND))
        shown = [
            None if t is None else answer_markup.supported(t, () if s is None else s.spans or ())
            for t, s in zip(texts, scores, strict=True)
        ]
    elif texts[0] is not None and texts[1] is not None:
        split = divergence(texts[0], texts[1])
        shown = list(answer_markup.answers(split))
        st.html(markup.note(_said(split.identical, len(split.common))))
    for column, arm, html in zip(st.columns(2), Arm, shown, strict=True):
        with column:
            side = pair.baseline if arm is Arm.BASELINE else pair.candidate
            st.html(markup.heading(arm.value.capitalize()))
            thought = reasoning(content.output_messages) if (content := _content(side)) else None
            if thought is not None:
                with st.expander("Reasoning"):
                    st.html(markup.passage(thought))
            st.html(html if html is not None else markup.note(_silence(arm, side)))


def _with_spans(side: Generation | None, scores: Sequence[Score]) -> Score | None:
    """Return the first score that lists spans of the answer's text; a call's are not in it."""
    content = _content(side)
    if content is None or calls_tools(content.output_messages):
        return None
    return next((score for score in scores if score.spans), None)


def _show_timelines(pair: Pair) -> None:
    sides = [side for side in (pair.baseline, pair.candidate) if side is not None]
    st.html(markup.heading("Timelines"))
    if not sides:
        return
    draw(charts.timelines(sides), alt="Queue, prefill, first token and decoding by arm")
    st.html(markup.note(" · ".join(_streamed(side) for side in sides)))


def _streamed(side: Generation) -> str:
    arm = "?" if side.arm is None else side.arm.value
    sent = side.stream_chunks
    chunks = "chunks not counted" if sent is None else words.counted(sent, "chunk")
    said = f"{arm}: {chunks}, longest wait {words.milliseconds(side.stream_max_gap_s)}"
    spec = side.speculation
    if spec is None or spec.acceptance_histogram is None:
        return said
    counts = ", ".join(f"{j}: {words.count(n)}" for j, n in enumerate(spec.acceptance_histogram))
    return f"{said}; verify steps by tokens accepted: {counts}"


def _show_spans(client: Client, pair: Pair) -> None:
    if not address.ticked("Raw spans", "spans"):
        return
    for side in (pair.baseline, pair.candidate):
        if side is None or side.arm is None:
            continue
        st.html(markup.link("traces", f"The {side.arm.value}'s whole trace →", _trace(pair, side)))
        for span in client.trace(side.trace_id):
            document = json.dumps(span_to_document(span), indent=2, ensure_ascii=False)
            with st.expander(f"{side.arm.value}: {markup.label(span.name)}"):
                st.html(markup.passage(document))


def _trace(pair: Pair, side: Generation) -> dict[str, str]:
    return {"rollout": pair.rollout, "trace": side.trace_id}


def _said(identical: bool, common: int) -> str:  # noqa: FBT001
    if identical:
        return "Both answers are the same, character for character."
    if common == 0:
        return "The answers differ from their first character on."
    return f"The answers share their first {words.counted(common, 'character')}, then part at ▶."


def _silence(arm: Arm, side: Generation | None) -> str:
    if side is None:
        return f"The {arm.value} never arrived."
    if side.error_type is not None:
        return f"The {arm.value} failed: {side.error_type}."
    return f"The {arm.value} answered, but its span carries no content."


def _content(side: Generation | None) -> Content | None:
    return None if side is None else side.content


def _answer(side: Generation | None) -> str | None:
    content = _content(side)
    return None if content is None else answer(content.output_messages)
