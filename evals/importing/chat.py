"""Conversations: MT-Bench, Spec-Bench, logs of OpenAI's API, JSONSchemaBench."""

import json

from evals.importing.row import JsonObject, Line, RowError, identity, objects, text, texts


def bench(row: JsonObject) -> Line:
    """Convert a question's first turn."""
    turns = texts(row, "turns")
    if not turns:
        raise RowError("turns: is empty")
    category = row.get("category")
    cohort = category if isinstance(category, str) and category else "chat"
    return {"id": identity(row, "question_id", "id"), "cohort": cohort, "prompt": turns[0]}


def openai_log(row: JsonObject, number: int) -> Line:
    """Convert a request: a line of a batch's input, of a request log, or a bare body.

    Requests that name a session are its turns, in the order of the file. The cohort is the
    metadata's `cohort`; without it, `tool_call` if tools were given, else `chat`.
    """
    body = next((row[k] for k in ("body", "request") if isinstance(row.get(k), dict)), row)
    tools = objects(body, "tools") if body.get("tools") else []
    metadata = body.get("metadata")
    named = metadata.get("cohort") if isinstance(metadata, dict) else None
    cohort = named if isinstance(named, str) and named else "tool_call" if tools else "chat"
    ids = ("custom_id", "id", "request_id")
    id_ = identity(row, *ids) if any(key in row for key in ids) else f"request-{number}"
    line: Line = {"id": id_, "cohort": cohort}
    line["messages"] = [message(one) for one in objects(body, "messages")]
    if not line["messages"]:
        raise RowError("messages: is empty")
    limit = body.get("max_completion_tokens", body.get("max_tokens"))
    if isinstance(limit, int) and limit > 0:
        line["max_tokens"] = limit
    for key in _PARAMETERS:
        if body.get(key) is not None:
            line[key] = body[key]
    return line | _of_session(row, metadata if isinstance(metadata, dict) else {})


_SESSION_KEYS = ("session_id", "conversation_id", "thread_id")


def _of_session(row: JsonObject, metadata: JsonObject) -> Line:
    """Return the session that a log names, and the pause before the request (`delay`, in ms)."""
    named = [found for at in (row, metadata) for key in _SESSION_KEYS if (found := at.get(key))]
    if not named:
        return {}
    delay = row.get("delay")
    pause = {"think_s": delay / 1e3} if isinstance(delay, int | float) else {}
    return {"session": str(named[0]), **pause}


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
"""Keys of a logged request that the workload keeps; the route sets the model."""
_MESSAGE_KEYS = (
    "content",
    "name",
    "tool_calls",
    "tool_call_id",
    "reasoning_content",
    "reasoning",
    "refusal",
)


def message(sent: JsonObject) -> Line:
    """Convert a message; content parts, tool calls and tool results stay as they were sent."""
    kept = {key: sent[key] for key in _MESSAGE_KEYS if sent.get(key) is not None}
    if not kept.keys() & {"content", "tool_calls", "refusal"}:
        raise RowError("messages: one has neither a content nor tool calls")
    return {"role": text(sent, "role"), **kept}


def json_schema_bench(row: JsonObject) -> Line:
    """Convert a schema to a prompt for JSON that the schema allows."""
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
