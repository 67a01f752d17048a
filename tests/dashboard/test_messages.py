"""Chat messages as plain text."""

import json

import pytest

from dashboard.messages import Message, answer, messages


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
        Message("system", "Be brief."),
        Message("user", "a\nb"),
    )


def test_a_tool_call_is_shown_as_json() -> None:
    """A part that is no text is shown as it was sent."""
    call = {"type": "tool_call", "name": "lookup", "arguments": {"id": "é"}}
    shown = answer(json.dumps([{"role": "assistant", "parts": [call]}]))
    assert shown == json.dumps(call, ensure_ascii=False, indent=2)


@pytest.mark.parametrize("document", ["not json", '{"role": "user"}', '["text"]', "3"])
def test_what_cannot_be_read_is_shown_as_sent(document: str) -> None:
    """A stranger's document is never an error."""
    assert messages(document) == (Message("unreadable", document),)


def test_plain_content_is_read() -> None:
    """The older shape, with `content` in place of parts, is read too."""
    assert messages('[{"role": "user", "content": "hi"}, {}]') == (
        Message("user", "hi"),
        Message("unknown", ""),
    )


def test_no_content_is_no_answer() -> None:
    """Nothing recorded is None, an empty list an empty answer."""
    assert [answer(None), answer("[]"), messages(None)] == [None, "", ()]
