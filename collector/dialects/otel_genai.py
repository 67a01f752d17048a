"""OTel GenAI client spans up to schema 1.36, in which the provider is `gen_ai.system`.

Token counts may have the older names of schema 1.26. Includes OpenLIT and OpenLLMetry of that time,
which flatten messages into attributes.
"""

import json
from collections.abc import Mapping

from collector.contract import AttributeValue, Content, Decoded, Span, attributes, is_generation
from collector.dialects import messages
from collector.dialects.dialect import Dialect
from collector.dialects.translation import (
    Table,
    contract_content,
    decode_translated,
    load_json,
    renamed,
)

SYSTEM = "gen_ai.system"
NAMES: Table = {
    SYSTEM: attributes.GEN_AI_PROVIDER_NAME,
    "gen_ai.usage.prompt_tokens": attributes.GEN_AI_USAGE_INPUT_TOKENS,
    "gen_ai.usage.completion_tokens": attributes.GEN_AI_USAGE_OUTPUT_TOKENS,
    "gen_ai.usage.cache_read_input_tokens": attributes.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS,
    "gen_ai.openai.request.seed": attributes.GEN_AI_REQUEST_SEED,
}
_INSTRUCTIONS = "gen_ai.system_instructions"
_PROMPT, _COMPLETION = "gen_ai.prompt", "gen_ai.completion"
_TEXT = frozenset(
    {
        _INSTRUCTIONS,
        _PROMPT,
        _COMPLETION,
        "gen_ai.content.prompt",
        "gen_ai.content.completion",
        "gen_ai.event.content",
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.call.result",
        "gen_ai.retrieval.query.text",
        "gen_ai.retrieval.documents",
        "gen_ai.evaluation.explanation",
    }
)


def is_text(attribute: str) -> bool:
    """Return whether the attribute contains text, also flattened (`gen_ai.prompt.{i}.content`)."""
    if not attribute.startswith((_PROMPT, _COMPLETION)):
        return attribute in _TEXT
    # `gen_ai.prompt.name` of the conventions is not text.
    index = attribute.removeprefix(_PROMPT).removeprefix(_COMPLETION)
    return not index or index[1:2].isdigit()


def content(text: Mapping[str, AttributeValue]) -> Content | None:
    """Return messages from JSON or flattened attributes; system instructions come first."""
    return contract_content(
        _with_instructions(text),
        input_messages=_flattened(text, _PROMPT, "gen_ai.content.prompt", role="user"),
        output_messages=_flattened(
            text, _COMPLETION, "gen_ai.content.completion", role="assistant"
        ),
    )


def _flattened(
    text: Mapping[str, AttributeValue], prefix: str, *whole: str, role: str
) -> str | None:
    found = messages.messages_json(messages.flattened(text, prefix))
    for name in (prefix, *whole):
        found = found or messages.text_json(role, text.get(name))
    return found


def _with_instructions(text: Mapping[str, AttributeValue]) -> Mapping[str, AttributeValue]:
    parts, sent = _list(text.get(_INSTRUCTIONS)), _list(text.get(attributes.GEN_AI_INPUT_MESSAGES))
    if not parts:
        return text
    system = {"role": "system", "parts": parts}
    try:
        merged = json.dumps([system, *sent], ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError):  # bytes, NaN or infinity
        return text
    return {**text, attributes.GEN_AI_INPUT_MESSAGES: merged}


def _list(value: AttributeValue) -> list[object]:
    loaded = load_json(value) if isinstance(value, str) else value
    return list(loaded) if isinstance(loaded, list | tuple) else []


def _recognise(span: Span) -> Decoded | None:
    if is_generation(span) and SYSTEM in span.attributes:
        return decode_translated(span, renamed(span, NAMES))
    return None


OTEL_GENAI = Dialect(name="otel_genai", recognise=_recognise, is_text=is_text, content=content)
