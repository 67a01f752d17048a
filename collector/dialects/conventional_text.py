"""Attributes in which other conventions keep text, whether or not a dialect reads them."""

_NAMES = frozenset(
    {
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


def is_text(attribute: str) -> bool:
    """Say whether an attribute of this name holds text by a convention known to us."""
    return attribute in _NAMES or attribute.startswith(_PREFIXES)
