"""Count user feedback on answers, by arm and cohort."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from collector.contract import Arm, Feedback, FeedbackKind


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackCount:
    """Generations of one arm and cohort that have feedback of one kind."""

    arm: Arm
    cohort: str | None
    kind: FeedbackKind
    given: int
    generations: int
    """All generations of the arm and cohort in the table, with feedback or without."""


def by_arm(feedback: Iterable[Feedback], table: pa.Table) -> tuple[FeedbackCount, ...]:
    """Count feedback over the rows of `Client.generation_batches`; empty without feedback.

    Feedback of one kind on one generation counts once, even from several sources.
    """
    names = ("trace_id", "span_id", "arm", "cohort")
    rows = zip(*(table[name].to_pylist() for name in names), strict=True)
    of = {(trace, span): (arm, cohort) for trace, span, arm, cohort in rows if arm is not None}
    kinds = {(f.trace_id, f.span_id, f.kind) for f in feedback}
    given = Counter((*of[trace, span], kind) for trace, span, kind in kinds if (trace, span) in of)
    if not given:
        return ()
    groups = Counter(of.values())
    ordered = sorted(groups, key=lambda group: (group[1] or "", group[0]))
    return tuple(
        FeedbackCount(
            arm=Arm(arm),
            cohort=cohort,
            kind=kind,
            given=given[arm, cohort, kind],
            generations=groups[arm, cohort],
        )
        for arm, cohort in ordered
        for kind in FeedbackKind
    )
