"""OpenInference, as written by its instrumentations and Phoenix."""

from collections.abc import Iterator, Mapping
from itertools import chain

from collector.contract import AttributeValue, Content, Decoded, Span, attributes
from collector.dialects import messages
from collector.dialects.dialect import Dialect
from collector.dialects.translation import (
    Table,
    Translated,
    contract_content,
    decode_translated,
    json_object,
    renamed,
    string_list,
)

KIND = "openinference.span.kind"
_MODEL = "llm.model_name"
_PARAMETERS = "llm.invocation_parameters"
_PROMPTS, _CHOICES = "llm.prompts", "llm.choices"
_FIRST_CHUNK = "First Token Stream Event"
_NAMES: Table = {
    "llm.provider": attributes.GEN_AI_PROVIDER_NAME,
    "llm.system": attributes.GEN_AI_PROVIDER_NAME,
    "llm.request.model_name": attributes.GEN_AI_REQUEST_MODEL,
    "llm.response.model_name": attributes.GEN_AI_RESPONSE_MODEL,
    "llm.token_count.prompt": attributes.GEN_AI_USAGE_INPUT_TOKENS,
    "llm.token_count.completion": attributes.GEN_AI_USAGE_OUTPUT_TOKENS,
    "llm.token_count.prompt_details.cache_read": attributes.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS,
    "session.id": attributes.GEN_AI_CONVERSATION_ID,
    "llm.token_count.completion_details.reasoning": (
        attributes.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS
    ),
    "llm.finish_reason": (attributes.GEN_AI_RESPONSE_FINISH_REASONS, string_list),
}
PARAMETERS: Table = {
    "model": attributes.GEN_AI_REQUEST_MODEL,
    "max_tokens": attributes.GEN_AI_REQUEST_MAX_TOKENS,
    "max_completion_tokens": attributes.GEN_AI_REQUEST_MAX_TOKENS,
    "temperature": attributes.GEN_AI_REQUEST_TEMPERATURE,
    "top_p": attributes.GEN_AI_REQUEST_TOP_P,
    "top_k": attributes.GEN_AI_REQUEST_TOP_K,
    "seed": attributes.GEN_AI_REQUEST_SEED,
    "stop": (attributes.GEN_AI_REQUEST_STOP_SEQUENCES, string_list),
    "stream": attributes.GEN_AI_REQUEST_STREAM,
}
_TEXT = frozenset(
    {
        "input.value",
        "output.value",
        "llm.function_call",
        "llm.prompt_template.template",
        "llm.prompt_template.variables",
        "reranker.query",
    }
)
_TEXT_PREFIXES = (
    "llm.input_messages.",
    "llm.output_messages.",
    _PROMPTS + ".",
    _CHOICES + ".",
    "input.images.",
    "output.images.",
    "input.documents.",
    "output.documents.",
    "retrieval.documents.",
    "reranker.input_documents.",
    "reranker.output_documents.",
    "embedding.embeddings.",
)
_FEEDBACK = ("annotations.", "evaluations.")
_FEEDBACK_TEXT = (".explanation", ".metadata")


def _recognise(span: Span) -> Decoded | None:
    if span.attributes.get(KIND) != "LLM":
        return None
    return decode_translated(
        span,
        chain(
            renamed(span, _NAMES),
            json_object(span, _PARAMETERS, PARAMETERS),
            _model(span),
            _operation(span),
            _time_to_first_chunk(span),
        ),
    )


def _model(span: Span) -> Iterator[Translated]:
    """Translate `llm.model_name`: the response model, or the request model if no other is named."""
    name = span.attributes.get(_MODEL)
    if name is not None:
        yield Translated(attributes.GEN_AI_REQUEST_MODEL, name, _MODEL)
        if _PARAMETERS in span.attributes or "llm.request.model_name" in span.attributes:
            yield Translated(attributes.GEN_AI_RESPONSE_MODEL, name, _MODEL)


def _operation(span: Span) -> Iterator[Translated]:
    if _PROMPTS + ".0.prompt.text" in span.attributes:
        yield Translated(attributes.GEN_AI_OPERATION_NAME, "text_completion", _PROMPTS)


def _time_to_first_chunk(span: Span) -> Iterator[Translated]:
    for event in span.events:
        if event.name == _FIRST_CHUNK:
            seconds = (event.time_unix_ns - span.start_unix_ns) / 1e9
            yield Translated(attributes.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK, seconds, _FIRST_CHUNK)
            return


def is_text(attribute: str) -> bool:
    """Return whether the attribute contains text of a request, a retrieval or feedback."""
    if attribute.startswith(_FEEDBACK):
        return attribute.endswith(_FEEDBACK_TEXT)
    return attribute in _TEXT or attribute.startswith(_TEXT_PREFIXES)


def _content(text: Mapping[str, AttributeValue]) -> Content | None:
    return flattened_content(text, "llm.input_messages", "llm.output_messages")


def flattened_content(
    text: Mapping[str, AttributeValue], input_prefix: str, output_prefix: str
) -> Content | None:
    """Return messages flattened under the prefixes, else prompts, else input and output values."""
    return contract_content(
        text,
        input_messages=_messages(text, input_prefix)
        or _texts(text, _PROMPTS, "prompt", role="user")
        or messages.text_json("user", text.get("input.value")),
        output_messages=_messages(text, output_prefix)
        or _texts(text, _CHOICES, "completion", role="assistant")
        or messages.text_json("assistant", text.get("output.value")),
    )


def _messages(text: Mapping[str, AttributeValue], prefix: str) -> str | None:
    trees = messages.flattened(text, prefix)
    return messages.messages_json(tuple(messages.subtree(tree, "message") for tree in trees))


def _texts(text: Mapping[str, AttributeValue], prefix: str, key: str, *, role: str) -> str | None:
    trees = messages.flattened(text, prefix)
    return messages.text_json(role, *(messages.subtree(tree, key).get("text") for tree in trees))


OPENINFERENCE = Dialect(
    name="openinference", recognise=_recognise, is_text=is_text, content=_content
)
