"""Chat messages as plain text."""

import json

import pytest

from dashboard.messages import PlainMessage, answer, calls_tools, messages, reasoning, tools


def test_text_parts_are_joined() -> None:
    """A message is its role and the text of its parts."""
    document = [
        {"role": "system", "parts": [{"type": "text", "content": "Be brief."}]},
        {
            "role": "user",
            "parts": [{"type": "text", "content": "a"}, {"type": "text", "content": "b"}],
        },
    ]
    assert messages(json.dumps(document)) == (
        PlainMessage("system", "Be brief."),
        PlainMessage("user", "a\nb"),
    )


def test_a_tool_call_is_shown_by_name_and_arguments() -> None:
    """Arguments that are no JSON are shown as they were spelled; so is a result."""
    parts = [
        {"type": "tool_call", "name": "lookup", "arguments": {"id": "é"}},
        {"type": "tool_call", "name": "lookup", "arguments": '{"id": '},
        {"type": "tool_call_response", "id": "c", "response": "found"},
    ]
    shown = answer(json.dumps([{"role": "assistant", "parts": parts}]))
    assert shown == '→ lookup {\n  "id": "é"\n}\n→ lookup {"id": \n← found'


def test_calls_are_told_from_text() -> None:
    """By the parts' type; what cannot be read calls nothing."""
    call = {"type": "tool_call", "name": "lookup", "arguments": {}}
    said = {"type": "text", "content": "tool_call"}
    for parts, calls in (([said, call], True), ([said], False), ([], False)):
        assert calls_tools(json.dumps([{"role": "assistant", "parts": parts}])) is calls
    assert [calls_tools(text) for text in (None, "[", '["x", {"parts": 3}]', "3")] == [False] * 4


def test_another_part_is_shown_as_json() -> None:
    """A part that is neither text nor a call is shown as it was sent."""
    part = {"type": "uri", "modality": "image", "uri": "https://a.example/é.png"}
    shown = answer(json.dumps([{"role": "assistant", "parts": [part]}]))
    assert shown == json.dumps(part, ensure_ascii=False, indent=2)


def test_reasoning_is_apart_from_the_answer() -> None:
    """It is shown by itself, and differences of answers do not count it."""
    parts = [{"type": "reasoning", "content": "Hm."}, {"type": "text", "content": "Yes."}]
    document = json.dumps([{"role": "assistant", "parts": parts}])
    assert (answer(document), reasoning(document)) == ("Yes.", "Hm.")
    assert reasoning(json.dumps([{"role": "assistant", "parts": parts[1:]}])) is None


def test_tools_are_shown_one_by_one() -> None:
    """Definitions that cannot be read are shown as they were sent."""
    assert tools('[{"name": "a"}, {"name": "b"}]') == ('{\n  "name": "a"\n}', '{\n  "name": "b"\n}')
    assert tools("not json") == ("not json",)
    assert tools(None) == ()


@pytest.mark.parametrize("document", ["not json", '{"role": "user"}', '["text"]', "3"])
def test_what_cannot_be_read_is_shown_as_sent(document: str) -> None:
    """A stranger's document is never an error."""
    assert messages(document) == (PlainMessage("unreadable", document),)


def test_plain_content_is_read() -> None:
    """The older shape, with `content` in place of parts, is read too."""
    assert messages('[{"role": "user", "content": "hi"}, {}]') == (
        PlainMessage("user", "hi"),
        PlainMessage("unknown", ""),
    )


def test_no_content_is_no_answer() -> None:
    """Nothing recorded is None, an empty list an empty answer."""
    assert [answer(None), answer("[]"), messages(None)] == [None, "", ()]
