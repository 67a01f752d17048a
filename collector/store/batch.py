"""A batch: the rows of one write transaction."""

from collections.abc import Iterable
from dataclasses import dataclass

from collector.contract import EngineSample, Feedback, ResponseScore, Score, StoredVerdict
from collector.store.span_rows import SpanRows


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Rows for one transaction."""

    spans: tuple[SpanRows, ...] = ()
    scores: tuple[Score, ...] = ()
    of_responses: tuple[ResponseScore, ...] = ()
    """Scores that name a response id instead of a span; the writer looks the span up."""
    verdicts: tuple[StoredVerdict, ...] = ()
    samples: tuple[EngineSample, ...] = ()
    feedback: tuple[Feedback, ...] = ()


def merge(batches: Iterable[Batch]) -> Batch:
    """Return one batch with the rows of all batches, in order."""
    parts = tuple(batches)
    return Batch(
        spans=tuple(rows for part in parts for rows in part.spans),
        scores=tuple(score for part in parts for score in part.scores),
        of_responses=tuple(score for part in parts for score in part.of_responses),
        verdicts=tuple(verdict for part in parts for verdict in part.verdicts),
        samples=tuple(sample for part in parts for sample in part.samples),
        feedback=tuple(given for part in parts for given in part.feedback),
    )
