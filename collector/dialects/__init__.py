"""Dialects: the ways in which others write a generation as a span.

A span is a generation where a dialect recognises it; the first that does wins. Every other span is
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

# The contract's own names first: whoever sends them beside others means them. Then what states its
# kind of span, and last what is known by its shape alone.
DIALECTS: tuple[Dialect, ...] = (
    DRAFTGATE,
    OTEL_GENAI,
    OPENINFERENCE,
    VLLM,
    SGLANG,
    TRACEAI,
    OPENLLMETRY,
    TGI,
)
_BY_NAME = {dialect.name: dialect for dialect in DIALECTS}


class Recognised(NamedTuple):
    """A generation, and the dialect that it was written in."""

    dialect: str
    decoded: Decoded
    server_side: bool
    """The span is the engine's side of a request."""
    enriches: bool
    """The engine was called within a trace: this adds to the client's generation in that trace
    (queue, prefill, decode, time to first token) and is no generation of its own."""


def recognise(span: Span) -> Recognised | None:
    """Return the generation that the span carries, or None where no dialect knows it as one."""
    for dialect in DIALECTS:
        decoded = dialect.recognise(span)
        if decoded is not None:
            server_side = dialect.server_side
            enriches = server_side and span.parent_span_id is not None
            return Recognised(dialect.name, decoded, server_side, enriches)
    return None


@of_short_texts
def is_text(attribute: str) -> bool:
    """Say whether any dialect or convention keeps text in an attribute of this name."""
    return conventional_text.is_text(attribute) or any(d.is_text(attribute) for d in DIALECTS)


def content(dialect_name: str, text: Mapping[str, AttributeValue]) -> Content | None:
    """Return the content that a generation of this dialect has in its text attributes."""
    dialect = _BY_NAME.get(dialect_name)
    return None if dialect is None else dialect.content(text)
