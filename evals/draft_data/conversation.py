"""A stored generation as a conversation in the chat-completions form, which trainers read.

speculators (`prepare_data.py`) and SpecForge read JSON lines with `conversations`, a list of
messages with `role` and `content`, and `tools`.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

Message = dict[str, Any]  # Any: JSON values
_JsonObject = Mapping[str, Any]  # Any: JSON values


class NoConversationError(ValueError):
    """A generation that no draft can be trained on; the message says why."""


def conversation(inputs: str | None, outputs: str | None) -> list[Message]:
    """Return the messages of a prompt and its answer, both as the GenAI conventions store them.

    Raises `NoConversationError` if text is not stored, was redacted, is no text at all (an image),
    or if the answer is empty.
    """
    if inputs is None or outputs is None:
        raise NoConversationError("its text is not stored")
    if "[redacted:" in inputs or "[redacted:" in outputs:
        raise NoConversationError("its text is redacted")
    asked = [one for message in _objects(inputs) for one in _messages(message)]
    answer = [one for message in _objects(outputs)[:1] for one in _messages(message)]
    if not asked or not any(one.get("content") or one.get("tool_calls") for one in answer):
        raise NoConversationError("it has no prompt, or no answer")
    return [*asked, *answer]


def tools(definitions: str | None) -> str | None:
    """Return tool definitions in the chat-completions form, as JSON; `None` without any."""
    if definitions is None:
        return None
    found = [_tool(one) for one in _objects(definitions)]
    return json.dumps(found, ensure_ascii=False) if found else None


def _tool(definition: _JsonObject) -> Message:
    kind = str(definition.get("type") or "function")
    return {"type": kind, kind: {k: v for k, v in definition.items() if k != "type"}}


def _objects(text: str) -> list[_JsonObject]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise NoConversationError("its text is not JSON") from exc
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise NoConversationError("its text is no list of messages")
    return found


def _messages(message: _JsonObject) -> Iterable[Message]:
    """Yield a message; a tool's responses are messages of their own."""
    role, said, thought = _role(message), list[str](), list[str]()
    calls = list[Message]()
    for part in message.get("parts") or ():
        match part:
            case {"type": "text", "content": str(text)}:
                said.append(text)
            case {"type": "reasoning", "content": str(text)}:
                thought.append(text)
            case {"type": "tool_call", "name": str()}:
                calls.append(_call(part))
            case {"type": "tool_call_response"}:
                yield _response(part)
            case _:
                raise NoConversationError("a part of it is no text")
    if said or calls or thought:
        plain: Message = {"role": role, "content": "".join(said)}
        more = {"reasoning_content": "".join(thought), "tool_calls": calls}
        yield plain | {key: value for key, value in more.items() if value}


def _role(message: _JsonObject) -> str:
    """Return the message's role; trainers take one that they do not know for the assistant's."""
    role = str(message.get("role") or "user")
    return "system" if role == "developer" else role


def _call(part: _JsonObject) -> Message:
    arguments = part.get("arguments", {})
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    call: Message = {"type": "function", "function": {"name": part["name"], "arguments": text}}
    return call if part.get("id") is None else {"id": part["id"], **call}


def _response(part: _JsonObject) -> Message:
    given = part.get("response", part.get("result"))
    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    named = {} if part.get("id") is None else {"tool_call_id": part["id"]}
    return {"role": "tool", **named, "content": text}
