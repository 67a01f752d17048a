"""Conversion of messages flattened into attributes to the JSON list of OTel GenAI."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from collector.contract import AttributeValue
from collector.dialects.translation import load_json

Tree = dict[str, Any]  # Any: a subtree or an attribute's value
_MAX_DIGITS = 9  # an index is a small number; int() refuses very long ones


def flattened(text: Mapping[str, AttributeValue], prefix: str) -> tuple[Tree, ...]:
    """Return the attribute trees under `{prefix}.{index}.`, ordered by index."""
    root: Tree = {}
    for name, value in text.items():
        if name.startswith(prefix + ".") and value is not None:
            _insert(root, name.removeprefix(prefix + ".").split("."), value)
    return tuple(_by_index(root))


def messages_json(messages: tuple[Tree, ...]) -> str | None:
    """Return messages of `role`, `content`, `contents` and `tool_calls` as JSON; None if none."""
    written = [message for message in map(_message, messages) if message]
    return json.dumps(written, ensure_ascii=False) if written else None


def text_json(role: str, *texts: AttributeValue) -> str | None:
    """Return one message per text as JSON; None if no text is a string."""
    return messages_json(tuple({"role": role, "content": text} for text in texts))


def subtree(tree: Tree, *path: str) -> Tree:
    """Return the subtree at the path; empty if there is none or a plain value."""
    for key in path:
        found = tree.get(key)
        tree = found if isinstance(found, dict) else {}
    return tree


def _insert(tree: Tree, path: list[str], value: AttributeValue) -> None:
    *branches, leaf = path
    for key in branches:
        below = tree.setdefault(key, {})
        if not isinstance(below, dict):
            return  # one attribute's name is a prefix of another's: keep the first one
        tree = below
    tree.setdefault(leaf, value)


def _by_index(tree: Tree) -> Iterator[Tree]:
    indices = (key for key in tree if key.isdecimal() and len(key) <= _MAX_DIGITS)
    return (tree[key] for key in sorted(indices, key=int) if isinstance(tree[key], dict))


def _message(tree: Tree) -> Tree:
    role = tree.get("role")
    parts = list(_parts(tree))
    if not parts:
        return {}
    message: Tree = {"role": role} if isinstance(role, str) else {}
    message["parts"] = parts
    if isinstance(reason := tree.get("finish_reason"), str):
        message["finish_reason"] = reason
    return message


def _parts(tree: Tree) -> Iterator[Tree]:
    content = tree.get("content")
    if isinstance(content, str):
        if isinstance(call_id := tree.get("tool_call_id"), str):
            yield {"type": "tool_call_response", "id": call_id, "response": content}
        else:
            yield {"type": "text", "content": content}
    for item in _by_index(subtree(tree, "contents")):
        part = subtree(item, "message_content")
        if isinstance(text := part.get("text"), str):
            yield {"type": "text", "content": text}
        elif isinstance(uri := subtree(part, "image", "image").get("url"), str):
            yield {"type": "uri", "modality": "image", "uri": uri}
    for call in _by_index(subtree(tree, "tool_calls")):
        yield from _tool_call(subtree(call, "tool_call") or call)


def _tool_call(call: Tree) -> Iterator[Tree]:
    function = subtree(call, "function") or call
    if not isinstance(name := function.get("name"), str):
        return
    part: Tree = {"type": "tool_call", "name": name}
    if isinstance(call_id := call.get("id"), str):
        part["id"] = call_id
    if isinstance(arguments := function.get("arguments"), str):
        loaded = load_json(arguments)
        part["arguments"] = loaded if isinstance(loaded, dict) else arguments
    yield part
