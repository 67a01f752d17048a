"""Our own dialect: the wire contract.

OTel GenAI client spans from schema 1.37 on are a part of it, and so are those of the conventions'
new home: `gen_ai.client.inference` is what they call the span's type, which is not on the wire.
"""

from collections.abc import Mapping

from collector.contract import AttributeValue, Decoded, Span, attributes, decode
from collector.contract.codec import names_operation
from collector.dialects import otel_genai
from collector.dialects.dialect import Dialect

_TEXT = frozenset(
    {
        attributes.GEN_AI_INPUT_MESSAGES,
        attributes.GEN_AI_OUTPUT_MESSAGES,
        attributes.DRAFTGATE_CONTEXT,
        attributes.DRAFTGATE_REFERENCE,
        attributes.DRAFTGATE_OUTPUT_SCHEMA,
    }
)


def is_contract(span_attributes: Mapping[str, AttributeValue]) -> bool:
    """Say whether a span with these attributes is a generation in our own dialect."""
    return names_operation(span_attributes) and otel_genai.SYSTEM not in span_attributes


def _recognise(span: Span) -> Decoded | None:
    return decode(span) if is_contract(span.attributes) else None


DRAFTGATE = Dialect(
    name="draftgate",
    recognise=_recognise,
    is_text=_TEXT.__contains__,
    content=otel_genai.content,
)
