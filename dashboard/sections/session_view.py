"""The session of a pair, turn by turn: what the user sent, and both arms' answers.

Everything here was written by models or by strangers: it is shown as plain text, never as markup.
"""

from collections.abc import Mapping, Sequence

import streamlit as st

from collector.client import Client
from collector.contract import Arm, Generation, Pair, Span, decode, is_generation
from dashboard import markup, words
from dashboard.messages import PlainMessage, answer, messages

SHOWN = 100
"""The most turns that are drawn; the trace has them all."""
_OWN = (
    "Each arm continues from its own answers, so the arms' prompts differ. Only the session's last "
    "answers are a pair."
)
_RECORDED = "Both arms get each turn after the recorded answers."
Turns = Mapping[int, Generation]


def show(client: Client, pair: Pair) -> None:
    """Draw the turns in the traces of the pair's sides; nothing unless there are several."""
    sides = {Arm.BASELINE: pair.baseline, Arm.CANDIDATE: pair.candidate}
    found = {arm: _turns(client, side) for arm, side in sides.items()}
    numbers = sorted({number for turns in found.values() for number in turns})
    if len(numbers) < 2:
        return
    one = pair.baseline or pair.candidate
    name = "" if one is None else one.conversation_id or ""
    st.html(markup.heading(f"Session {name}: {words.counted(len(numbers), 'turn')}"))
    own = any(side is not None and side.own_history for side in sides.values())
    st.html(markup.note(_OWN if own else _RECORDED))
    for number in numbers[:SHOWN]:
        here = one is not None and number == one.turn
        with st.expander(f"Turn {number}{', this pair' if here else ''}", expanded=not here):
            _show_turn([found[arm].get(number) for arm in Arm])
    if len(numbers) > SHOWN:
        st.html(markup.note(f"The first {SHOWN} turns; the trace has all."))


def _turns(client: Client, side: Generation | None) -> Turns:
    """Return the turns of a side's session by their number."""
    if side is None or side.conversation_id is None or side.turn is None:
        return {}
    return turns_of(client.trace(side.trace_id), side.conversation_id)


def turns_of(spans: Sequence[Span], session: str) -> Turns:
    """Return the generations of a session among a trace's spans, by their number."""
    decoded = (decode(span).generation for span in spans if is_generation(span))
    return {g.turn: g for g in decoded if g.turn is not None and g.conversation_id == session}


def _show_turn(sides: Sequence[Generation | None]) -> None:
    for message in next((new_messages(side) for side in sides if side is not None), ()):
        st.html(markup.said(message.role, message.text))
    for column, arm, side in zip(st.columns(2), Arm, sides, strict=True):
        with column:
            st.html(markup.note(arm.value.capitalize()))
            text = None if side is None else _answer(side)
            st.html(markup.note(_silence(side)) if text is None else markup.passage(text))


def new_messages(side: Generation) -> Sequence[PlainMessage]:
    """Return the messages that a turn adds: those after the last answer in its prompt."""
    given = messages(None if side.content is None else side.content.input_messages)
    roles = [message.role for message in given]
    last = len(roles) - 1 - roles[::-1].index("assistant") if "assistant" in roles else -1
    return given[last + 1 :]


def _answer(side: Generation) -> str | None:
    return None if side.content is None else answer(side.content.output_messages)


def _silence(side: Generation | None) -> str:
    if side is None:
        return "Not asked, or not stored."
    if side.error_type is not None:
        return f"Failed: {side.error_type}."
    return "Answered, but its span carries no content."
