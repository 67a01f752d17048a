"""Draftgate's dialect: the wire contract.

It includes OTel GenAI client spans from schema 1.37 on, also those of the conventions' new home,
which calls the span type `gen_ai.client.inference`; that name is not on the wire.
"""

from collector.contract import AttributeValue, Content, Decoded, Span, attributes, decode
from collector.contract.codec import names_operation
from collector.contract.wire_field import wire_fields
from collector.dialects import otel_genai
from collector.dialects.dialect import Dialect

_TEXT = frozenset(field.attribute for field in wire_fields(Content).values())


def is_contract(operation: AttributeValue, *, has_system: bool) -> bool:
    """Return whether a span is a generation of this dialect.

    True if its operation is a known one and it has no `gen_ai.system`.
    """
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
