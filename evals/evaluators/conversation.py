"""The tool calls of a conversation, and the tools' responses."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from collector.contract import Generation
from evals.evaluators.answers import answer_text, json_list
from evals.evaluators.written_calls import WrittenCall, calls_in_text, json_call


@dataclass(frozen=True, slots=True)
class ToolResponse:
    """A tool's response."""

    call: WrittenCall | None
    """The earlier call with the same id, if any."""
    result: object


def answered_calls(generation: Generation) -> tuple[WrittenCall, ...]:
    """Return the tool calls of this answer.

    These are its `tool_call` parts. If it has none, calls are read from its text: JSON
    (`{"name": …, "arguments": …}`, alone, in a list, within prose or between markers such as
    `<tool_call>`) or Python calls (`[f(a=1), g()]`).
    """
    content = generation.content
    messages = content.output_messages if content else None
    calls = tuple(part for part in _parts(messages) if isinstance(part, WrittenCall))
    return calls or calls_in_text(answer_text(generation) or "")


def recorded_calls(generation: Generation) -> list[tuple[str, object]]:
    """Return the name and arguments of each `tool_call` part, even if they cannot be parsed."""
    content = generation.content
    return [
        (str(part.get("name")), part.get("arguments", {}))
        for message in _messages(content.output_messages if content else None)
        for part in _dicts(message.get("parts"))
        if part.get("type") == "tool_call"
    ]


def history(generation: Generation) -> Iterator[WrittenCall | ToolResponse]:
    """Yield the calls and responses of the whole conversation in order; this answer comes last."""
    if generation.content is None:
        return
    by_id: dict[str, WrittenCall] = {}
    for messages in (generation.content.input_messages, generation.content.output_messages):
        for part in _parts(messages):
            if isinstance(part, WrittenCall):
                if part.id is not None:
                    by_id[part.id] = part
                yield part
            else:
                yield ToolResponse(by_id.get(part.id or ""), part.result)


def prompt_transcript(generation: Generation) -> str:
    """Return the text of the input messages, one `role: text` line each."""
    content = generation.content
    lines = []
    for message in _messages(content.input_messages if content else None):
        texts = [p.get("content") for p in _dicts(message.get("parts")) if p.get("type") == "text"]
        lines.append(f"{message.get('role')}: {' '.join(t for t in texts if isinstance(t, str))}")
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _RawResponse:
    id: str | None
    result: object


def _parts(messages: str | None) -> Iterator[WrittenCall | _RawResponse]:
    for message in _messages(messages):
        for part in _dicts(message.get("parts")):
            if part.get("type") == "tool_call" and (call := json_call(part)):
                yield call
            elif part.get("type") == "tool_call_response":
                yield _RawResponse(part.get("id"), part.get("response", part.get("result")))


def _messages(text: str | None) -> list[dict[str, Any]]:  # Any: JSON values
    return _dicts(json_list(text))


def _dicts(value: object) -> list[dict[str, Any]]:  # Any: JSON values
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
