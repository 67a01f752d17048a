"""The tool calls of a conversation, and the tools' responses."""

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from collector.contract import Generation
from evals.evaluators.answers import NotJsonError, answer_text, json_list, json_value

_FUNCTION_TAG = re.compile(
    r"<function=(?P<name>[\w.-]{1,200})>(?P<arguments>.*?)</function>", re.DOTALL
)
_JSON_START = re.compile(r"[{\[](?=\s*[\"{\[])")
_MOST_VALUES = 200
"""Limit on the JSON values that are parsed in one text."""


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call."""

    name: str
    arguments: Mapping[str, Any]  # Any: JSON values
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Response:
    """A tool's response."""

    call: Call | None
    """The earlier call with the same id, if any."""
    result: object


def answered_calls(generation: Generation) -> tuple[Call, ...]:
    """Return the tool calls of this answer.

    These are its `tool_call` parts. If it has none, calls are read from its text: JSON
    (`{"name": …, "arguments": …}`, alone, in a list, within prose or between markers such as
    `<tool_call>`) or Python calls (`[f(a=1), g()]`).
    """
    content = generation.content
    messages = content.output_messages if content else None
    calls = tuple(part for part in _parts(messages) if isinstance(part, Call))
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


def history(generation: Generation) -> Iterator[Call | Response]:
    """Yield the calls and responses of the whole conversation in order; this answer comes last."""
    if generation.content is None:
        return
    by_id: dict[str, Call] = {}
    for messages in (generation.content.input_messages, generation.content.output_messages):
        for part in _parts(messages):
            if isinstance(part, Call):
                if part.id is not None:
                    by_id[part.id] = part
                yield part
            else:
                yield Response(by_id.get(part.id or ""), part.result)


def prompt_transcript(generation: Generation) -> str:
    """Return the text of the input messages, one `role: text` line each."""
    content = generation.content
    lines = []
    for message in _messages(content.input_messages if content else None):
        texts = [p.get("content") for p in _dicts(message.get("parts")) if p.get("type") == "text"]
        lines.append(f"{message.get('role')}: {' '.join(t for t in texts if isinstance(t, str))}")
    return "\n".join(lines)


def calls_in_text(text: str) -> tuple[Call, ...]:
    """Return the calls in a text: JSON or Python calls alone, marked, or as JSON within prose."""
    try:
        return _calls_of(json_value(text))
    except NotJsonError:
        return _python_calls(text) or _calls_within(text)


def _calls_of(value: object) -> tuple[Call, ...]:
    """Read a JSON value as calls; return none if any part of it is no call."""
    items = value if isinstance(value, list) else [value]
    calls = [_json_call(item) for item in items]
    return tuple(call for call in calls if call) if all(calls) else ()


def _calls_within(text: str) -> tuple[Call, ...]:
    """Return the calls between the markers of Hermes, Llama or Mistral, otherwise those in prose.

    JSON in prose is a call only if it has both a name and arguments.
    """
    named = [(m["name"], m["arguments"]) for m in _FUNCTION_TAG.finditer(text)]
    if named:
        return tuple(
            call
            for name, given in named
            if (call := _json_call({"name": name, "arguments": given}))
        )
    decoder, found, at = json.JSONDecoder(), list[Call](), 0
    for _ in range(_MOST_VALUES):
        match = _JSON_START.search(text, at)
        if match is None:
            break
        try:
            value, at = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            at = match.end()
            continue
        items = value if isinstance(value, list) else [value]
        found += [c for item in items if _is_call(item) and (c := _json_call(item))]
    return tuple(found)


def _is_call(item: object) -> bool:
    if not isinstance(item, dict):
        return False
    inner = item.get("function")
    called = inner if isinstance(inner, dict) else item
    return "name" in called and ("arguments" in called or "parameters" in called)


@dataclass(frozen=True, slots=True)
class _RawResponse:
    id: str | None
    result: object


def _parts(messages: str | None) -> Iterator[Call | _RawResponse]:
    for message in _messages(messages):
        for part in _dicts(message.get("parts")):
            if part.get("type") == "tool_call" and (call := _json_call(part)):
                yield call
            elif part.get("type") == "tool_call_response":
                yield _RawResponse(part.get("id"), part.get("response", part.get("result")))


def _messages(text: str | None) -> list[dict[str, Any]]:  # Any: JSON values
    return _dicts(json_list(text))


def _dicts(value: object) -> list[dict[str, Any]]:  # Any: JSON values
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _json_call(item: object) -> Call | None:
    """Read `{"name": …, "arguments": …}`, bare or inside `{"function": …}` (OpenAI's API)."""
    if not isinstance(item, dict):
        return None
    inner = item.get("function")
    called = inner if isinstance(inner, dict) else item
    name, arguments = called.get("name"), called.get("arguments", called.get("parameters", {}))
    if isinstance(arguments, str):
        try:
            arguments = json_value(arguments) if arguments.strip() else {}
        except NotJsonError:
            return None
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return None
    return Call(name, arguments, item.get("id") if isinstance(item.get("id"), str) else None)


def _python_calls(text: str) -> tuple[Call, ...]:
    source = text.strip().strip("`\n")
    try:
        body = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    nodes = body.elts if isinstance(body, ast.List | ast.Tuple) else [body]
    calls = [_python_call(node) for node in nodes]
    return tuple(call for call in calls if call) if all(calls) else ()


def _python_call(node: ast.expr) -> Call | None:
    if not isinstance(node, ast.Call) or node.args or any(k.arg is None for k in node.keywords):
        return None
    try:
        arguments = {str(k.arg): ast.literal_eval(k.value) for k in node.keywords}
    except (ValueError, TypeError, RecursionError, MemoryError):
        return None
    return Call(ast.unparse(node.func), {k: _tuples_as_lists(v) for k, v in arguments.items()})


def _tuples_as_lists(value: object) -> object:
    """Turn tuples into lists, since JSON has no tuples."""
    if isinstance(value, list | tuple):
        return [_tuples_as_lists(item) for item in value]
    if isinstance(value, dict):
        return {key: _tuples_as_lists(item) for key, item in value.items()}
    return value
