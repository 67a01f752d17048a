"""Dialects: the conventions by which instrumentations write a generation as a span.

A span is a generation if a dialect recognises it; the first that does wins. Every other span is
stored too. A new dialect is one file here and one entry in `DIALECTS`.
"""

from collections.abc import Mapping
from typing import NamedTuple

from collector.contract import AttributeValue, Content, Decoded, Span
from collector.dialects import conventional_text
from collector.dialects.conventional_text import is_event_text
from collector.dialects.dialect import Dialect
from collector.dialects.draftgate import DRAFTGATE, is_contract
from collector.dialects.feedback import scores
from collector.dialects.langfuse import LANGFUSE
from collector.dialects.openinference import OPENINFERENCE
from collector.dialects.openllmetry import OPENLLMETRY
from collector.dialects.otel_genai import OTEL_GENAI, SYSTEM
from collector.dialects.sglang import SGLANG
from collector.dialects.tgi import TGI
from collector.dialects.traceai import TRACEAI
from collector.dialects.vllm import VLLM
from collector.memo import of_short_texts

__all__ = [
    "DIALECTS",
    "DRAFTGATE",
    "SYSTEM",
    "Dialect",
    "Recognised",
    "content",
    "is_contract",
    "is_event_text",
    "is_text",
    "recognise",
    "scores",
]

# The contract's own names win over others on the same span. Then dialects that state the kind of
# span, and last those recognised only by which attributes they have.
DIALECTS: tuple[Dialect, ...] = (
    DRAFTGATE,
    OTEL_GENAI,
    OPENINFERENCE,
    LANGFUSE,
    VLLM,
    SGLANG,
    TRACEAI,
    OPENLLMETRY,
    TGI,
)
_BY_NAME = {dialect.name: dialect for dialect in DIALECTS}


class Recognised(NamedTuple):
    """A generation and the dialect in which it was written."""

    dialect: str
    decoded: Decoded
    server_side: bool
    """Whether the span was sent by the engine."""
    enriches: bool
    """Whether the engine's span has a parent. Then it adds its times (queue, prefill, decode, time
    to first token) to the client's generation in the trace and is not a generation itself."""


def recognise(span: Span) -> Recognised | None:
    """Return the generation in the span, or None if no dialect recognises one."""
    for dialect in DIALECTS:
        decoded = dialect.recognise(span)
        if decoded is not None:
            server_side = dialect.server_side
            enriches = server_side and span.parent_span_id is not None
            return Recognised(dialect.name, decoded, server_side, enriches)
    return None


@of_short_texts
def is_text(attribute: str) -> bool:
    """Return whether any dialect or convention puts text into an attribute of this name."""
    return conventional_text.is_text(attribute) or any(d.is_text(attribute) for d in DIALECTS)


def content(dialect_name: str, text: Mapping[str, AttributeValue]) -> Content | None:
    """Return the content of a generation of this dialect, given its text attributes."""
    dialect = _BY_NAME.get(dialect_name)
    return None if dialect is None else dialect.content(text)
