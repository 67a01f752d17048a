"""Our own dialect: the wire contract.

OTel GenAI client spans from schema 1.37 on are a part of it, and so are those of the conventions'
new home: `gen_ai.client.inference` is what they call the span's type, which is not on the wire.
"""

from collector.contract import AttributeValue, Decoded, Span, attributes, decode
from collector.contract.codec import names_operation
from collector.dialects import otel_genai
from collector.dialects.dialect import Dialect

_TEXT = frozenset(
    {
        attributes.GEN_AI_INPUT_MESSAGES,
        attributes.GEN_AI_OUTPUT_MESSAGES,
        attributes.GEN_AI_TOOL_DEFINITIONS,
        attributes.DRAFTGATE_CONTEXT,
        attributes.DRAFTGATE_REFERENCE,
        attributes.DRAFTGATE_OUTPUT_SCHEMA,
    }
)


def is_contract(operation: AttributeValue, *, has_system: bool) -> bool:
    """Say whether a span of this operation is a generation of ours, with `gen_ai.system` or not."""
    return names_operation(operation) and not has_system


def _recognise(span: Span) -> Decoded | None:
    operation = span.attributes.get(attributes.GEN_AI_OPERATION_NAME)
    has_system = otel_genai.SYSTEM in span.attributes
    return decode(span) if is_contract(operation, has_system=has_system) else None


DRAFTGATE = Dialect(
    name="draftgate",
    recognise=_recognise,
    is_text=_TEXT.__contains__,
    content=otel_genai.content,
)
