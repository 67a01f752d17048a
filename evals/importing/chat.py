"""MT-Bench, Spec-Bench and logs of OpenAI's API: conversations."""

import json

from evals.importing.row import JsonObject, Line, RowError, identity, objects, text, texts


def bench(row: JsonObject) -> Line:
    """Take a question's first turn: a second one would depend on the answer to it."""
    turns = texts(row, "turns")
    if not turns:
        raise RowError("turns: is empty")
    category = row.get("category")
    cohort = category if isinstance(category, str) and category else "chat"
    return {"id": identity(row, "question_id", "id"), "cohort": cohort, "prompt": turns[0]}


def openai_log(row: JsonObject, number: int) -> Line:
    """Take a request: of a batch's input, of a log of requests, or the bare body.

    The cohort is the metadata's `cohort`, else `chat`, or `tool_call` where tools were given.
    """
    body = next((row[k] for k in ("body", "request") if isinstance(row.get(k), dict)), row)
    tools = objects(body, "tools") if body.get("tools") else []
    metadata = body.get("metadata")
    named = metadata.get("cohort") if isinstance(metadata, dict) else None
    cohort = named if isinstance(named, str) and named else "tool_call" if tools else "chat"
    ids = ("custom_id", "id", "request_id")
    id_ = identity(row, *ids) if any(key in row for key in ids) else f"request-{number}"
    line: Line = {"id": id_, "cohort": cohort}
    line["messages"] = [_message(message) for message in objects(body, "messages")]
    if not line["messages"]:
        raise RowError("messages: is empty")
    limit = body.get("max_completion_tokens", body.get("max_tokens"))
    if isinstance(limit, int) and limit > 0:
        line["max_tokens"] = limit
    for key in _PARAMETERS:
        if body.get(key) is not None:
            line[key] = body[key]
    return line


_PARAMETERS = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "frequency_penalty",
    "presence_penalty",
    "logit_bias",
    "seed",
    "stop",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "response_format",
    "reasoning_effort",
    "chat_template_kwargs",
)
"""What of a logged request is asked again, by the same names; its model is the route's."""
_OF_A_MESSAGE = (
    "content",
    "name",
    "tool_calls",
    "tool_call_id",
    "reasoning_content",
    "reasoning",
    "refusal",
)


def _message(message: JsonObject) -> JsonObject:
    """Take a message as it was sent: content parts, calls of tools, their results."""
    kept = {key: message[key] for key in _OF_A_MESSAGE if message.get(key) is not None}
    if not kept.keys() & {"content", "tool_calls", "refusal"}:
        raise RowError("messages: one has neither a content nor tool calls")
    return {"role": text(message, "role"), **kept}


def json_schema_bench(row: JsonObject) -> Line:
    """Answer with JSON that a schema allows."""
    given = row.get("json_schema", row.get("schema"))
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError as exc:
            raise RowError(f"json_schema: is not JSON: {exc}") from exc
    if not isinstance(given, dict):
        raise RowError("json_schema: wanted a schema, as an object or as JSON")
    prompt = f"Answer with one JSON value that this JSON Schema allows.\n{json.dumps(given)}"
    id_ = identity(row, "unique_id", "id")
    return {"id": id_, "cohort": "json", "prompt": prompt, "schema": given}
