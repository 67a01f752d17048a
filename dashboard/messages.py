"""Convert a span's chat messages from JSON to plain text.

The JSON is untrusted: if it cannot be parsed, it is shown as it was sent.
"""

import json
from collections.abc import Iterator
from typing import NamedTuple


class PlainMessage(NamedTuple):
    """One message as plain text."""

    role: str
    text: str
    reasoning: str = ""
    """The model's reasoning before the text."""


def messages(document: str | None) -> tuple[PlainMessage, ...]:
    """Parse `gen_ai.input.messages` or `gen_ai.output.messages`; empty if none were recorded.

    A document that is not a list of messages gives a single message with the role `unreadable` and
    the document as its text.
    """
    if document is None:
        return ()
    try:
        loaded = json.loads(document)
    except ValueError:
        loaded = None
    if not isinstance(loaded, list) or not all(isinstance(item, dict) for item in loaded):
        return (PlainMessage("unreadable", document),)
    return tuple(
        PlainMessage(str(item.get("role", "unknown")), "\n".join(_parts(item)), _reasoning(item))
        for item in loaded
    )


def answer(document: str | None) -> str | None:
    """Return the text of all output messages; `None` if no content was recorded.

    It includes tool calls, and not the reasoning.
    """
    if document is None:
        return None
    return "\n".join(message.text for message in messages(document))


def reasoning(document: str | None) -> str | None:
    """Return the model's reasoning; `None` if none was recorded."""
    thought = [message.reasoning for message in messages(document) if message.reasoning]
    return "\n".join(thought) or None


def calls_tools(document: str | None) -> bool:
    """Return whether the output messages call a tool."""
    try:
        loaded = json.loads(document or "null")
    except ValueError:
        return False
    listed = [item for item in loaded if isinstance(item, dict)] if isinstance(loaded, list) else []
    parts = [part for item in listed for part in _listed(item.get("parts"))]
    return any(isinstance(part, dict) and part.get("type") == "tool_call" for part in parts)


def tools(document: str | None) -> tuple[str, ...]:
    """Return the tools in `gen_ai.tool.definitions`, each as JSON."""
    if document is None:
        return ()
    try:
        loaded = json.loads(document)
    except ValueError:
        return (document,)
    listed = loaded if isinstance(loaded, list) else [loaded]
    return tuple(_dump(tool) for tool in listed)


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


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


def _reasoning(message: dict[str, object]) -> str:
    parts = message.get("parts", message.get("content"))
    return "\n".join(_part(part) for part in _listed(parts) if _is_reasoning(part))


def _part(part: object) -> str:
    """Return a part's text; a tool call as its name and arguments; any other kind as JSON."""
    if isinstance(part, str):
        return part
    if isinstance(part, dict):
        text = part.get("content", part.get("text"))
        if part.get("type") in ("text", "reasoning", "thinking") and isinstance(text, str):
            return text
        if part.get("type") == "tool_call" and isinstance(part.get("name"), str):
            return f"→ {part['name']} {_as_text(part.get('arguments'))}"
        if part.get("type") == "tool_call_response":
            return f"← {_as_text(part.get('response', part.get('result')))}"
    return _dump(part)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else _dump(value)


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)
