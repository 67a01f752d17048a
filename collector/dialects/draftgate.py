"""Our own dialect: the wire contract.

OTel GenAI client spans from schema 1.37 on are a part of it, and so are those of the conventions'
new home: `gen_ai.client.inference` is what they call the span's type, which is not on the wire.
"""

from collector.contract import Decoded, Span, attributes, decode, is_generation
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


def _recognise(span: Span) -> Decoded | None:
    if is_generation(span) and otel_genai.SYSTEM not in span.attributes:
        return decode(span)
    return None


DRAFTGATE = Dialect(
    name="draftgate",
    recognise=_recognise,
    is_text=_TEXT.__contains__,
    content=otel_genai.content,
)
