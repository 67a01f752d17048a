"""The pair explorer: the two answers to one prompt, side by side.

Everything here was written by models or by strangers: it is shown as plain text, never as markup.
"""

from collections.abc import Sequence
from zoneinfo import ZoneInfo

import streamlit as st

from collector.client import Client
from collector.contract import Arm, Content, Generation, Pair
from dashboard import markup, words
from dashboard.divergence import divergence
from dashboard.messages import answer, messages
from dashboard.pair_list import PairLine, fetch, pair_lines
from dashboard.sections import pair_tables


def show(
    client: Client, address: str, rollout: str, cohort: str | None, zone: ZoneInfo | None
) -> None:
    """Draw the list of pairs and the chosen one; the choice is kept in the address bar."""
    lines = pair_lines(client, address, rollout)
    if cohort is not None:
        lines = [line for line in lines if line.cohort == cohort]
    if not lines:
        st.html(markup.note("No pair here yet."))
        return
    regressed = len([line for line in lines if line.regressed])
    st.html(
        markup.note(
            f"{words.counted(len(lines), 'pair')}, regressions first: in "
            f"{words.count(regressed)} the candidate scored lower on some metric."
        )
    )
    line = _choose(lines, f"pair {rollout} {cohort}")
    pair = fetch(client, rollout, line)
    if pair is None:
        st.html(markup.note("This pair is no longer in the collector: choose another."))
        return
    _show_pair(pair, zone)


def _choose(lines: Sequence[PairLine], key: str) -> PairLine:
    asked = (st.query_params.get("prompt"), st.query_params.get("repeat"))
    keys = [(line.prompt_id, str(line.repeat)) for line in lines]
    chosen: int = st.selectbox(
        "Pair",
        options=range(len(lines)),
        index=keys.index(asked) if asked in keys else 0,
        format_func=lambda position: lines[position].label,
        key=key,
    )
    prompt_id, repeat = keys[chosen]
    if (prompt_id, repeat) != asked:
        st.query_params.update({"prompt": prompt_id, "repeat": repeat})
    return lines[chosen]


def _show_pair(pair: Pair, zone: ZoneInfo | None) -> None:
    given = _content(pair.baseline) or _content(pair.candidate) or Content()
    st.html(markup.heading("Prompt"))
    prompt = messages(given.input_messages)
    for message in prompt:
        st.html(markup.said(message.role, message.text))
    if not prompt:
        st.html(markup.note("No prompt was recorded: the spans carry no content."))
    _show_material(given)
    st.html(markup.heading("Answers"))
    _show_answers(pair)
    st.html(pair_tables.scores(pair))
    st.html(pair_tables.measurements(pair, zone))


def _show_material(given: Content) -> None:
    """Draw what the answer is judged against, folded away."""
    context = given.context or ()
    if context:
        with st.expander(f"Context: {words.counted(len(context), 'passage')}"):
            for passage in context:
                st.html(markup.passage(passage))
    for name, value in (("Reference", given.reference), ("Output schema", given.output_schema)):
        if value is not None:
            with st.expander(name):
                st.html(markup.passage(value))


def _show_answers(pair: Pair) -> None:
    texts = [_answer(pair.baseline), _answer(pair.candidate)]
    shown: list[markup.Html | None] = [t if t is None else markup.passage(t) for t in texts]
    if texts[0] is not None and texts[1] is not None:
        split = divergence(texts[0], texts[1])
        shown = list(markup.answers(split))
        st.html(markup.note(_said(split.identical, len(split.common))))
    for column, arm, html in zip(st.columns(2), Arm, shown, strict=True):
        with column:
            side = pair.baseline if arm is Arm.BASELINE else pair.candidate
            st.html(markup.heading(arm.value.capitalize()))
            st.html(html if html is not None else markup.note(_silence(arm, side)))


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
