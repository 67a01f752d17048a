"""What rules ask of a request, read from the bodies of the OpenAI API and from strange ones."""

import json
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine_adapter.router.decision import RequestFacts
from engine_adapter.router.facts import facts_of
from engine_adapter.router.request_edit import document_of

CHAT = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "image_url"}]},
    ],
    "max_completion_tokens": 30,
    "max_tokens": 99,
    "temperature": 0,
    "stream": True,
    "user": "u1",
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
KEYS = st.sampled_from(
    ["model", "messages", "input", "prompt", "max_tokens", "temperature", "tools", "text", "user",
     "stream", "response_format", "instructions", "content", "guided_json"]
)  # fmt: skip


def test_a_chat_completion() -> None:
    """Every fact of it is read; names of headers sink."""
    assert document_of(json.dumps(CHAT).encode()) == CHAT
    assert facts_of("/chat/completions", CHAT, {"X-Session-Id": "S"}, 3) == RequestFacts(
        path="/chat/completions",
        model="m",
        stream=True,
        max_tokens=30,
        input_characters=11,
        temperature=0.0,
        user="u1",
        headers={"x-session-id": "S"},
        concurrency=3,
    )


@pytest.mark.parametrize(
    ("body", "characters"),
    [
        ({"prompt": "four"}, 4),
        ({"prompt": ["four", "five5"]}, 9),
        ({"prompt": [1, 2, 3]}, None),
        ({"input": "four"}, 4),
        ({"input": [{"role": "user", "content": [{"type": "input_text", "text": "abc"}]}],
          "instructions": "de"}, 5),
        ({"messages": [{"role": "assistant", "content": None, "tool_calls": []}]}, None),
        ({"messages": [{"role": "user", "content": ""}]}, 0),
    ],
)  # fmt: skip
def test_the_length_of_the_input(body: dict[str, Any], characters: int | None) -> None:
    """All texts count, of each API; token ids have no characters, which is not 0 of them."""
    assert facts_of("/x", body, {}, 0).input_characters == characters


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ({"response_format": {"type": "json_object"}}, True),
        ({"response_format": {"type": "json_schema", "json_schema": {}}}, True),
        ({"response_format": {"type": "text"}}, False),
        ({"text": {"format": {"type": "json_schema"}}}, True),
        ({"guided_json": {"type": "object"}}, True),
        ({"response_format": "json"}, False),
        ({}, False),
    ],
)
def test_json_mode(body: dict[str, Any], wanted: bool) -> None:
    """Each way to ask for JSON is known."""
    assert facts_of("/x", body, {}, 0).json_mode is wanted


@pytest.mark.parametrize(
    ("text", "code", "passages"),
    [
        ("Why is the sky blue?", False, False),
        ("Define class and import taxes in words.", False, False),
        ("Fix this:\n```python\nx = 1\n```", True, False),
        ("What is wrong?\n  def f(x):\n    return", True, False),
        ("Context:\nThe order left on Monday.\n\nWhen did it leave?", False, True),
        ("<documents><document id=1>…</document></documents> Who?", False, True),
        ("### Passage 2: it rains", False, True),
        ("In the context of history, who won?", False, False),
    ],
)
def test_code_and_passages_are_told_by_their_marks(text: str, code: bool, passages: bool) -> None:
    """Fences, first words of lines, and headings tell; words within a sentence do not."""
    facts = facts_of("/x", {"messages": [{"content": text}]}, {}, 0)
    assert (facts.code, facts.passages) == (code, passages)


def test_only_the_end_of_a_long_input_is_looked_at() -> None:
    """Marks before the last 16,000 characters do not count, and all characters are counted."""
    early = {"messages": [{"content": "```"}, {"content": "x" * 20_000}]}
    facts = facts_of("/x", early, {}, 0)
    assert (facts.code, facts.input_characters) == (False, 20_003)
    late = {"messages": [{"content": "x" * 20_000}, {"content": "```"}]}
    assert facts_of("/x", late, {}, 0).code


@pytest.mark.parametrize(
    ("key", "value"),
    [("max_tokens", True), ("max_tokens", "9"), ("max_tokens", 9.5), ("temperature", "0"),
     ("temperature", True), ("model", 7), ("model", ""), ("user", {})],
)  # fmt: skip
def test_what_is_of_another_type_is_unknown(key: str, value: Any) -> None:
    """A value of a wrong type is as good as none; the engine will say so."""
    names = {"max_tokens": "max_tokens", "temperature": "temperature", "model": "model"}
    assert getattr(facts_of("/x", {key: value}, {}, 0), names.get(key, "user")) is None


def test_no_tokens_at_all_is_a_number() -> None:
    """`max_tokens: 0` is 0, not unknown."""
    assert facts_of("/x", {"max_completion_tokens": 0, "max_tokens": 5}, {}, 0).max_tokens == 0


def encoded(document: object) -> bytes:
    return json.dumps(document).encode()


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(body=st.binary() | JSON.map(encoded) | st.dictionaries(KEYS, JSON).map(encoded))
def test_no_body_is_too_strange(body: bytes) -> None:
    """Whatever object is sent gives facts, none of them NaN."""
    facts = facts_of("/x", document_of(body) or {}, {}, 0)
    assert facts.temperature is None or not math.isnan(facts.temperature)


@pytest.mark.parametrize(
    "body", [b"[" * 200_000, b'{"temperature": 1e999}', b'{"temperature": NaN}', b"\xff", b""]
)
def test_bytes_that_no_parser_likes(body: bytes) -> None:
    """Nesting beyond the stack, numbers beyond floats and no text at all give empty facts."""
    facts = facts_of("/x", document_of(body) or {}, {}, 0)
    assert (facts.model, facts.input_characters, facts.temperature) == (None, None, None)
