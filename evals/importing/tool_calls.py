"""The Berkeley Function Calling Leaderboard: questions, functions and accepted calls."""

from collections.abc import Mapping
from typing import Any

from evals.evaluators.rules.tool_calls import FIELDS, OPTIONAL
from evals.importing.row import JsonObject, Line, RowError, identity, objects

COHORT = "tool_call"


def bfcl(row: JsonObject) -> Line:
    """Convert a question with functions; the accepted calls, or no call at all, are wanted."""
    id_, tools = identity(row, "id"), objects(row, "function")
    category = str(row.get("category") or id_.rsplit("_", 1)[0])
    dims = {"category": category}
    offered = [{"type": "function", "function": _as_api(tool)} for tool in tools]
    line = {"id": id_, "cohort": COHORT, "messages": _messages(row), "tools": offered, "dims": dims}
    if "irrelevance" in category:
        return line | {"reference": {"kind": "tool_calls", "calls": []}}
    if "relevance" in category:
        return line | {"reference": {"kind": "tool_calls", "calls": "any"}}
    calls = [_call(call, tools) for call in objects(row, "ground_truth")]
    return line | {"reference": {"kind": "tool_calls", "calls": calls, "tools": tools}}


_API_TYPES = {"dict": "object", "float": "number", "tuple": "array"}
"""JSON Schema's names of the leaderboard's Python types; `any` is left out instead."""


def _as_api(tool: JsonObject) -> JsonObject:
    """Convert a function for chat APIs: no dots in its name, JSON Schema types."""
    name = str(tool.get("name", "")).replace(".", "_")
    return {**tool, "name": name, "parameters": _as_schema(tool.get("parameters", {}))}


def _as_schema(given: Any) -> Any:  # Any: JSON values
    if isinstance(given, list):
        return [_as_schema(item) for item in given]
    if not isinstance(given, Mapping):
        return given
    schema = {key: _as_schema(value) for key, value in given.items()}
    kind = schema.get("type")
    if isinstance(kind, str):
        schema["type"] = _API_TYPES.get(kind, kind)
        if kind.lower() == "any":
            del schema["type"]
    return schema


def _messages(row: JsonObject) -> list[JsonObject]:
    turns = row.get("question")
    if not isinstance(turns, list) or len(turns) != 1 or not isinstance(turns[0], list):
        raise RowError("question: wanted one turn, a list with one list of messages")
    messages = objects({"question": turns[0]}, "question")
    for message in messages:
        if not isinstance(message.get("role"), str) or not isinstance(message.get("content"), str):
            raise RowError("question: wanted messages with a role and a content")
    return [{"role": m["role"], "content": m["content"]} for m in messages]


def _call(call: JsonObject, tools: list[JsonObject]) -> JsonObject:
    if len(call) != 1:
        raise RowError(f"ground_truth: wanted one function a call, got {len(call)}")
    ((name, arguments),) = call.items()
    if not isinstance(arguments, Mapping):
        raise RowError(f"ground_truth.{name}: wanted an object of arguments")
    tool = next((t for t in tools if t.get("name") == name), {})
    properties = tool.get("parameters", {}).get("properties", {})
    accepted = {
        key: _accepted(options, properties.get(key, {})) for key, options in arguments.items()
    }
    optional = [key for key, options in arguments.items() if "" in options]
    return {"name": name, "arguments": accepted, "optional": optional}


def _accepted(options: Any, schema: JsonObject) -> list[Any]:  # Any: JSON values
    """Return the accepted values of an argument.

    The leaderboard marks an optional argument with an empty string among its values. The empty
    string is kept as a value only for arguments of type string.
    """
    if not isinstance(options, list):
        raise RowError("ground_truth: wanted a list of accepted values for each argument")
    kept = [o for o in options if o != "" or schema.get("type") == "string"]
    if schema.get("type") == "dict":
        return [_fields(option) for option in kept]
    items = schema.get("items")
    if isinstance(items, Mapping) and items.get("type") == "dict":
        return [
            [_fields(o) for o in option] if isinstance(option, list) else option for option in kept
        ]
    return kept


def _fields(option: Any) -> Any:  # Any: JSON values
    """Convert an accepted object in which each key lists its own accepted values."""
    if not isinstance(option, Mapping) or not all(isinstance(v, list) for v in option.values()):
        return option
    return {
        FIELDS: dict(option),
        OPTIONAL: [key for key, values in option.items() if "" in values],
    }
