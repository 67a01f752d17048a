"""Our own dialect: the wire contract, of which OTel GenAI 1.41 client spans are a part."""

from collections.abc import Mapping

from collector.contract import (
    AttributeValue,
    Content,
    Decoded,
    Span,
    attributes,
    decode,
    is_generation,
)
from collector.contract.codec import OPERATIONS
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
    operation = span_attributes.get(attributes.GEN_AI_OPERATION_NAME)
    return isinstance(operation, str) and operation in OPERATIONS


def _recognise(span: Span) -> Decoded | None:
    return decode(span) if is_generation(span) else None


def _content(text: Mapping[str, AttributeValue]) -> Content | None:
    # The contract decodes whole spans only, so the text travels in an otherwise empty one.
    bare = Span(trace_id="", span_id="", name="", start_unix_ns=0, end_unix_ns=0, attributes=text)
    return decode(bare).generation.content


DRAFTGATE = Dialect(
    name="draftgate", recognise=_recognise, is_text=_TEXT.__contains__, content=_content
)
