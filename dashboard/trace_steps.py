"""A trace's spans in tree order, each with its generation."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from collector.contract import Arm, Generation, Span, SpanStatus, decode, is_generation

DEEPEST = 30
"""Limit on tree levels: traces are untrusted, and may be one long chain."""


class TraceStep(NamedTuple):
    """One span of a trace."""

    name: str
    depth: int
    start_s: float
    """Relative to the trace's start."""
    end_s: float
    failed: bool
    generation: Generation | None
    """The generation, if the span is one."""

    @property
    def arm(self) -> Arm | None:
        """The arm that answered; `None` if the step is not a generation of a rollout."""
        return None if self.generation is None else self.generation.arm


def steps(spans: Sequence[Span]) -> tuple[TraceStep, ...]:
    """Return the spans, parents before children, siblings by start.

    Spans whose parent is missing are at the top level, as are those in a cycle.
    """
    if not spans:
        return ()
    known = {span.span_id for span in spans}
    children: dict[str | None, list[Span]] = {}
    for span in sorted(spans, key=lambda span: (span.start_unix_ns, span.span_id)):
        parent = span.parent_span_id
        children.setdefault(parent if parent in known else None, []).append(span)
    first = min(span.start_unix_ns for span in spans)
    found = list(_below(None, 0, children, set()))
    left = [span for span in spans if span.span_id not in {s.span_id for s, _ in found}]
    found += [(span, 0) for span in left]
    return tuple(_step(span, depth, first) for span, depth in found)


def _below(
    parent: str | None, depth: int, children: dict[str | None, list[Span]], seen: set[str]
) -> Iterator[tuple[Span, int]]:
    if depth > DEEPEST:
        return
    for span in children.get(parent, ()):
        if span.span_id not in seen:
            seen.add(span.span_id)
            yield span, depth
            yield from _below(span.span_id, depth + 1, children, seen)


def _step(span: Span, depth: int, first_unix_ns: int) -> TraceStep:
    generation = decode(span).generation if is_generation(span) else None
    return TraceStep(
        name=span.name,
        depth=depth,
        start_s=(span.start_unix_ns - first_unix_ns) / 1e9,
        end_s=(span.end_unix_ns - first_unix_ns) / 1e9,
        failed=span.status is SpanStatus.ERROR,
        generation=generation,
    )
