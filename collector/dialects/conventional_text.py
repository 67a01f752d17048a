"""Attributes in which common conventions put text, whether or not a dialect reads them."""

_NAMES = frozenset(
    {
        "answer",
        "completion",
        "content",
        "error.message",
        "error.stack",
        "final_result",
        "input",
        "message",
        "messages",
        "output",
        "prompt",
        "prompts",
        "query",
        "question",
        "request_data",
        "response",
        "response_data",
        "text",
        "ai.prompt",
        "all_messages_events",
        "events",
        "gen_ai.agent.description",
        "gen_ai.event.content",
        "http.target",
        "http.url",
        "logfire.msg",
        "tool_arguments",
        "tool_response",
        "url.full",
        "url.query",
        "gen_ai.system_instructions",
        "gen_ai.tool.definitions",
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.call.result",
        "gen_ai.prompt",
        "gen_ai.completion",
        "gen_ai.input",
        "gen_ai.output",
        "llm.prompts",
        "llm.completions",
        "input.value",
        "output.value",
        "traceloop.entity.input",
        "traceloop.entity.output",
        "exception.message",
        "exception.stacktrace",
        "tool.parameters",
        "db.query.text",
        "db.statement",
    }
)
_PREFIXES = (
    "ai.prompt.",
    "ai.response.text",
    "ai.response.toolCalls",
    "ai.toolCall.",
    "gen_ai.content.",
    "http.request.body",
    "http.response.body",
    "langfuse.observation.input",
    "langfuse.observation.output",
    "langfuse.trace.input",
    "langfuse.trace.output",
    "mlflow.spanInputs",
    "mlflow.spanOutputs",
    "mlflow.traceInputs",
    "mlflow.traceOutputs",
    "gen_ai.input.messages",
    "gen_ai.output.messages",
    "gen_ai.request.messages",
    "llm.input_messages",
    "llm.output_messages",
    "llm.prompts.",
    "llm.completions.",
    "llm.prompt_template.",
    "llm.tools.",
    "retrieval.documents",
    "reranker.input_documents",
    "reranker.output_documents",
    "reranker.query",
    "embedding.embeddings",
)


_OF_EVENTS = frozenset(
    {
        "event.domain",
        "event.name",
        "exception.escaped",
        "exception.type",
        "finish_reason",
        "gen_ai.operation.name",
        "gen_ai.provider.name",
        "gen_ai.system",
        "id",
        "index",
        "message.type",
        "role",
    }
)


def is_event_text(attribute: str) -> bool:
    """Return whether an event's attribute may contain text: prompts appear under any name."""
    return attribute not in _OF_EVENTS


def is_text(attribute: str) -> bool:
    """Return whether a known convention puts text into an attribute of this name."""
    return attribute in _NAMES or attribute.startswith(_PREFIXES)
