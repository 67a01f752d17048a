"""The wire contract: what crosses a process boundary, in names, records and a codec.

Imports the standard library only. A type belongs here if and only if it crosses a process boundary.
"""

from collector.contract.codec import Decoded, decode, encode, is_generation, span_name
from collector.contract.conservation import counts_usable, violations
from collector.contract.documents import Document, DocumentError, from_document, to_document
from collector.contract.records import (
    Arm,
    ArmSummary,
    AttributeValue,
    Content,
    CountSource,
    Generation,
    Pair,
    PairKey,
    RolloutOverview,
    Score,
    Span,
    SpanEvent,
    SpanLink,
    SpanStatus,
    Speculation,
)
from collector.contract.verdict import (
    Acceptance,
    ArmLatency,
    Finding,
    Outcome,
    Percentiles,
    QualityCounts,
    Reason,
    Role,
    StoredVerdict,
    Verdict,
)

__all__ = [
    "Acceptance",
    "Arm",
    "ArmLatency",
    "ArmSummary",
    "AttributeValue",
    "Content",
    "CountSource",
    "Decoded",
    "Document",
    "DocumentError",
    "Finding",
    "Generation",
    "Outcome",
    "Pair",
    "PairKey",
    "Percentiles",
    "QualityCounts",
    "Reason",
    "Role",
    "RolloutOverview",
    "Score",
    "Span",
    "SpanEvent",
    "SpanLink",
    "SpanStatus",
    "Speculation",
    "StoredVerdict",
    "Verdict",
    "counts_usable",
    "decode",
    "encode",
    "from_document",
    "is_generation",
    "span_name",
    "to_document",
    "violations",
]
