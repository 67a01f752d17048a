"""Convert prompts and answers to the format of the OpenTelemetry GenAI conventions.

Messages are `{"role": …, "parts": [{"type": …}]}`, and tool definitions are flat. Inline data, such
as an image in base64, is dropped; only its kind is kept.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from collector.contract import Content
from engine_adapter.engines.answer import Answer
from engine_adapter.engines.json_fields import JsonObject, objects, text, within

Part = dict[str, Any]  # Any: JSON values


def content_of(asked: JsonObject, answer: Answer | None) -> Content:
    """Return the content of a request's body and of its answer, complete or partial."""
    messages = asked.get("messages")
    listed = messages if isinstance(messages, list) else [{"content": asked.get("prompt")}]
    inputs = [_message(message) for message in listed if isinstance(message, Mapping)]
    tools = [_definition(tool) for tool in objects(asked, "tools")]
    schema = within(asked, "response_format", "json_schema", "schema")
    return Content(
        input_messages=json.dumps(inputs),
        output_messages=None if answer is None else _output(answer),
        output_token_ids=None if answer is None else _ids(answer.token_ids),
        tool_definitions=json.dumps(tools) if tools else None,
        tool_choice=_chosen(asked.get("tool_choice")) if tools else None,
        output_schema=json.dumps(schema, sort_keys=True) if isinstance(schema, Mapping) else None,
    )


def _chosen(choice: object) -> str | None:
    """Return the choice of a tool: the API's word, or JSON that names the tool."""
    return json.dumps(choice) if isinstance(choice, Mapping) else text(choice)


def _output(answer: Answer) -> str | None:
    """Return the output messages as JSON; `None` for an empty answer."""
    if answer.is_empty:
        return None
    parts: list[Part] = []
    if answer.reasoning:
        parts.append({"type": "reasoning", "content": answer.reasoning})
    calls = [_call(call.name, call.arguments, call.id) for call in answer.tool_calls]
    if answer.text or not calls:
        parts.append({"type": "text", "content": answer.text})
    reason = answer.finish_reason or "error"
    said = {"role": "assistant", "parts": [*parts, *calls], "finish_reason": reason}
    return json.dumps([said])


def _ids(token_ids: Sequence[int] | None) -> str | None:
    return None if token_ids is None else ",".join(map(str, token_ids))


def _message(message: JsonObject) -> Part:
    return {"role": text(message, "role") or "user", "parts": list(_parts(message))}


def _parts(message: JsonObject) -> Iterator[Part]:
    thought = text(message, "reasoning_content") or text(message, "reasoning")
    if thought:
        yield {"type": "reasoning", "content": thought}
    content = message.get("content")
    if message.get("role") == "tool":
        yield {
            "type": "tool_call_response",
            "id": text(message, "tool_call_id"),
            "response": _joined(content),
        }
        return
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            yield {"type": "text", "content": part}
        elif part is not None:
            yield _part(part)
    for call in objects(message, "tool_calls"):
        name = text(call, "function", "name")
        if name is not None:
            yield _call(name, within(call, "function", "arguments"), text(call, "id"))


def _part(part: object) -> Part:
    kind = text(part, "type") or "unknown"
    words = text(part, "text")
    if words is not None:
        return {"type": "text", "content": words}
    modality = kind.removeprefix("input_").removesuffix("_url")
    given = within(part, kind)
    url = text(given, "url") or (given if isinstance(given, str) else None)
    if url is not None and not url.startswith("data:"):
        return {"type": "uri", "modality": modality, "uri": url}
    return {"type": "blob", "modality": modality} if given is not None else {"type": kind}


def _joined(content: object) -> object:
    """Return a tool's result, with text parts joined."""
    if not isinstance(content, list):
        return content
    return "".join(text(part, "text") or "" for part in content)


def _call(name: str, arguments: object, id_: str | None) -> Part:
    """Return a call; arguments that are not a JSON object stay unchanged."""
    if isinstance(arguments, str):
        try:
            loaded = json.loads(arguments)
        except (ValueError, RecursionError):
            loaded = None
        arguments = loaded if isinstance(loaded, dict) else arguments
    called: Part = {"type": "tool_call", "id": id_, "name": name, "arguments": arguments}
    return {key: value for key, value in called.items() if value is not None}


def _definition(tool: JsonObject) -> Part:
    """Return a tool definition in the conventions' flat format."""
    kind = text(tool, "type") or "function"
    inner = tool.get(kind)
    return {"type": kind, **inner} if isinstance(inner, Mapping) else dict(tool)
