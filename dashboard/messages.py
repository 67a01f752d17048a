"""Chat messages, as JSON in a span, to plain text.

The JSON comes from strangers: what cannot be read is shown as it was sent.
"""

import json
from collections.abc import Iterator
from typing import NamedTuple


class Message(NamedTuple):
    """One message: who said it, and what, as plain text."""

    role: str
    text: str


def messages(document: str | None) -> tuple[Message, ...]:
    """Read `gen_ai.input.messages` or `gen_ai.output.messages`.

    Nothing recorded gives no message. A document that is not a list of messages gives one, with
    the role `unreadable` and the document as its text.
    """
    if document is None:
        return ()
    try:
        loaded = json.loads(document)
    except ValueError:
        loaded = None
    if not isinstance(loaded, list) or not all(isinstance(item, dict) for item in loaded):
        return (Message("unreadable", document),)
    return tuple(
        Message(str(item.get("role", "unknown")), "\n".join(_parts(item))) for item in loaded
    )


def answer(document: str | None) -> str | None:
    """Return the text of all output messages; `None` where no content was recorded."""
    if document is None:
        return None
    return "\n".join(message.text for message in messages(document))


def _parts(message: dict[str, object]) -> Iterator[str]:
    parts = message.get("parts", message.get("content"))
    if isinstance(parts, str):
        yield parts
        return
    for part in parts if isinstance(parts, list) else ():
        yield _part(part)


def _part(part: object) -> str:
    """Return a part's text; a tool call, or any other kind, as JSON."""
    if isinstance(part, str):
        return part
    if isinstance(part, dict):
        text = part.get("content", part.get("text"))
        if part.get("type") in ("text", "reasoning") and isinstance(text, str):
            return text
    return json.dumps(part, ensure_ascii=False, indent=2)
