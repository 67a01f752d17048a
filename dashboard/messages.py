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
    reasoning: str = ""
    """What a model thought before it said it."""


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
        Message(str(item.get("role", "unknown")), "\n".join(_parts(item)), _thought(item))
        for item in loaded
    )


def answer(document: str | None) -> str | None:
    """Return the text of all output messages; `None` where no content was recorded.

    Tool calls are among it, in words; what the model thought before is not.
    """
    if document is None:
        return None
    return "\n".join(message.text for message in messages(document))


def reasoning(document: str | None) -> str | None:
    """Return what the model thought before it answered; `None` if nothing of it was recorded."""
    thought = [message.reasoning for message in messages(document) if message.reasoning]
    return "\n".join(thought) or None


def tools(document: str | None) -> tuple[str, ...]:
    """Return the tools that `gen_ai.tool.definitions` lists, each as JSON."""
    if document is None:
        return ()
    try:
        loaded = json.loads(document)
    except ValueError:
        return (document,)
    listed = loaded if isinstance(loaded, list) else [loaded]
    return tuple(_dump(tool) for tool in listed)


def _is_reasoning(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") in ("reasoning", "thinking")


def _parts(message: dict[str, object]) -> Iterator[str]:
    parts = message.get("parts", message.get("content"))
    if isinstance(parts, str):
        yield parts
        return
    for part in parts if isinstance(parts, list) else ():
        if not _is_reasoning(part):
            yield _part(part)


def _thought(message: dict[str, object]) -> str:
    parts = message.get("parts", message.get("content"))
    listed = parts if isinstance(parts, list) else []
    return "\n".join(_part(part) for part in listed if _is_reasoning(part))


def _part(part: object) -> str:
    """Return a part's text; a tool call as its name and arguments; any other kind as JSON."""
    if isinstance(part, str):
        return part
    if isinstance(part, dict):
        text = part.get("content", part.get("text"))
        if part.get("type") in ("text", "reasoning", "thinking") and isinstance(text, str):
            return text
        if part.get("type") == "tool_call" and isinstance(part.get("name"), str):
            return f"→ {part['name']} {_spelled(part.get('arguments'))}"
        if part.get("type") == "tool_call_response":
            return f"← {_spelled(part.get('response', part.get('result')))}"
    return _dump(part)


def _spelled(value: object) -> str:
    return value if isinstance(value, str) else _dump(value)


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)
